"""The record of one attempt at one target."""

from __future__ import annotations

from time import monotonic

from ...model.events import Failed
from ...routing.router import ChosenTarget


class AttemptTrack:
    """One attempt at one target. Only `Track` changes it."""

    __slots__ = ("began", "choice", "failure", "first_event", "key", "seconds", "translated")

    def __init__(self, choice: ChosenTarget) -> None:
        self.choice = choice
        self.key = ""
        """The fingerprint of the upstream's key."""
        self.began = monotonic()
        self.seconds: float | None = None
        """None while the attempt runs."""
        self.failure: Failed | None = None
        self.first_event: float | None = None
        """Seconds from the start of the attempt to the first content of its answer."""
        self.translated = False
        """The exchange's tool calls are those of this attempt, or of a later one."""

    def elapsed(self) -> float:
        return monotonic() - self.began

    def end(self, failure: Failed | None, now: float) -> None:
        """The attempt is over. Only the first call counts."""
        if self.seconds is None:
            self.seconds = now - self.began
            self.failure = failure
