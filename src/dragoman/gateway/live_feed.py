"""`GET /exchanges/live`: a stream of summaries for the inspector and `dragoman tail`."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from ..observe.receipts import summary
from ..observe.tap import Subscription, Track
from ..transport.server import ClientGone, HttpRequest, Stream
from .state import State

# Seconds between updates of growing numbers (bytes, calls). Starts, first events and ends are sent at once.
_UPDATE_INTERVAL = 0.5
_KEEPALIVE_INTERVAL = 15.0


async def live(state: State, request: HttpRequest) -> Stream:
    """Send `event: exchange` with a summary when an exchange starts, changes or ends."""
    headers = {
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
    }
    response = Stream(request, headers=headers)
    subscriber = _Subscriber(state)
    try:
        with contextlib.suppress(ClientGone):
            await response.write(b": exchanges, as they happen\n\n")
            while events := await subscriber.next_events():
                await response.write(events)
    finally:
        subscriber.close()
    return response


class _Subscriber:
    """One reader of the feed: what it has got, and what has changed since."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._changed: dict[str, Track] = dict(state.tap.running)
        self._sent: dict[str, tuple[object, ...]] = {}
        self._wake = asyncio.Event()
        self._subscription = Subscription(records=False, wake=self._on_change)
        state.tap.subscribe(self._subscription)
        state.stop_events.add(self._wake)

    def close(self) -> None:
        self._state.tap.unsubscribe(self._subscription)
        self._state.stop_events.discard(self._wake)

    def _on_change(self, track: Track) -> None:
        self._changed[track.id] = track
        self._wake.set()

    async def next_events(self) -> bytes:
        """The next events, or a keepalive. Empty: the gateway stops."""
        if not self._changed:
            # The tap reports no growth, so the running exchanges are checked at intervals.
            timeout = _UPDATE_INTERVAL if self._state.tap.running else _KEEPALIVE_INTERVAL
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout)
        if self._state.closing:
            return b""
        self._wake.clear()
        changed, self._changed = self._changed | self._state.tap.running, {}
        events = [self._event(track) for track in changed.values() if self._is_new(track)]
        return b"".join(events) or b": still here\n\n"

    def _is_new(self, track: Track) -> bool:
        shown = (track.outcome, track.choice, len(track.attempts), track.first_event, track.bytes_out)
        if self._sent.get(track.id) == shown:
            return False
        self._sent[track.id] = shown
        if track.outcome != "running":
            del self._sent[track.id]
        return True

    def _event(self, track: Track) -> bytes:
        data = msgspec.json.encode(summary(track))
        return b"event: exchange\ndata: %s\n\n" % self._state.redactor.scrub(data, track.secrets)
