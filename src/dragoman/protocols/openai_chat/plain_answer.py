"""A whole Chat answer that says nothing unusual, read in one go.

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
from .watch import adds_up

_Said = Annotated[str, msgspec.Meta(min_length=1)]
_Nothing = Literal[""] | None
_NoItems = Annotated[list[Any], msgspec.Meta(max_length=0)] | None


class Function(msgspec.Struct, gc=False):
    """What is called, with arguments."""

    name: _Said
    arguments: _Said


class Call(msgspec.Struct, gc=False):
    """A call that is nothing but one."""

    id: str
    type: Literal["function"]
    function: Function
    index: int | None = None
    custom: None = None
    extra_content: None = None


class Message(msgspec.Struct, gc=False):
    """Words, and calls after them."""

    role: Literal["assistant"]
    content: str | None
    reasoning_content: _Nothing = None
    reasoning: _Nothing = None
    reasoning_details: _NoItems = None
    refusal: _Nothing = None
    tool_calls: Annotated[list[Call], msgspec.Meta(min_length=1)] | None = None
    function_call: None = None
    annotations: _NoItems = None


class Choice(msgspec.Struct, gc=False):
    """The only one."""

    index: Literal[0]
    message: Message
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]
    delta: None = None


class Groq(msgspec.Struct, gc=False):
    """An envelope that counts nothing."""

    usage: None = None


class Completion(msgspec.Struct, gc=False):
    """A whole body."""

    id: _Said
    object: Literal["chat.completion"]
    created: Annotated[int, msgspec.Meta(ge=0)]
    model: _Said
    choices: Annotated[list[Choice], msgspec.Meta(min_length=1, max_length=1)]
    usage: types.Usage | None = None
    error: None = None
    base_resp: None = None
    x_groq: Groq | None = None


_read = msgspec.json.Decoder(Completion).decode


def plain_answer(data: bytes) -> PlainAnswer | None:
    """What a body says, if it is such an answer."""
    try:
        read = _read(data)
    except (ValueError, RecursionError):
        return None
    usage, choice = read.usage, read.choices[0]
    if usage is not None and not adds_up(usage):
        return None
    calls: list[PlainCall] = []
    for number, call in enumerate(choice.message.tool_calls or ()):
        if call.index not in (None, number) or not WORDS.legal(call.id):
            return None
        calls.append(PlainCall(call.id, call.function.name, call.function.arguments))
    return PlainAnswer(
        Start(read.id, read.model, read.created),
        choice.message.content or "",
        calls,
        None if usage is None else read_usage(usage),
        STOPS[choice.finish_reason],
    )
