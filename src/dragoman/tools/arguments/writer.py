"""Writes the members of one object in order, and waits where an earlier member is undecided.

A member whose name is not declared may be an alias, a wrapper or a stray, and which of them shows only
later. It is kept back as *pending*, and so is what follows it, in order: a valid call that merely has
an odd key comes out byte for byte. Only where the schema admits no odd keys, so that the call cannot be
valid as it is, does a long string not wait: it overtakes the pending member, which then follows it, and a
file's content never waits for a misnamed path.
"""

from __future__ import annotations

from collections.abc import Callable

# Characters of a string that may wait behind a pending member. Enough for the short members that come
# with a path or a command; far less than anyone notices.
LOOK_AHEAD = 256


class Member:
    """One member as text, whitespace included: `lead` key `mid` value `tail`."""

    __slots__ = ("key", "lead", "mid", "name", "parts", "pending", "tail")

    def __init__(self, lead: str, key: str, mid: str, name: str, pending: bool = False) -> None:
        self.lead = lead
        self.key = key  # as written, with its quotes
        self.mid = mid
        self.name = name
        self.parts: list[str] = []
        self.tail = ""
        self.pending = pending


class MemberWriter:
    """Puts members, commas and braces out, in order, as soon as they are certain."""

    def __init__(self, opening: str, *, overtaking: bool) -> None:
        self.out: list[str] = []
        self.waiting: list[Member] = []  # from the first pending member on, in order
        self.overtaken: list[Member] = []
        self.endless = False  # while the whole object may be a wrapper, nothing overtakes
        self._overtaking = overtaking
        self._separator = opening
        self._budget = LOOK_AHEAD
        self._open: Member | None = None

    @property
    def untouched(self) -> bool:
        """Whether no member has been written or is waiting."""
        return self._separator != "," and not self.waiting and not self.overtaken

    def begin(self, member: Member) -> None:
        """Start a member whose value streams."""
        if self.waiting:
            self._open = member
            self._budget = LOOK_AHEAD
            self.waiting.append(member)
        else:
            self._start(member)

    def write(self, text: str) -> None:
        """More of the value that streams."""
        if self._open is None:
            self.out.append(text)
        else:
            self._open.parts.append(text)
            self._budget -= len(text)
            if self._budget < 0 and self._overtaking and not self.endless:
                self._overtake()

    def end(self, tail: str) -> None:
        """The streaming value is over."""
        if self._open is None:
            self.out.append(tail)
        else:
            self._open.tail = tail
            self._open = None

    def add(self, member: Member) -> None:
        """A complete member, pending or not."""
        if self.waiting or member.pending:
            self.waiting.append(member)
        else:
            self._start(member)
            self.out += [*member.parts, member.tail]

    def settle(self, still_pending: Callable[[Member], bool]) -> None:
        """Look again at what is pending, after more has become known."""
        for member in (*self.waiting, *self.overtaken):
            member.pending = member.pending and still_pending(member)
        for member in [member for member in self.overtaken if not member.pending]:
            self.overtaken.remove(member)
            self.add(member)
        if not any(member.pending for member in self.waiting):
            self._release()

    def drop(self, gone: Callable[[Member], bool]) -> None:
        """Take waiting members out for good."""
        self.waiting = [member for member in self.waiting if not gone(member)]
        self.overtaken = [member for member in self.overtaken if not gone(member)]

    def close(self, closing: str) -> None:
        """Everything is decided: write what waits, then the closing brace."""
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
