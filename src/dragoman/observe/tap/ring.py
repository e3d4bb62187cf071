"""Keeps the bytes of the last exchanges in memory, up to a limit. The oldest are dropped first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .track import Track


class Ring:
    """Tracks with their bytes. Running exchanges are dropped last."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        """The size of all tracks in bytes, as far as they have reported it."""
        self.over: dict[str, Track] = {}
        self.running: dict[str, Track] = {}
        """Finished and running exchanges. `Tap` fills both."""

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def get(self, id: str) -> Track | None:
        """The track, if all its bytes are still here."""
        track = self.over.get(id) or self.running.get(id)
        return track if track is not None and track.keeps_records else None

    def resize(self, limit: int) -> None:
        self.limit = limit
        self.shrink()

    def shrink(self) -> None:
        """Drop tracks until the size is within the limit."""
        while self.size > self.limit and (self.over or self.running):
            here = self.over or self.running
            track = here.pop(next(iter(here)))
            self.size -= track.forget()
