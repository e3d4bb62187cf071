"""Collect the reasoning text of a Chat answer, without duplicates.

Chat servers send reasoning in `reasoning_content` (DeepSeek, Kimi), in `reasoning` (OpenRouter, vLLM, Groq),
or in `reasoning_details`, a list of parts (OpenRouter, MiniMax). A server may send the same text in a field
and in the list, also in a later chunk.
"""

from __future__ import annotations

from typing import Any

TEXT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""`reasoning_text` is GitHub Copilot's, `thinking` comes from servers that name it like Ollama's protocol."""


class ReasoningFields:
    """The reasoning text of one answer. Text that arrives in both forms is counted once."""

    __slots__ = ("_by_field", "_part", "_pieces", "_repeated")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._by_field: bool | None = None
        """Did the first text come in a field? Text in the other form may be a repetition."""
        self._repeated = 0
        """The number of characters that the other form has repeated so far."""
        self._part: tuple[Any, Any] | None = None
        """The part of the details that the last text belongs to."""

    def field(self, text: str) -> str:
        """The new text in a field."""
        return self._new(text, by_field=True)

    def details(self, details: list[dict[str, Any]]) -> str:
        """The new text in a list of details. Blank lines separate parts, as in other protocols."""
        text = ""
        for number, detail in enumerate(details):
            piece = str(detail.get("text") or detail.get("summary") or "")
            index = detail.get("index")
            part = (detail.get("type"), number if index is None else index)
            if piece:
                starts_part = self._part not in (None, part) and bool(self._pieces or text)
                text += f"\n\n{piece}" if starts_part else piece
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
