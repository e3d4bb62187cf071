"""An open content block of an Anthropic upstream, and how it grows."""

from __future__ import annotations

from ....model.events import ArgumentsDelta, TextDelta
from . import wire

# By type of block: the deltas that add to it, how a plain one is read, and the event for it. Blocks that only
# Anthropic has stream their input, as calls do (`server_tool_use`, `mcp_tool_use`).
_GROWTH: dict[str, tuple[str, type, type[TextDelta | ArgumentsDelta]]] = {
    "text": ("text_delta", wire.TextPiece, TextDelta),
    "thinking": ("thinking_delta", wire.ThinkingPiece, TextDelta),
    "redacted_thinking": ("", type(None), TextDelta),
    # No client can read a block without a type.
    "": ("", type(None), TextDelta),
}
_INPUT_GROWTH = ("input_json_delta", wire.InputPiece, ArgumentsDelta)


class UpstreamBlock:
    """An open content block of the upstream."""

    __slots__ = ("given", "growing", "grown", "kind", "number", "piece")

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.number = number
        self.growing, self.piece, self.grown = _GROWTH.get(kind, _INPUT_GROWTH)
        self.given: str | None = ""
        """The arguments in `content_block_start`. Anthropic sends them there, without deltas, if a program of
        the model made the call (`caller`: code execution). None once the block has deltas: they count."""
