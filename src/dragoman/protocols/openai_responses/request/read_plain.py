"""Input items read in one go, where they are plain; the others one field at a time.

An item says a lot that only its own protocol wants to know (`id`, `status`, …) and that no neutral message
has: that does not keep it from being plain, since its own protocol gets it as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ....messages import Message
from ... import ids, recall, seals
from ...conversations import Cut
from ...fields import as_object
from ...history import History, decoded
from ...memory import MEMORY
from ...plain import (
    BEYOND_LISTS,
    BEYOND_STRINGS,
    LISTS,
    Asked,
    Call,
    Plain,
    Result,
    Said,
    Thoughts,
    Told,
    Words,
)
from ...turns import Pairing
from ..items import NAME
from .read_items import has_no_message, is_reference, read_item, read_paired
from .read_tools import TOOL_ITEMS

_TEXTS = frozenset({"input_text", "output_text", "text"})
_NOTHING = msgspec.Raw(b"")
_SILENT = msgspec.Raw(b'""')
_TOOLS = Told(_SILENT)
"""Stands for an item that brings tools along, and is no message."""


class _Part(msgspec.Struct, frozen=True, gc=False):
    type: str
    text: msgspec.Raw = _NOTHING
    annotations: Any = None
    prompt_cache_breakpoint: Any = None


class _Summary(msgspec.Struct, frozen=True, gc=False):
    text: msgspec.Raw = _NOTHING


class _Item(msgspec.Struct, frozen=True, gc=False):
    """Any item, with all that its reader looks at where it is plain."""

    type: str = "message"
    role: str = ""
    content: str | list[_Part] | None = None
    id: str | None = None
    call_id: str = ""
    name: str | None = None
    namespace: str | None = None
    arguments: msgspec.Raw = _NOTHING
    output: msgspec.Raw = _NOTHING
    summary: list[_Summary] | None = None
    encrypted_content: str | None = None


_encode = msgspec.json.Encoder().encode
_parts = msgspec.json.Decoder(list[_Part]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, BadRequest, … for what is wrong with it."""
    ahead: Sequence[Any] = ()
    if type(cut.messages) is _Behind:
        if cut.before is not None:
            raise recall.FieldByField  # tools of which some messages did not know
        ahead = [
            MEMORY.read(bytes(item))
            for item in _items(b"".join(cut.listed.json().pieces))[: cut.messages.ahead]
        ]
    return recall.read_history(cut, leading, NAME, _read, _follow, ahead)


def _plain(item: _Item) -> Plain | None:
    type = item.type
    if type == "function_call":
        return _call(item)
    if type == "function_call_output":
        return _result(item)
    if type == "reasoning":
        return _thoughts(item)
    if type == "additional_tools":
        return _TOOLS
    return _message(item) if type == "message" else None


def _thoughts(item: _Item) -> Said | None:
    """Thoughts that this protocol sealed itself, of which nothing or one thing is shown."""
    seal, summary = item.encrypted_content, item.summary or ()
    if not seal or seal.startswith(seals.OURS) or item.content or len(summary) > 1:
        return None
    if not summary:
        return Said([Thoughts(_SILENT)])
    text = summary[0].text
    return Said([Thoughts(text)]) if _is_text(text) else None


def _call(item: _Item) -> Said | None:
    id, name, arguments = item.call_id, item.name, item.arguments
    if not (id and name) or item.namespace or id.startswith(ids.OURS) or not _is_text(arguments):
        return None
    return Said([Call(id, name, arguments)])


def _result(item: _Item) -> Asked | None:
    id, output = item.call_id, item.output
    if not id or id.startswith(ids.OURS):
        return None
    if _is_text(output):
        return Asked([Result(id, [Words(output)])])
    words = _words(_parts(output)) if LISTS <= output < BEYOND_LISTS else None
    return None if words is None else Asked([Result(id, words)])


def _message(item: _Item) -> Plain | None:
    content = item.content
    if not content:
        return None
    words = [Words(msgspec.Raw(_encode(content)))] if isinstance(content, str) else _words(content)
    if words is None:
        return None
    if item.role == "assistant":
        return Said(words)
    return Asked(words) if item.role == "user" else None


def _words(parts: list[_Part]) -> list[Words] | None:
    words: list[Words] = []
    for part in parts:
        if part.type not in _TEXTS or part.text >= BEYOND_STRINGS or not part.text:
            return None
        if part.annotations or part.prompt_cache_breakpoint is not None:
            return None
        words.append(Words(part.text))
    return words


def _is_text(json: msgspec.Raw) -> bool:
    """Is it a string with anything in it?"""
    return len(json) > 2 and json < BEYOND_STRINGS


_read_items = recall.reader(_Item, _plain)


class _Behind(list[Plain | None]):
    """The messages of a list that brings tools along ahead of them."""

    def __init__(self, items: Sequence[Plain | None]) -> None:
        self.ahead = next((at for at, item in enumerate(items) if item is not _TOOLS), len(items))
        super().__init__(None if item is _TOOLS else item for item in items[self.ahead :])


def read_list(given: bytes | memoryview) -> list[Plain | None]:
    """Reads a list of items, without those at its beginning that only bring tools along."""
    items = _read_items(given)
    return _Behind(items) if _TOOLS in items else items


def _follow(
    item: bytes | msgspec.Raw, at: int, calls: dict[str, int], unusual: Mapping[int, Message]
) -> Message:
    where = f"input[{at}]"
    given = as_object(decoded(item, at), where)
    if given.get("type") in TOOL_ITEMS or is_reference(given) or has_no_message(given):
        raise recall.FieldByField
    return read_paired(given, where, Pairing(calls), at)


def _read(item: bytes | msgspec.Raw, at: int) -> Message:
    where = f"input[{at}]"
    return read_item(as_object(decoded(item, at), where), where)
