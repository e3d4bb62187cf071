"""JSON that is read when somebody asks for it: tools, of which an agent offers dozens and calls a few.

A list of them is gone through once, for names and descriptions. Of a schema only the keywords at its top are
told apart, which is enough to hand it on; what they say is found out when a call has to be judged by it, or
for an upstream that does not take all of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import msgspec

from ..messages import Raw, Tool

T = TypeVar("T")

_decode = msgspec.json.Decoder().decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_json(data: bytes | msgspec.Raw) -> Any:
    """What `data`, which was gone over before, says; a number that no float holds stays JSON."""
    try:
        return _decode(data)
    except msgspec.ValidationError:
        return json.loads(bytes(data), parse_float=_number, parse_int=_number)


def _number(text: str) -> Any:
    try:
        return _decode(text)
    except msgspec.ValidationError:
        return msgspec.Raw(text.encode())


class Unread(Sequence[Any]):
    """A list of a request's, as it came."""

    __slots__ = ("_values", "json")

    def __init__(self, data: bytes) -> None:
        self.json = msgspec.Raw(data)
        self._values: list[Any] | None = None

    @property
    def values(self) -> list[Any]:
        """The list, read."""
        values = self._values
        if values is None:
            values = self._values = read_json(self.json)
        return values

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.values[index]

    def __eq__(self, other: object) -> bool:
        return self.values == (other.values if isinstance(other, Unread) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.values)


def tool_reader(
    usual: type[T],
    later: Callable[[T, Unread, int], Tool],
    others: Callable[[Any, str], Sequence[Tool]],
) -> Callable[[Unread], tuple[Tool, ...]]:
    """Reads a list of tools, of which no more than has to be is read: of what they usually are, `later` makes
    a tool, and `others` of what is something else, at its path."""
    all_of, one_of = msgspec.json.Decoder(list[usual]).decode, msgspec.json.Decoder(usual).decode

    def alone(item: msgspec.Raw, given: Unread, at: int) -> Sequence[Tool]:
        try:
            return (later(one_of(item), given, at),)
        except msgspec.ValidationError:
            return others(_decode(item), f"tools[{at}]")

    def read(given: Unread) -> tuple[Tool, ...]:
        try:
            return tuple([later(offered, given, at) for at, offered in enumerate(all_of(given.json))])
        except msgspec.ValidationError:
            items = _items(given.json)
        return tuple([tool for at, item in enumerate(items) for tool in alone(item, given, at)])

    return read


def listed(value: Any) -> Any:
    """`value`, read if it is such a list."""
    return value.values if type(value) is Unread else value


def as_it_came(value: Any) -> Any:
    """`value` for who sends it on: such a list as JSON."""
    return value.json if type(value) is Unread else value


class UnreadItem(Raw, frozen=True, gc=False):
    """One of an `Unread` list, which is the `value` it is made with."""

    at: int

    @property
    def value(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _LIST.__get__(self)[self.at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raw) and (self.protocol, self.value) == (other.protocol, other.value)

    __hash__ = None  # type: ignore[assignment]


class UnreadTool(Tool, frozen=True, kw_only=True, gc=False):
    """A tool with keywords that are JSON. The `parameters` it is made with are what was read of them."""

    keywords: dict[str, msgspec.Raw]  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def parameters(self) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        read = _PARAMETERS.__get__(self)
        if read is None:
            read = _schema(self.keywords)
            _PARAMETERS.__set__(self, read)
        return read

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and _fields(self) == _fields(other)

    __hash__ = None  # type: ignore[assignment]


# What stands behind the properties.
_LIST = Raw.__dict__["value"]
_PARAMETERS = Tool.__dict__["parameters"]


def _schema(keywords: dict[str, msgspec.Raw]) -> dict[str, Any]:
    try:
        return {keyword: read_json(value) for keyword, value in keywords.items()}
    except RecursionError:  # nested beyond what can be read, now that it is to be: it forbids nothing
        return {}


def _fields(tool: Tool) -> list[Any]:
    return [getattr(tool, name) for name in Tool.__struct_fields__]
