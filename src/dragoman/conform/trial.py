"""A trial: one request to the endpoint, and the breaches in its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from .laws import Breach, Complaints

KEPT, BROKEN, NOTED, SKIPPED = "kept", "broken", "noted", "skipped"


@dataclass(slots=True)
class Trial:
    """One trial. `skipped` is the reason if it did not run. A breach in a `lenient` trial is only noted."""

    name: str
    says: str
    complaints: Complaints = field(default_factory=Complaints)
    skipped: str = ""
    lenient: bool = False
    seconds: float = 0.0

    def firmly(self, broken: Breach) -> bool:
        """Does this breach count as broken, not only as noted?"""
        return broken.law.firm and not self.lenient

    @property
    def state(self) -> str:
        if self.skipped:
            return SKIPPED
        if any(map(self.firmly, self.complaints.found)):
            return BROKEN
        return NOTED if self.complaints.found else KEPT
