"""Laws, breaches, and the collection of both while an answer is checked."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Law:
    """A rule for every answer of a protocol. If `firm` is False, a breach is only noted."""

    name: str
    says: str
    firm: bool = True


@dataclass(frozen=True, slots=True)
class Breach:
    """One breach: the law, the place in the answer, the reason, and the bytes at that place."""

    law: Law
    text: str
    place: str = ""
    offset: int | None = None
    excerpt: bytes = b""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


@dataclass(slots=True)
class Complaints:
    """Collects breaches at the current place of the answer, and the laws that were tested."""

    found: list[Breach] = field(default_factory=list[Breach])
    seen: set[Law] = field(default_factory=set[Law])
    place: str = ""
    offset: int | None = None
    excerpt: bytes = b""

    def at(self, place: str, excerpt: bytes = b"", offset: int | None = None) -> None:
        """Set the current place. Later breaches are reported there."""
        self.place, self.offset, self.excerpt = place, offset, excerpt[:_SHOWN]

    def at_end(self, body: bytes) -> None:
        """Set the current place to the end of the bytes."""
        tail = body[-_SHOWN:]
        self.at("end", tail, len(body) - len(tail))

    def add(self, law: Law, text: str) -> None:
        """Report a breach of the law at the current place."""
        self.seen.add(law)
        self.found.append(Breach(law, text, self.place, self.offset, self.excerpt))

    def unless(self, good: object, law: Law, text: str) -> None:
        """Test the law: report a breach unless `good`."""
        self.seen.add(law)
        if not good:
            self.add(law, text)

    @contextmanager
    def reading(self, law: Law) -> Generator[None]:
        """Report missing members and wrong types inside this block as a breach of `law`."""
        self.seen.add(law)
        try:
            yield
        except (KeyError, TypeError, AttributeError) as error:
            self.add(law, f"malformed: {error!r}")
