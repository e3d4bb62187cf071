"""The fragments of one call's arguments: each is kept once, although two texts are made of them.

The receipt shows the text that arrived, and the text that was sent is validated. For a valid call both are
the same, so the sent text is only a length: a prefix of the text that arrived. Every sent text is compared
with that prefix. From the first difference on, the sent text is kept separately.
"""

from __future__ import annotations


class Fragments:
    """The text that arrived, how much of it was read, and what was sent."""

    __slots__ = ("_changed", "_offset", "_sent_pieces", "pieces", "sent_length", "unread")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.unread = 0  # the last pieces, which the assembly did not read yet
        self.sent_length = 0
        self._sent_pieces = 0  # pieces that were sent completely
        self._offset = 0  # characters of the next piece that were sent
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

    def add_passed(self, fragment: str, passed: str) -> None:
        """Keep a fragment of which `passed` was sent. Nearly always that is the fragment itself."""
        self.pieces.append(fragment)
        all_sent = self._sent_pieces == len(self.pieces) - 1 and not self._offset
        if all_sent and passed == fragment and self._changed is None:
            self._sent_pieces += 1
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
        self.sent_length += len(text)
        if self._changed is not None:
            self._changed.append(text)
            return
        pieces, first = self.pieces, self._sent_pieces
        if not "".join(pieces[first:]).startswith(text, self._offset):
            self._changed = [self.received[: self.sent_length - len(text)], text]
            return
        self._offset += len(text)
        while first < len(pieces) and self._offset >= len(pieces[first]):
            self._offset -= len(pieces[first])
            first += 1
        self._sent_pieces = first
