"""A law, and what a look at some bytes found out about it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Law:
    """Something every answer of a protocol keeps. `firm` is False where reasonable endpoints differ."""

    name: str
    says: str
    firm: bool = True


@dataclass(frozen=True, slots=True)
class Broken:
    """One breach: which law, where in the answer, what was found, and the first bytes that show it."""

    law: Law
    text: str
    place: str = ""
    offset: int | None = None
    excerpt: bytes = b""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


@dataclass(slots=True)
class Complaints:
    """What was found wrong, each time with the place it was found at, and which laws were looked at."""

    found: list[Broken] = field(default_factory=list[Broken])
    seen: set[Law] = field(default_factory=set[Law])
    place: str = ""
    offset: int | None = None
    excerpt: bytes = b""

    def at(self, place: str, excerpt: bytes = b"", offset: int | None = None) -> None:
        """What follows is about this place in the bytes."""
        self.place, self.offset, self.excerpt = place, offset, excerpt[:_SHOWN]

    def at_end(self, body: bytes) -> None:
        """What follows is about how the bytes end."""
        tail = body[-_SHOWN:]
        self.at("end", tail, len(body) - len(tail))

    def add(self, law: Law, text: str) -> None:
        """The law is broken here."""
        self.seen.add(law)
        self.found.append(Broken(law, text, self.place, self.offset, self.excerpt))

    def unless(self, good: object, law: Law, text: str) -> None:
        """The law is looked at here, and broken unless `good`."""
        self.seen.add(law)
        if not good:
            self.add(law, text)

    @contextmanager
    def reading(self, law: Law) -> Generator[None]:
        """What is read in here has the protocol's shape, or that is the complaint."""
        self.seen.add(law)
        try:
            yield
        except (KeyError, TypeError, AttributeError) as error:
            self.add(law, f"malformed: {error!r}")
