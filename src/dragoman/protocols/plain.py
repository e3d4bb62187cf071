"""Messages that say nothing unusual: words, thoughts, calls and results, and nothing else about them.

Nearly all of a coding agent's history is of this kind. Such a message can be read in one go, without a look
at each of its fields, and written for an upstream without becoming a `Message` in between. A reader makes
them out of its wire's own shapes (subclasses of these); whatever has one field more is no plain message.
`kind` tells them apart at a fraction of what asking for their class costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

# What JSON is, is told by how it begins. Of all that may be, a quote is the least and a brace the greatest:
# what is less than the first of these is a string, what is between the next two a list, and what is not less
# than the last an object.
BEYOND_STRINGS = bytearray(b"#")
LISTS, BEYOND_LISTS = bytearray(b"["), bytearray(b"\\")
OBJECTS = bytearray(b"{")


class Words(msgspec.Struct, frozen=True, gc=False):
    """A text."""

    kind: ClassVar[Literal["words"]] = "words"
    text: msgspec.Raw
    """As JSON, so that it can be handed on without being read."""


class Thoughts(msgspec.Struct, frozen=True, gc=False):
    """What the model thought. Nobody but the client's own protocol could make use of a seal on it."""

    kind: ClassVar[Literal["thoughts"]] = "thoughts"
    text: msgspec.Raw


class Call(msgspec.Struct, frozen=True, gc=False):
    """The model asks for a function of no namespace."""

    kind: ClassVar[Literal["call"]] = "call"
    id: str
    name: str
    input: msgspec.Raw
    """A JSON object, as the client spelled it, or on wires that have it so, a string that should be one."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """What a function answered."""

    kind: ClassVar[Literal["result"]] = "result"
    is_error: ClassVar[bool] = False
    """Only some wires tell."""
    call_id: str
    content: msgspec.Raw | Sequence[Words]
    """A string as JSON, or several texts."""


class Said(msgspec.Struct, frozen=True, gc=False):
    """A message of the model's."""

    kind: ClassVar[Literal["said"]] = "said"
    content: Sequence[Words | Call | Thoughts]


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A message of the user's."""

    kind: ClassVar[Literal["asked"]] = "asked"
    content: Sequence[Words | Result]


class Told(msgspec.Struct, frozen=True, gc=False):
    """A system's words among the messages: Claude Code has some behind every result."""

    kind: ClassVar[Literal["told"]] = "told"
    content: msgspec.Raw | Sequence[Words]
    """A string as JSON, or several texts."""


Plain = Said | Asked | Told


def called_with(input: msgspec.Raw) -> str:
    """The arguments of a call as text, whichever way it came."""
    return _decode(input) if input < BEYOND_STRINGS else arguments(input)


def arguments(input: msgspec.Raw) -> str:
    r"""The arguments of a call as they came, `input` being an object.

    Only what was escaped without need is itself again: Go writes `\u003c` for `<`, Python `\u00fc` for `ü`. A
    model takes what it reads here for its own words, and would write like that.
    """
    text = str(input, "utf-8")
    # From the end: there, a backslash is looked for first, and texts have fewer of them than they have `u`s.
    if text.rfind("\\u") < 0:
        return text
    try:
        return _encode(_decode(input)).decode()
    except msgspec.ValidationError:
        return text  # a number that is too large for everybody


def texts(content: msgspec.Raw | Sequence[Any]) -> list[msgspec.Raw]:
    """The texts among `content`; a string alone is one."""
    if isinstance(content, msgspec.Raw):
        return [content]
    return [part.text for part in content if part.kind == "words"]


def joined(words: Sequence[msgspec.Raw], separator: str) -> str:
    """The texts, read."""
    return separator.join([_decode(text) for text in words])
