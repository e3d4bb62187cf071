"""Read the JSON of Anthropic's answers.

Almost every frame is a delta that holds nothing but its text: `plain_delta` reads it in one step. All other
objects are read member by member. What the decoder takes is understood, and what it leaves stays as it came.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ....model.errors import UpstreamError
from ....model.events import Usage
from ....wire.structs import read_value
from ....wire.surrogates import replace_lone_surrogates
from ...common.fields import Obj, is_array, is_object

T = TypeVar("T")
Members = dict[str, Any]
"""The members of an object. Those that were not read yet are `msgspec.Raw`."""

_NULL = msgspec.Raw(b"null")


class TextPiece(msgspec.Struct, tag="text_delta", tag_field="type", forbid_unknown_fields=True, gc=False):
    text: str


class ThinkingPiece(
    msgspec.Struct, tag="thinking_delta", tag_field="type", forbid_unknown_fields=True, gc=False
):
    text: str = msgspec.field(name="thinking")


class InputPiece(
    msgspec.Struct, tag="input_json_delta", tag_field="type", forbid_unknown_fields=True, gc=False
):
    text: str = msgspec.field(name="partial_json")


class PlainDelta(
    msgspec.Struct, tag="content_block_delta", tag_field="type", forbid_unknown_fields=True, gc=False
):
    index: int
    delta: TextPiece | ThinkingPiece | InputPiece


plain_delta = msgspec.json.Decoder(PlainDelta).decode
"""Raises msgspec.DecodeError for any other frame."""
strict_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_string = msgspec.json.Decoder(str).decode
# Some servers send counts as strings or floats.
_integer = msgspec.json.Decoder(int, strict=False).decode


def take(members: Members, name: str, read: Callable[[Any], T]) -> T | None:
    """Take a member out and read it. A null says nothing, so it stays and is kept."""
    value = members.get(name)
    if value is None or value == _NULL:
        return None
    del members[name]
    return read(value)


def named(members: Members) -> str:
    """Take out the type of an object; empty if it has none."""
    kind = take(members, "type", string)
    members.pop("type", None)
    return kind or ""


def index(members: Members, otherwise: int) -> int:
    """Take out the index of a block; `otherwise` if there is none."""
    number = take(members, "index", integer)
    members.pop("index", None)
    return otherwise if number is None else number


def given(members: Members, name: str) -> Any:
    """The value of a member that stays in its place; None if it is missing or null."""
    value = members.get(name)
    return None if value is None or value == _NULL else read_value(value)


def members_of(data: Any) -> Members:
    """The members of an object."""
    try:
        return strict_members(data)
    except (ValueError, RecursionError) as error:
        return lenient_members(data, error)


def lenient_members(data: Any, error: Exception) -> Members:
    """The members of an object that the strict decoder refused. They may hold lone surrogates."""
    value = _loaded(data, error)
    if not is_object(value):
        raise _unreadable(error)
    return {replace_lone_surrogates(key): _as_raw(inner) for key, inner in value.items()}


def items(data: Any) -> list[Any]:
    """The items of an array."""
    try:
        return list(_items(data))
    except (ValueError, RecursionError) as error:
        value = _loaded(data, error)
        if not is_array(value):
            raise _unreadable(error) from None
        return [_as_raw(inner) for inner in value]


def string(data: Any) -> str:
    """A string, without lone surrogates."""
    return replace_lone_surrogates(piece(data))


def piece(data: Any) -> str:
    """A string that the next frame continues: half of a surrogate pair may come with it."""
    try:
        return _string(data)
    except (ValueError, RecursionError) as error:
        value = _loaded(data, error)
        if not isinstance(value, str):
            raise _unreadable(error) from None
        return value


def integer(data: Any) -> int:
    try:
        return _integer(data)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None


def any_object(data: Any) -> Obj:
    """An object, decoded."""
    value = read_value(data)
    if not is_object(value):
        raise _unreadable(ValueError("expected an object"))
    return value


def usage(counts: Members) -> Usage:
    """Take the token counts. Like the neutral count, Anthropic's input excludes cached reads and writes."""
    # The counts of `message_delta` are cumulative and replace those of `message_start`. With server tools
    # they are much larger, after compaction smaller.
    details = take(counts, "output_tokens_details", members_of) or {}
    thinking = given(details, "thinking_tokens")
    if type(thinking) is int:
        del details["thinking_tokens"]
    if details:
        counts["output_tokens_details"] = details
    return Usage(
        input=take(counts, "input_tokens", integer),
        cache_read=take(counts, "cache_read_input_tokens", integer),
        cache_write=take(counts, "cache_creation_input_tokens", integer),
        output=take(counts, "output_tokens", integer),
        reasoning=thinking if type(thinking) is int else None,
    )


def _loaded(data: Any, error: Exception) -> Any:
    try:
        return json.loads(bytes(data), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _unreadable(error) from None


def _no_number(_: str) -> None:
    """NaN and Infinity are not JSON: no client could read them."""


def _as_raw(value: Any) -> msgspec.Raw:
    # ASCII output keeps a lone surrogate as an escape. Whoever reads the member handles it.
    return msgspec.Raw(json.dumps(value).encode())


def _unreadable(error: Exception) -> UpstreamError:
    return UpstreamError(f"the upstream sent an event that cannot be read: {error}")
