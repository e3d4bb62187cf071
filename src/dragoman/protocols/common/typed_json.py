"""Typed decoding of a client's JSON with msgspec, which checks the types.

A struct declares the members of one kind of object. An error of msgspec about a wrong member ("Expected
`str`, got `int` - at `$.content[0].text`") becomes a `BadRequest` that names the path in the client's
request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Generic, TypeVar

import msgspec

from ...model.errors import BadRequest
from ...model.messages import Raw, Request
from ...wire import surrogates
from ...wire.frames import is_utf8
from .fields import Body, Obj, decode_json, join

T = TypeVar("T", bound=msgspec.Struct)
V = TypeVar("V")
Members = Mapping[str, msgspec.Raw]
"""The undecoded members of a JSON object."""

# msgspec's errors are text only. The tests in `tests/protocols/test_typed.py` fail if a new version words
# them differently.
_PLACE = re.compile(r"(?P<what>.*) - at `\$\.?(?P<path>.*)`", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`(?:, got `(?P<got>[^`]+)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")
_EMPTY = " of length >= 1"
_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_NULL = msgspec.Raw(b"null")
_OPENING = re.compile(rb"\[\s*")
_GAP = re.compile(rb"\s*,\s*")
_OPENS_OBJECT, _OPENS_ARRAY, _OPENS_STRING = ord("{"), ord("["), ord('"')

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


Read = Callable[[Body, str], Request]


def reads_body(read: Read) -> Read:
    """Decorate a request reader: JSON that is nested too deeply becomes a `BadRequest`."""

    @wraps(read)
    def checked(body: Body, path: str = "") -> Request:
        try:
            return read(body, path)
        except RecursionError:
            raise BadRequest("the request body is nested too deeply") from None

    return checked


def body_members(body: Body) -> dict[str, msgspec.Raw]:
    """Split a request body, which must be one JSON object, into its members."""
    # msgspec does not check the UTF-8 of strings that it skips, and some of them are sent on undecoded.
    if not (body.isascii() or is_utf8(body)):
        raise BadRequest("the request body is not valid UTF-8")
    try:
        return _split_body(body)
    except msgspec.ValidationError as error:
        raise bad_request(error, "the request body") from None
    except ValueError as error:
        raise BadRequest(f"the request body is not valid JSON: {error}") from None


def _split_body(body: Body) -> dict[str, msgspec.Raw]:
    r"""Split a body. JavaScript clients may send lone surrogates (`"\ud83d"`): they are replaced."""
    try:
        return _members(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\ud" not in body.lower():
            raise
        return _members(_encode(decode_json(body)))


def decode_members(members: Members, undecoded: Collection[str]) -> Obj:
    """Decode the members, except those in `undecoded`, which stay `msgspec.Raw`."""
    return {
        key: raw if key in undecoded and raw != _NULL else value(raw, key) for key, raw in members.items()
    }


def as_json(value: Any) -> msgspec.Raw:
    """Encode a value for a reader that takes undecoded JSON."""
    try:
        return msgspec.Raw(_encode(value))
    except UnicodeEncodeError:
        return msgspec.Raw(_encode(surrogates.replace_lone_surrogates(value)))


def value(raw: msgspec.Raw, where: str) -> Any:
    """Decode one JSON value of any type."""
    try:
        return _decode(raw)
    except msgspec.ValidationError as error:
        raise bad_request(error, where) from None


def optional(raw: msgspec.Raw | msgspec.UnsetType) -> msgspec.Raw | None:
    """A member that may be missing or null: None in both cases."""
    return None if raw is msgspec.UNSET or raw == _NULL else raw


def opens_string(raw: msgspec.Raw) -> bool:
    return memoryview(raw)[0] == _OPENS_STRING


def opens_object(raw: msgspec.Raw) -> bool:
    return memoryview(raw)[0] == _OPENS_OBJECT


def need_object(raw: msgspec.Raw, where: str) -> None:
    """Refuse a value that is not an object."""
    if not opens_object(raw):
        members_of(raw, where)


def opens_array(raw: msgspec.Raw) -> bool:
    return memoryview(raw)[0] == _OPENS_ARRAY


def member(members: Members, key: str, kind: type[V], where: str) -> V:
    """Decode a required member of an object as this type."""
    if key not in members:
        raise BadRequest("is required", join(where, key))
    try:
        return msgspec.json.decode(members[key], type=kind)
    except msgspec.ValidationError as error:
        raise bad_request(error, join(where, key)) from None


def items(raw: msgspec.Raw, where: str) -> list[msgspec.Raw]:
    """The undecoded items of an array."""
    try:
        return _items(raw)
    except msgspec.ValidationError as error:
        raise bad_request(error, where) from None


class LazyArray:
    """An array of a request. It is decoded as a whole, and split into its items only on demand."""

    __slots__ = ("_items", "_size", "_where", "json")

    def __init__(self, json: msgspec.Raw, where: str) -> None:
        self.json = json
        self._where = where
        self._items: list[msgspec.Raw] | None = None
        self._size: int | None = None

    def __len__(self) -> int:
        return len(self.items) if self._size is None else self._size

    @property
    def items(self) -> list[msgspec.Raw]:
        """The undecoded items of the array."""
        if self._items is None:
            self._items = items(self.json, self._where)
        return self._items

    def __getitem__(self, at: int) -> msgspec.Raw:
        return self.items[at]

    def spaced(self, changed: Iterable[Any]) -> msgspec.Raw:
        """The JSON of an array of these items, with the white space of this one.

        As long as the items are the same, so are the bytes.
        """
        given, first = memoryview(self.json), memoryview(self.items[0])
        opening = _OPENING.match(given)
        assert opening is not None
        gap = _GAP.match(given, opening.end() + len(first))
        between = b"," if gap is None else gap[0]
        return msgspec.Raw(opening[0] + between.join(map(_encode, changed)) + b"]")

    def decoded(
        self, usual: Callable[[msgspec.Raw], Sequence[V]], one: Callable[[msgspec.Raw, str], V]
    ) -> Iterable[V]:
        """Decode the items as structs: all at once with `usual`, or, if that fails, one by one with `one`.

        One by one, the first wrong item raises the error.
        """
        try:
            decoded = usual(self.json)
            self._size = len(decoded)
            return decoded
        except msgspec.ValidationError:
            return (one(raw, f"{self._where}[{at}]") for at, raw in enumerate(self.items))


def unchanged_array(raws: Sequence[Raw | None]) -> msgspec.Raw | None:
    """The JSON of an array, if `raws` are all of its items in order. Copying it is faster than its items."""
    first = raws[0] if raws else None
    listed = None if first is None else first.held
    if not isinstance(listed, LazyArray) or len(listed) != len(raws):
        return None
    for at, raw in enumerate(raws):
        if raw is None or raw.held is not listed or raw.at != at:
            return None
    return listed.json


def members_of(raw: msgspec.Raw, where: str) -> dict[str, msgspec.Raw]:
    """The undecoded members of an object."""
    try:
        return _members(raw)
    except msgspec.ValidationError as error:
        raise bad_request(error, where) from None


class Reader(Generic[T]):
    """Decodes objects of one struct type."""

    def __init__(self, kind: type[T]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        tag = kind.__struct_config__.tag_field
        self._known = frozenset((*kind.__struct_encode_fields__, *((tag,) if tag else ())))

    def read(self, raw: msgspec.Raw, where: str) -> T:
        """Decode the object `raw` at the path `where` of the request."""
        try:
            return self._decode(raw)
        except msgspec.ValidationError as error:
            raise bad_request(error, where) from None

    def split(self, members: Members, where: str) -> tuple[T, Obj | None]:
        """Decode these members. Returns the struct, and the members that the struct does not declare."""
        known = {key: raw for key, raw in members.items() if key in self._known}
        unknown = {key: value(raw, join(where, key)) for key, raw in members.items() if key not in known}
        return self.read(msgspec.Raw(_encode(known)), where), unknown or None


def bad_request(error: msgspec.ValidationError, where: str) -> BadRequest:
    """Turn an error of msgspec about the value at `where` into a `BadRequest`."""
    text, path = str(error), ""
    if place := _PLACE.fullmatch(text):
        text, path = place["what"], place["path"]
    where = where + path if path.startswith("[") else join(where, path) if path else where
    if missing := _MISSING.fullmatch(text):
        return BadRequest("is required", join(where, missing["key"]))
    if expected := _EXPECTED.match(text):
        # Null in the place of a required member reads better as a missing member.
        if expected["got"] == "null" and path and not path.endswith("]"):
            return BadRequest("is required", where)
        if text.endswith(_EMPTY):
            return BadRequest("must not be empty", where)
        return BadRequest(_expected(expected["kinds"], expected["got"]), where)
    return BadRequest(text[:1].lower() + text[1:], where)


def _expected(kinds: str, got: str | None) -> str:
    wanted = " or ".join(_WORDS.get(kind, kind) for kind in kinds.split(" | ") if kind != "null")
    return f"expected {wanted}" + (f", got {_WORDS.get(got, got)}" if got else "")
