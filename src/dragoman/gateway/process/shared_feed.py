"""The live feed of all processes: each tells the others of its exchanges, as long as somebody watches.

A process with a viewer says so every few seconds. The others then publish the summaries of their exchanges as
they change. Without viewers anywhere, an exchange costs nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from time import monotonic

import msgspec

from ...observe.receipts import summary
from ...observe.tap import Redactor, Subscription, Tap, Track
from ...shared import SharedState

# Seconds between updates of growing numbers (bytes, calls). Starts, first events and ends are sent at once.
UPDATE_INTERVAL = 0.5
_FEED, _VIEWERS = "feed", "viewers"
_ANNOUNCE_INTERVAL = 5.0
_WANTED = 12.0
"""Seconds after which a viewer that says nothing more counts as gone."""
# Summaries in one message: Redis keeps a whole message in memory for each slow reader.
_MAX_IN_MESSAGE = 50
_MAX_GROWING = 50
"""With more running exchanges, a process sends others only starts, first events and ends."""


class FeedEntry(msgspec.Struct, frozen=True):
    """The summary of an exchange, without secrets."""

    key: str
    """The name of the client's key, as it is: it decides who may see the entry."""
    summary: msgspec.Raw


class Changes:
    """The exchanges of this process that changed since they were last asked for."""

    def __init__(self, tap: Tap, redactor: Redactor, wake: asyncio.Event) -> None:
        """`wake` is set when an exchange starts, gets its first event, or ends."""
        self._tap = tap
        self._redactor = redactor
        self.wake = wake
        self._changed: dict[str, Track] = dict(tap.running)
        self._sent: dict[str, tuple[object, ...]] = {}
        self._subscription = Subscription(records=False, wake=self._on_change)
        tap.subscribe(self._subscription)

    def close(self) -> None:
        self._tap.unsubscribe(self._subscription)

    def _on_change(self, track: Track) -> None:
        self._changed[track.id] = track
        self.wake.set()

    @property
    def waiting(self) -> bool:
        return bool(self._changed)

    def take(
        self, may_see: Callable[[str], bool], *, recorded: bool | None = None, growing: bool = True
    ) -> list[FeedEntry]:
        """What changed, of keys that `may_see` accepts. With `growing`, new bytes are a change, too."""
        changed = self._changed | self._tap.running if growing else self._changed
        self._changed = {}
        seen = [track for track in changed.values() if may_see(track.key)]
        return [self._entry(track, recorded) for track in seen if self._is_new(track)]

    def _is_new(self, track: Track) -> bool:
        shown = (track.outcome, track.choice, len(track.attempts), track.first_event, track.bytes_out)
        if self._sent.get(track.id) == shown:
            return False
        self._sent[track.id] = shown
        if track.outcome != "running":
            del self._sent[track.id]
        return True

    def _entry(self, track: Track, recorded: bool | None) -> FeedEntry:
        data = msgspec.json.encode(summary(track, recorded=recorded))
        return FeedEntry(track.key, msgspec.Raw(self._redactor.scrub(data, track.secrets)))


class SharedFeed:
    """Publishes the exchanges of this process while others watch, and receives theirs for viewers here."""

    def __init__(self, tap: Tap, redactor: Redactor, shared: SharedState) -> None:
        self._tap = tap
        self._redactor = redactor
        self._shared = shared
        self._wanted_until = 0.0
        self._publishing: asyncio.Task[None] | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._viewers = 0
        shared.listen(_VIEWERS, self._on_viewer)
        shared.on_connect(self._announce)

    def watch(self, on_entry: Callable[[FeedEntry], None]) -> Callable[[], None]:
        """Call `on_entry` for the exchanges of other processes. Returns a function that ends this."""

        def received(data: bytes) -> None:
            for entry in msgspec.json.decode(data, type=list[FeedEntry]):
                on_entry(entry)

        unlisten = self._shared.listen(_FEED, received)
        self._viewers += 1
        if self._announcing is None:
            self._announcing = asyncio.create_task(self._announce_often())

        def end() -> None:
            unlisten()
            self._viewers -= 1

        return end

    async def _announce_often(self) -> None:
        try:
            while self._viewers:
                self._announce()
                await asyncio.sleep(_ANNOUNCE_INTERVAL)
        finally:
            self._announcing = None

    def _announce(self) -> None:
        if self._viewers:
            self._shared.publish(_VIEWERS, b"")

    def _on_viewer(self, message: bytes) -> None:
        self._wanted_until = monotonic() + _WANTED
        if self._publishing is None:
            self._publishing = asyncio.create_task(self._publish())

    async def _publish(self) -> None:
        changes = Changes(self._tap, self._redactor, asyncio.Event())
        try:
            while (left := self._wanted_until - monotonic()) > 0:
                growing = len(self._tap.running) <= _MAX_GROWING
                entries = changes.take(lambda key: True, recorded=False, growing=growing)
                for begin in range(0, len(entries), _MAX_IN_MESSAGE):
                    part = entries[begin : begin + _MAX_IN_MESSAGE]
                    self._shared.publish(_FEED, msgspec.json.encode(part))
                wait = UPDATE_INTERVAL if self._tap.running else left
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changes.wake.wait(), wait)
                changes.wake.clear()
        finally:
            changes.close()
            self._publishing = None

    async def close(self) -> None:
        tasks = [task for task in (self._publishing, self._announcing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
