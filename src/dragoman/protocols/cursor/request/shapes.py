"""Which protocol writes each level of a body like this? Cursor mixes them as its models and modes want.

Known so far (protocols.md 5.1): genuine Chat; Responses on the Chat path (`input`, flat tools) with Chat's
`stream_options`; Anthropic's blocks and bare tools in Chat messages, for models called `claude-*`; nested
functions beside a flat freeform ApplyPatch. What every protocol writes alike belongs to none.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...common.fields import Obj, is_array, is_object
from ...common.tool_definition import tool_shape

ANTHROPIC, CHAT, RESPONSES, NONE = "anthropic", "openai-chat", "openai-responses", "none"

# Of each protocol's top-level fields, those that mean nothing, or something else, in the others.
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
    """Every protocol that something in `body` could only come from."""
    found = set(_fields(body)) | set(_choice(body.get("tool_choice")))
    for tool in _objects(body.get("tools")):
        # Freeform tools are for OpenAI's own servers: written anew, they reach every other as functions.
        found.add(NONE if tool.get("type") == "custom" and "custom" in tool else tool_shape(tool))
    for key in ("messages", "input"):
        for turn in _objects(body.get(key)):
            found |= set(turn_shapes(turn))
    return found


def _objects(value: object) -> Iterator[Obj]:
    """The readers complain of whatever else stands there."""
    return (item for item in value if is_object(item)) if is_array(value) else iter(())


def _word(value: object) -> str:
    """A type, if it is one; whoever reads it complains of anything else."""
    return value if isinstance(value, str) else ""


def _fields(body: Obj) -> Iterator[str]:
    said = {key for key, value in body.items() if value is not None}
    if said & CHAT_FIELDS:
        yield CHAT
    if said & RESPONSES_FIELDS:
        yield RESPONSES
    if said & ANTHROPIC_FIELDS:
        yield ANTHROPIC


def turn_shapes(turn: Obj) -> Iterator[str]:
    """Of one message or item."""
    if "role" not in turn:
        yield RESPONSES
        return
    if turn.get("type") is not None:
        yield RESPONSES  # `message`, which nobody else has to say
    if turn["role"] in ("tool", "function") or turn.get("tool_calls") or turn.get("function_call"):
        yield CHAT
    for part in _objects(turn.get("content")):
        shape = part_shape(part)
        if shape is not None:
            yield shape


def part_shape(part: Obj) -> str | None:
    """Of one part of a message's content."""
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
    """Of a `tool_choice` that is an object."""
    kind = _word(choice.get("type"))
    if kind in _ANTHROPIC_CHOICES:
        return ANTHROPIC
    if kind in ("", "required"):
        return NONE
    return CHAT if is_object(choice.get(kind)) else RESPONSES
