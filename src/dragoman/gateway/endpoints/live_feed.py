"""`GET /exchanges/live`: a stream of summaries for the inspector and `dragoman tail`."""

from __future__ import annotations

import asyncio
import contextlib

from ...access.identity import Identity
from ...transport.server import ClientGone, HttpRequest, Stream
from ..caller import identity_of, still_valid
from ..process.shared_feed import UPDATE_INTERVAL, Changes, FeedEntry
from ..state import State

_KEEPALIVE_INTERVAL = 15.0
_MAX_PENDING = 10_000
"""Entries of other processes that wait for a reader. One that is too slow misses the rest."""


async def live(state: State, request: HttpRequest) -> Stream:
    """Send `event: exchange` with a summary when an exchange starts, changes or ends."""
    headers = {
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
    }
    response = Stream(request, headers=headers)
    identity = identity_of(state.keys, request)
    subscriber = _Subscriber(state, identity)
    try:
        with contextlib.suppress(ClientGone), state.lifecycle.wakes(subscriber.wake):
            await response.write(b": exchanges, as they happen\n\n")
            while events := await subscriber.next_events():
                if not await still_valid(state.keys, request, identity):
                    break  # the key was revoked: this stream would never end by itself
                await response.write(events)
    finally:
        subscriber.close()
    return response


class _Subscriber:
    """One reader of the feed: the changes of this process, and those that other processes report."""

    def __init__(self, state: State, identity: Identity) -> None:
        self._state = state
        self._identity = identity
        self._pending: list[FeedEntry] = []
        self.wake = asyncio.Event()
        self._changes = Changes(state.observed.tap, state.observed.redactor, self.wake)
        self._unwatch = state.observed.feed.watch(self._on_entry)

    def close(self) -> None:
        self._changes.close()
        self._unwatch()

    def _on_entry(self, entry: FeedEntry) -> None:
        if self._identity.sees(entry.key) and len(self._pending) < _MAX_PENDING:
            self._pending.append(entry)
            self.wake.set()

    async def next_events(self) -> bytes:
        """The next events, or a keepalive. Empty: the gateway stops."""
        if not self._changes.waiting and not self._pending:
            # The tap reports no growth, so the running exchanges are checked at intervals.
            timeout = UPDATE_INTERVAL if self._state.observed.tap.running else _KEEPALIVE_INTERVAL
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.wake.wait(), timeout)
        if self._state.lifecycle.closing:
            return b""
        self.wake.clear()
        pending, self._pending = self._pending, []
        entries = [*self._changes.take(self._identity.sees), *pending]
        events = [b"event: exchange\ndata: %s\n\n" % bytes(entry.summary) for entry in entries]
        return b"".join(events) or b": still here\n\n"
