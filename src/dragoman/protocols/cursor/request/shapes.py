"""Detect the protocol of each level of a body. Cursor mixes protocols, depending on the model and the mode.

Known forms: plain Chat (Ask mode); Responses on the Chat path (`input`, flat tools) with Chat's
`stream_options`, for GPT models; Anthropic's blocks and tools in Chat messages, for models called `claude-*`;
nested functions beside a flat freeform ApplyPatch. A whole-body template would miss such mixtures, so each
level is detected separately. A form that all protocols share gives no protocol.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...common.fields import Obj, is_array, is_object
from ...common.tool_definition import tool_shape

ANTHROPIC, CHAT, RESPONSES, NONE = "anthropic", "openai-chat", "openai-responses", "none"

# By protocol: the top-level fields that the other protocols do not have, or use differently.
CHAT_FIELDS = frozenset(
    {
        *("messages", "functions", "function_call", "max_completion_tokens", "max_tokens", "n"),
        *("response_format", "reasoning_effort", "verbosity", "modalities", "web_search_options"),
        *("presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "seed", "stop"),
    }
)
RESPONSES_FIELDS = frozenset(
    {
        *("input", "instructions", "max_output_tokens", "reasoning", "text", "include"),
        *("previous_response_id", "conversation", "truncation", "background"),
    }
)
ANTHROPIC_FIELDS = frozenset({"system", "thinking", "stop_sequences", "output_config", "output_format"})

_ANTHROPIC_PARTS = frozenset(
    {
        *("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"),
        *("search_result", "server_tool_use", "web_search_tool_result"),
    }
)
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ANTHROPIC_CHOICES = frozenset({"auto", "any", "tool", "none"})
_CHOICES = frozenset({"auto", "none", "required"})


def shapes(body: Obj) -> set[str]:
    """All protocols that a part of `body` belongs to."""
    found = set(_fields(body)) | set(_choice(body.get("tool_choice")))
    for tool in _objects(body.get("tools")):
        # Only OpenAI's own servers support freeform tools. The writers turn them into functions for others.
        found.add(NONE if tool.get("type") == "custom" and "custom" in tool else tool_shape(tool))
    for key in ("messages", "input"):
        for turn in _objects(body.get(key)):
            found |= set(turn_shapes(turn))
    return found


def _objects(value: object) -> Iterator[Obj]:
    """The objects of a list. The readers report all other items as errors."""
    return (item for item in value if is_object(item)) if is_array(value) else iter(())


def _word(value: object) -> str:
    """A type, if it is a string. The readers report other values as errors."""
    return value if isinstance(value, str) else ""


def _fields(body: Obj) -> Iterator[str]:
    given = {key for key, value in body.items() if value is not None}
    if given & CHAT_FIELDS:
        yield CHAT
    if given & RESPONSES_FIELDS:
        yield RESPONSES
    if given & ANTHROPIC_FIELDS:
        yield ANTHROPIC


def turn_shapes(turn: Obj) -> Iterator[str]:
    """The protocols of one message or item."""
    if "role" not in turn:
        yield RESPONSES
        return
    if turn.get("type") is not None:
        yield RESPONSES  # only Responses items have the type `message`
    if turn["role"] in ("tool", "function") or turn.get("tool_calls") or turn.get("function_call"):
        yield CHAT
    for part in _objects(turn.get("content")):
        shape = part_shape(part)
        if shape is not None:
            yield shape


def part_shape(part: Obj) -> str | None:
    """The protocol of one content part."""
    kind = _word(part.get("type"))
    if kind in _ANTHROPIC_PARTS:
        return ANTHROPIC
    if kind in _RESPONSES_PARTS:
        return RESPONSES
    return CHAT if kind in ("image_url", "file", "video_url") else None


def _choice(choice: object) -> Iterator[str]:
    if choice is None or (isinstance(choice, str) and choice in _CHOICES):
        return
    yield choice_shape(choice) if is_object(choice) else NONE


def choice_shape(choice: Obj) -> str:
    """The protocol of a `tool_choice` object."""
    kind = _word(choice.get("type"))
    if kind in _ANTHROPIC_CHOICES:
        return ANTHROPIC
    if kind in ("", "required"):
        return NONE
    return CHAT if is_object(choice.get(kind)) else RESPONSES
