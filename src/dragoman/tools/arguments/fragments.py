"""The fragments of one call's arguments: each is kept once, although two texts are made of them.

The receipt shows the text that arrived, and the text that was sent is validated. For a valid call both are
the same, so the sent text is only a length: a prefix of the text that arrived. Every sent text is compared
with that prefix. From the first difference on, the sent text is kept separately.
"""

from __future__ import annotations


class Fragments:
    """The text that arrived, how much of it was read, and what was sent."""

    __slots__ = ("_changed", "_compared", "_unsent", "pieces", "sent_length", "unread")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.unread = 0  # the last pieces, which the assembly did not read yet
        self.sent_length = 0
        self._compared = 0  # pieces that were compared with the sent text
        self._unsent = ""  # what the compared pieces have and the sent text has not
        self._changed: list[str] | None = None  # the sent text, once it differs

    def hold(self, fragment: str) -> None:
        """Keep a fragment. The assembly reads it later."""
        self.pieces.append(fragment)
        self.unread += 1

    def take_unread(self) -> str:
        """The text of the fragments that the assembly did not read yet."""
        start = len(self.pieces) - self.unread
        self.unread = 0
        return "".join(self.pieces[start:])

    def add_passed(self, fragment: str, passed: str, rest: str) -> None:
        """Keep a fragment. `passed` was sent of the text up to its end, and `rest`, an escape, waits."""
        pieces = self.pieces
        pieces.append(fragment)
        known = self._compared + 1 == len(pieces) and self._changed is None
        if known and len(self._unsent) + len(fragment) == len(passed) + len(rest):
            # All that arrived was sent or waits, so the sent text is still a prefix. No text is compared.
            self._compared += 1
            self._unsent = rest
            self.sent_length += len(passed)
        elif passed:
            self.note_sent(passed)

    @property
    def received(self) -> str:
        """The text that arrived."""
        return "".join(self.pieces)

    @property
    def sent(self) -> str:
        """The text that was sent."""
        if self._changed is not None:
            return "".join(self._changed)
        return self.received[: self.sent_length]

    def note_sent(self, text: str) -> None:
        """Record that `text` was sent."""
        if self._changed is None:
            arrived = self._unsent + "".join(self.pieces[self._compared :])
            self._compared = len(self.pieces)
            if arrived.startswith(text):
                self._unsent = arrived[len(text) :]
            else:
                self._changed = [self.received[: self.sent_length]]
        if self._changed is not None:
            self._changed.append(text)
        self.sent_length += len(text)
