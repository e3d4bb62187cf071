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
        self.running: dict[str, Track] = {}
        """Those that are not over: put here by who begins them."""

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def get(self, id: str) -> Track | None:
        """The track whose bytes are all still here."""
        track = self._over.get(id) or self.running.get(id)
        return track if track is not None and track.keeps else None

    def end(self, track: Track) -> None:
        if self.running.pop(track.id, None) is not None and track.keeps:
            self._over[track.id] = track

    def resize(self, limit: int) -> None:
        self.limit = limit
        self.shrink()

    def shrink(self) -> None:
        """To what it may be."""
        while self.size > self.limit and (self._over or self.running):
            here = self._over or self.running
            track = here.pop(next(iter(here)))
            self.size -= track.forget()
