"""A whole Anthropic message that says nothing unusual, read in one go.

The types here know every field that `types.py` knows, each only with values that pass the watch and have
the decoder say nothing but words and calls: `null` where something else would mean more than that.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ...events import Start
from ..ids import WORDS
from ..plain_answer import PlainAnswer, PlainCall
from . import types
from .decoder import STOPS, read_usage

_Said = Annotated[str, msgspec.Meta(min_length=1)]
_NoItems = Annotated[list[Any], msgspec.Meta(max_length=0)] | None
_NO_ARGUMENTS = frozenset({"", "{}", "null"})


class Words(msgspec.Struct, tag_field="type", tag="text", gc=False):
    """A text without sources."""

    text: _Said
    citations: _NoItems = None
    thinking: None = None
    signature: None = None
    data: None = None
    id: None = None
    name: None = None


class Call(msgspec.Struct, tag_field="type", tag="tool_use", gc=False):
    """A call that is nothing but one."""

    id: str
    name: _Said
    input: msgspec.Raw
    citations: _NoItems = None
    text: None = None
    thinking: None = None
    signature: None = None
    data: None = None


class Message(msgspec.Struct, gc=False):
    """A whole body; what only the events of a stream have is not in it."""

    type: Literal["message"]
    id: _Said
    role: Literal["assistant"]
    model: _Said
    content: list[Words | Call]
    stop_reason: Literal["end_turn", "tool_use", "max_tokens"]
    stop_sequence: None
    usage: types.Usage
    stop_details: None = None
    index: None = None
    delta: None = None
    error: None = None


_read = msgspec.json.Decoder(Message).decode


def plain_answer(data: bytes) -> PlainAnswer | None:
    """What a body says, if it is such an answer."""
    try:
        read = _read(data)
    except (ValueError, RecursionError):
        return None
    usage = read.usage
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    if usage.input_tokens < 0 or usage.output_tokens < 0:
        return None
    content = read.content
    text = content[0].text if content and type(content[0]) is Words else ""
    calls: list[PlainCall] = []
    for block in content[1:] if text else content:
        arguments = bytes(block.input).decode() if type(block) is Call else ""
        if type(block) is not Call or arguments in _NO_ARGUMENTS or not WORDS.legal(block.id):
            return None
        calls.append(PlainCall(block.id, block.name, arguments))
    return PlainAnswer(Start(read.id, read.model), text, calls, read_usage(usage), STOPS[read.stop_reason])
