"""The bytes of the last exchanges, in memory and within a bound. The oldest go first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .track import Track


class Ring:
    """Tracks with their bytes. Running ones are in it too, and leave it last."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        """Bytes, as far as the tracks have told."""
        self._over: dict[str, Track] = {}
        self._running: dict[str, Track] = {}

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def get(self, id: str) -> Track | None:
        """The track whose bytes are all still here."""
        track = self._over.get(id) or self._running.get(id)
        return track if track is not None and track.keeps else None

    def begin(self, track: Track) -> None:
        track.keeps = self.limit > 0
        if track.keeps:
            self._running[track.id] = track

    def end(self, track: Track) -> None:
        if self._running.pop(track.id, None) is not None and track.keeps:
            self._over[track.id] = track

    def resize(self, limit: int) -> None:
        self.limit = limit
        self.shrink()

    def shrink(self) -> None:
        """To what it may be."""
        while self.size > self.limit and (self._over or self._running):
            here = self._over or self._running
            track = here.pop(next(iter(here)))
            self.size -= track.forget()
