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
        self.over: dict[str, Track] = {}
        self.running: dict[str, Track] = {}
        """Those that are over, and those that are not: `Tap` puts them here."""

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def get(self, id: str) -> Track | None:
        """The track whose bytes are all still here."""
        track = self.over.get(id) or self.running.get(id)
        return track if track is not None and track.keeps else None

    def resize(self, limit: int) -> None:
        self.limit = limit
        self.shrink()

    def shrink(self) -> None:
        """To what it may be."""
        while self.size > self.limit and (self.over or self.running):
            here = self.over or self.running
            track = here.pop(next(iter(here)))
            self.size -= track.forget()
