"""The arguments of calls as the client spelled them, for who reads its messages as values.

A number that was read and written again may be another one, and a text that is spelled anew in one turn only
is a prompt that no upstream has in its cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

from ...pieces import Body


class _Block(msgspec.Struct, frozen=True):
    type: Any = None
    input: msgspec.Raw = msgspec.Raw(b"null")


class _Message(msgspec.Struct, frozen=True):
    content: list[_Block]


class _Request(msgspec.Struct, frozen=True):
    messages: list[msgspec.Raw]


_message = msgspec.json.Decoder(_Message).decode
_request = msgspec.json.Decoder(_Request).decode


def inputs(message: bytes | msgspec.Raw) -> Iterator[msgspec.Raw]:
    """Of each `tool_use` of a message, one after the other. Nothing is read before one is asked for."""
    try:
        blocks = _message(message).content
    except msgspec.DecodeError:
        return  # something is given twice, first as what it cannot be
    for block in blocks:
        if block.type == "tool_use":
            yield block.input


class Spelling:
    """How the messages of a request are spelled."""

    def __init__(self, body: Body) -> None:
        self._body = body

    @cached_property
    def _messages(self) -> list[msgspec.Raw]:
        try:
            return _request(self._body).messages
        except msgspec.DecodeError:
            return []  # what had to be mended so that it could be read

    def inputs(self, at: int) -> Iterator[msgspec.Raw]:
        """The same of the message at that place."""
        if self._messages:
            yield from inputs(self._messages[at])
