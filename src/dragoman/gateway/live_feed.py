"""What happens, as it happens: a stream of summaries for whoever looks on."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from ..observe.receipts import summary
from ..observe.tap import Subscription, Track
from ..transport.server import ClientGone, Request, Stream
from .state import State

# What only grows (bytes, calls) is told so often; beginnings, first events and endings at once.
_PACE = 0.5
_KEEPALIVE = 15.0


async def live(state: State, request: Request) -> Stream:
    """`event: exchange` with a summary whenever one begins, gets on or ends."""
    headers = {
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
    }
    response = Stream(request, headers=headers)
    onlooker = _Onlooker(state)
    try:
        with contextlib.suppress(ClientGone):
            await response.write(b": exchanges, as they happen\n\n")
            while news := await onlooker.news():
                await response.write(news)
    finally:
        onlooker.leave()
    return response


class _Onlooker:
    """One reader of the stream: what it has been told, and what has happened since."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._happened: dict[str, Track] = dict(state.tap.running)
        self._told: dict[str, tuple[object, ...]] = {}
        self._wake = asyncio.Event()
        self._subscription = Subscription(records=False, wake=self._on)
        state.tap.subscribe(self._subscription)
        state.onlookers.add(self._wake)

    def leave(self) -> None:
        self._state.tap.unsubscribe(self._subscription)
        self._state.onlookers.discard(self._wake)

    def _on(self, track: Track) -> None:
        self._happened[track.id] = track
        self._wake.set()

    async def news(self) -> bytes:
        """The next thing to say. Nothing at all: the gateway is being stopped."""
        if not self._happened:
            # Whoever runs may have got on without a milestone: looked at now and then.
            pace = _PACE if self._state.tap.running else _KEEPALIVE
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pace)
        if self._state.closing:
            return b""
        self._wake.clear()
        happened, self._happened = self._happened | self._state.tap.running, {}
        told = [self._event(track) for track in happened.values() if self._is_new(track)]
        return b"".join(told) or b": still here\n\n"

    def _is_new(self, track: Track) -> bool:
        said = (track.outcome, track.choice, len(track.attempts), track.first_event, track.bytes_out)
        if self._told.get(track.id) == said:
            return False
        self._told[track.id] = said
        if track.outcome != "running":
            del self._told[track.id]
        return True

    def _event(self, track: Track) -> bytes:
        said = msgspec.json.encode(summary(track))
        return b"event: exchange\ndata: %s\n\n" % self._state.redactor.scrub(said, track.secrets)
