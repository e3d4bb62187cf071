"""The fragments of one call's arguments: what arrived, and what was sent.

The receipt shows the text that arrived, and the text that was sent is validated. A fragment that passes
unchanged is one string in both lists.
"""

from __future__ import annotations


class Fragments:
    """The text that arrived, how much of it was read, and the text that was sent."""

    __slots__ = ("passed", "pieces", "unread")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.passed: list[str] = []
        self.unread = 0  # the last pieces, which the assembly did not read yet

    def hold(self, fragment: str) -> None:
        """Keep a fragment. The assembly reads it later."""
        self.pieces.append(fragment)
        self.unread += 1

    def take_unread(self) -> str:
        """The text of the fragments that the assembly did not read yet."""
        start = len(self.pieces) - self.unread
        self.unread = 0
        return "".join(self.pieces[start:])

    @property
    def received(self) -> str:
        """The text that arrived."""
        return "".join(self.pieces)

    @property
    def sent(self) -> str:
        """The text that was sent."""
        return "".join(self.passed)
