"""A trial is one question put to the endpoint, and what was found out."""

from __future__ import annotations

from dataclasses import dataclass, field

from .laws import Broken, Complaints

KEPT, BROKEN, NOTED, SKIPPED = "kept", "broken", "noted", "skipped"


@dataclass(slots=True)
class Trial:
    """One question. `skipped` says why there is nothing to judge; `lenient`: reasonable people differ."""

    name: str
    says: str
    complaints: Complaints = field(default_factory=Complaints)
    skipped: str = ""
    lenient: bool = False
    seconds: float = 0.0

    def firmly(self, broken: Broken) -> bool:
        """Is this breach one that decides?"""
        return broken.law.firm and not self.lenient

    @property
    def state(self) -> str:
        if self.skipped:
            return SKIPPED
        if any(map(self.firmly, self.complaints.found)):
            return BROKEN
        return NOTED if self.complaints.found else KEPT
