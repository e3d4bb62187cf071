"""The words of an answer's reasoning, which Chat servers give in one field, in another, or in both.

`reasoning` and `reasoning_content` are text. OpenRouter's `reasoning_details` are a list of parts, whole in a
body and piece by piece in a stream. A server may send the same words in the field and, later, in the list.
"""

from __future__ import annotations

from typing import Any


class ReasoningText:
    """The reasoning of one answer, each word once."""

    __slots__ = ("_by_field", "_part", "_pieces", "_repeated")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._by_field: bool | None = None
        """Did the first words come in a field? Those that come the other way may be the same words."""
        self._repeated = 0
        """How many characters came the other way too."""
        self._part: tuple[Any, Any] | None = None
        """Which part of the details the last words belong to."""

    def field(self, text: str) -> str:
        """What is new in the text of a field."""
        return self._new(text, by_field=True)

    def details(self, details: list[dict[str, Any]]) -> str:
        """What is new in a list of details. Parts are set apart by blank lines, as in other protocols."""
        text = ""
        for number, detail in enumerate(details):
            words = str(detail.get("text") or detail.get("summary") or "")
            index = detail.get("index")
            part = (detail.get("type"), number if index is None else index)
            if words:
                begins = self._part not in (None, part) and bool(self._pieces or text)
                text += f"\n\n{words}" if begins else words
                self._part = part
        return self._new(text, by_field=False)

    def _new(self, text: str, *, by_field: bool) -> str:
        if not text:
            return ""
        if self._by_field is None:
            self._by_field = by_field
        if by_field is not self._by_field and "".join(self._pieces).startswith(text, self._repeated):
            self._repeated += len(text)
            return ""
        self._pieces.append(text)
        return text
