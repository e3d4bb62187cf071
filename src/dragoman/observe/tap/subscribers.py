"""Who listens: each subscriber has a bounded queue, so that a slow one loses something and slows nobody."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from .records import Record, Said
from .ring import Ring
from .track import Track

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WAITING = 64 * 1024 * 1024
_OVERHEAD = 200  # bytes, about, that a record takes beside what it carries


class Ear:
    """One subscriber. Filled in the event loop, emptied wherever its owner likes."""

    def __init__(
        self,
        *,
        records: bool = True,
        events: bool = False,
        most: int = MOST_WAITING,
        wake: Callable[[Track], None] | None = None,
    ) -> None:
        """Hears `records` (bytes among them), `events`, both, or nothing but `wake`, which is called whenever
        something happens that is more than bytes."""
        self.records = records
        self.events = events
        self.dropped = 0
        self._most = most
        self._wake = wake
        self._queue: deque[tuple[Track, Record | Said, int]] = deque()
        # Each is written by one side only: what waits is their difference.
        self._put = 0
        self._taken = 0

    def hear(self, track: Track, record: Record | Said, size: int) -> bool:
        """Takes `record`, unless too much is waiting already."""
        size += _OVERHEAD
        if self._put - self._taken + size > self._most:
            self.dropped += 1
            return False
        self._put += size
        self._queue.append((track, record, size))
        return True

    def rouse(self, track: Track) -> None:
        if self._wake is not None:
            self._wake(track)

    def take(self) -> Iterator[tuple[Track, Record | Said]]:
        """What has been heard since the last time."""
        while self._queue:
            track, record, size = self._queue.popleft()
            self._taken += size
            yield track, record


class Tap:
    """Begins a track for every exchange, and knows the ones that are running."""

    def __init__(self, ring: Ring, clock: Callable[[], float] = time.time) -> None:
        self.ring = ring
        self.running: dict[str, Track] = {}
        self.ears: tuple[Ear, ...] = ()
        """Whoever listens to anything."""
        self.record_ears: tuple[Ear, ...] = ()
        self.event_ears: tuple[Ear, ...] = ()
        self.on_end: Callable[[Track], None] = lambda track: None
        self._clock = clock

    def begin(self, id: str, client: str) -> Track:
        track = Track(self, id, client, self._clock())
        self.running[id] = track
        ring = self.ring
        if ring.limit > 0:
            ring.running[id] = track
            track.keeps = True
        return track

    def listen(self, ear: Ear) -> None:
        self._set((*self.ears, ear))

    def leave(self, ear: Ear) -> None:
        self._set(tuple(other for other in self.ears if other is not ear))

    def _set(self, ears: tuple[Ear, ...]) -> None:
        self.ears = ears
        self.record_ears = tuple(ear for ear in ears if ear.records)
        self.event_ears = tuple(ear for ear in ears if ear.events)

    def ended(self, track: Track) -> None:
        id, ring = track.id, self.ring
        self.running.pop(id, None)
        if ring.running.pop(id, None) is not None and track.keeps:
            ring.over[id] = track
        self.on_end(track)
