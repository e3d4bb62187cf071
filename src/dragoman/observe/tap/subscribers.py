"""Subscriptions: each has a bounded queue, so that a slow subscriber loses records and delays no exchange."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from .records import Record
from .ring import Ring
from .track import Track

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WAITING = 64 * 1024 * 1024
_OVERHEAD = 200  # estimated bytes of a record without its data


class Subscription:
    """A queue of records. The event loop fills it; its owner may empty it in any thread."""

    def __init__(
        self,
        *,
        records: bool = True,
        max_bytes: int = MAX_WAITING,
        wake: Callable[[Track], None] | None = None,
    ) -> None:
        """`wake` is called for every change of an exchange except bytes. Without `records`, it is all."""
        self.records = records
        self.dropped = 0
        self._max_bytes = max_bytes
        self._wake = wake
        self._queue: deque[tuple[Track, Record, int]] = deque()
        # Each counter has one writer, so no lock is needed. Their difference is the size of the queue.
        self._put = 0
        self._taken = 0

    def put(self, track: Track, record: Record, size: int) -> bool:
        """Add `record`. Returns False if the queue is full."""
        size += _OVERHEAD
        if self._put - self._taken + size > self._max_bytes:
            self.dropped += 1
            return False
        self._put += size
        self._queue.append((track, record, size))
        return True

    def notify(self, track: Track) -> None:
        if self._wake is not None:
            self._wake(track)

    def take(self) -> Iterator[tuple[Track, Record]]:
        """Remove and return all records in the queue."""
        while self._queue:
            track, record, size = self._queue.popleft()
            self._taken += size
            yield track, record


class Tap:
    """Creates a track for every exchange, and knows the running ones."""

    def __init__(self, ring: Ring, clock: Callable[[], float] = time.time) -> None:
        self.ring = ring
        self.running: dict[str, Track] = {}
        self.subscriptions: tuple[Subscription, ...] = ()
        """All subscriptions."""
        self.record_subscriptions: tuple[Subscription, ...] = ()
        self.on_end: Callable[[Track], None] = lambda track: None
        self._clock = clock

    def begin(self, id: str, client: str) -> Track:
        track = Track(self, id, client, self._clock())
        self.running[id] = track
        ring = self.ring
        if ring.limit > 0:
            ring.running[id] = track
            track.keeps_records = True
        return track

    def subscribe(self, subscription: Subscription) -> None:
        self._set((*self.subscriptions, subscription))

    def unsubscribe(self, subscription: Subscription) -> None:
        self._set(tuple(other for other in self.subscriptions if other is not subscription))

    def _set(self, subscriptions: tuple[Subscription, ...]) -> None:
        self.subscriptions = subscriptions
        self.record_subscriptions = tuple(one for one in subscriptions if one.records)

    def ended(self, track: Track) -> None:
        id, ring = track.id, self.ring
        self.running.pop(id, None)
        if ring.running.pop(id, None) is not None and track.keeps_records:
            ring.over[id] = track
        self.on_end(track)
