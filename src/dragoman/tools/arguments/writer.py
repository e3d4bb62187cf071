"""Writes the members of one object in order, and waits for members that are undecided.

A member with an undeclared name may be an alias, a wrapper or a stray. Which of them it is may show only
later, so the writer keeps it as *pending*. Members after it wait too, in order: a valid call that only has
an odd key leaves byte for byte.

If the schema forbids undeclared members, the call cannot be valid as it is. Then a long string does not
wait: it overtakes the pending member, which is written after it. So a file's content never waits for a
misnamed path.
"""

from __future__ import annotations

from collections.abc import Callable

# Characters of a string that may wait behind a pending member: enough for the short members beside a path
# or a command, and too few for a person to notice.
LOOK_AHEAD = 256


class Member:
    """One member as text, with its whitespace: `lead` key `mid` value `tail`."""

    __slots__ = ("key", "lead", "mid", "name", "parts", "pending", "tail")

    def __init__(self, lead: str, key: str, mid: str, name: str, pending: bool = False) -> None:
        self.lead = lead
        self.key = key  # as written, with its quotes
        self.mid = mid
        self.name = name
        self.parts: list[str] = []
        self.tail = ""
        self.pending = pending


class OpenMember:
    """The member that is being read, as the pieces in which it arrives."""

    __slots__ = ("key", "lead", "mid", "name", "passing", "tail", "value")

    def __init__(self, lead: list[str]) -> None:
        self.lead = lead
        self.key = ['"']
        self.mid: list[str] = []
        self.value: list[str] = []
        self.tail: list[str] = []
        self.name = ""
        self.passing = False  # the value goes out while it arrives

    def unsent(self) -> str:
        if self.passing:
            return "".join(self.tail)
        return "".join((*self.lead, *self.key, *self.mid, *self.value, *self.tail))

    def started(self) -> Member:
        """The member up to its value."""
        return Member("".join(self.lead), "".join(self.key), "".join(self.mid), self.name)


class MemberWriter:
    """Writes members, commas and braces in order, as soon as they are certain."""

    def __init__(self, opening: str, *, overtaking: bool) -> None:
        self.out: list[str] = []
        self.waiting: list[Member] = []  # from the first pending member on, in order
        self.overtaken: list[Member] = []
        self.endless = False  # no overtaking while the whole object may be a wrapper
        self._overtaking = overtaking
        self._separator = opening
        self._budget = LOOK_AHEAD
        self._open: Member | None = None

    def begin(self, member: Member) -> None:
        """Start a member whose value streams."""
        if self.waiting:
            self._open = member
            self._budget = LOOK_AHEAD
            self.waiting.append(member)
        else:
            self._start(member)

    def write(self, text: str) -> None:
        """Add text to the value that streams."""
        if self._open is None:
            self.out.append(text)
        else:
            self._open.parts.append(text)
            self._budget -= len(text)
            if self._budget < 0 and self._overtaking and not self.endless:
                self._overtake()

    def end(self, tail: str) -> None:
        """The value that streams is over."""
        if self._open is None:
            self.out.append(tail)
        else:
            self._open.tail = tail
            self._open = None

    def add(self, member: Member) -> None:
        """Add a complete member, pending or not."""
        if self.waiting or member.pending:
            self.waiting.append(member)
        else:
            self._start(member)
            self.out += [*member.parts, member.tail]

    def settle(self, still_pending: Callable[[Member], bool]) -> None:
        """Decide pending members again, after more of the object is known."""
        for member in (*self.waiting, *self.overtaken):
            member.pending = member.pending and still_pending(member)
        for member in [member for member in self.overtaken if not member.pending]:
            self.overtaken.remove(member)
            self.add(member)
        if not any(member.pending for member in self.waiting):
            self._release()

    def drop(self, gone: Callable[[Member], bool]) -> None:
        """Remove waiting members."""
        self.waiting = [member for member in self.waiting if not gone(member)]
        self.overtaken = [member for member in self.overtaken if not gone(member)]

    def close(self, closing: str) -> None:
        """Write the members that wait, then the closing brace."""
        self.settle(lambda _: False)
        if self._separator != ",":
            self.out.append(self._separator)
        self.out.append(closing)

    def _start(self, member: Member) -> None:
        self.out += [self._separator, member.lead, member.key, member.mid]
        self._separator = ","

    def _overtake(self) -> None:
        self.overtaken += [member for member in self.waiting if member.pending]
        self.waiting = [member for member in self.waiting if not member.pending]
        self._release()

    def _release(self) -> None:
        waiting, self.waiting = self.waiting, []
        for member in waiting:
            self._start(member)
            self.out += [*member.parts, member.tail]
        self._open = None
