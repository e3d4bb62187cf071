"""Access to the members of a Gemini request: keys may be `camelCase` or `snake_case`, even in one body.

google-genai itself mixes both (`generationConfig` beside `parameters_json_schema`), and the API accepts one
object instead of a list (`"tools": {…}`). Errors name a key as the client wrote it.
"""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache
from typing import Any

import msgspec

from ...common import fields
from ...common.fields import Obj, is_object
from ...common.typed_json import LazyArray, items, opens_object

SIGNATURES = ("thoughtSignature", "thought_signature")
"""The names of a part's signature."""


@lru_cache(maxsize=512)
def snake(key: str) -> str:
    """`thinkingBudget` → `thinking_budget`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)


@lru_cache(maxsize=512)
def camel(key: str) -> str:
    """`thinking_budget` → `thinkingBudget`."""
    head, *tail = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def listed(raw: msgspec.Raw, where: str) -> list[tuple[msgspec.Raw, str]]:
    """The items of a list, or the single object instead of it, each with its path."""
    if opens_object(raw):
        return [(raw, where)]
    return [(item, f"{where}[{at}]") for at, item in enumerate(items(raw, where))]


class SplitArray(LazyArray):
    """An array of a request, as it came, with its items: the reader has split it already."""

    __slots__ = ()

    def __init__(self, json: msgspec.Raw, items: list[msgspec.Raw]) -> None:
        super().__init__(json, "")
        self._items = items

    def up_to(self, count: int) -> bytes:
        """The JSON of the array up to the end of its first `count` items, white space included."""
        json, end = bytes(self.json), 0
        for item in self.items[:count]:
            end = json.index(item, end) + len(bytes(item))
        return json[:end]


def merged(body: Obj, extras: Obj) -> Obj:
    """Merge `extras` into `body`, recursively."""
    result = dict(body)
    for key, value in extras.items():
        under = result.get(key)
        result[key] = merged(under, value) if is_object(under) and is_object(value) else value
    return result


class Fields:
    """One object of a request, with its path."""

    __slots__ = ("value", "where")

    def __init__(self, value: Obj, where: str) -> None:
        self.value = value
        self.where = where

    def key(self, name: str) -> str:
        """The client's spelling of `name`, which is camelCase."""
        if name in self.value:
            return name
        other = snake(name)
        return other if other in self.value else name

    def get(self, name: str) -> Any:
        return self.value.get(self.key(name))

    def path(self, name: str) -> str:
        return fields.join(self.where, self.key(name))

    def need_string(self, name: str) -> str:
        value = fields.need_string(self.value, self.key(name), self.where)
        return value or fields.reject("must not be empty", self.path(name))

    def string(self, name: str) -> str | None:
        return fields.string(self.value, self.key(name), self.where)

    def integer(self, name: str) -> int | None:
        return fields.integer(self.value, self.key(name), self.where)

    def number(self, name: str) -> float | None:
        return fields.number(self.value, self.key(name), self.where)

    def boolean(self, name: str) -> bool | None:
        return fields.boolean(self.value, self.key(name), self.where)

    def mapping(self, name: str) -> Obj | None:
        return fields.mapping(self.value, self.key(name), self.where)

    def strings(self, name: str) -> tuple[str, ...]:
        return fields.strings(self.value, self.key(name), self.where)

    def child(self, name: str) -> Fields | None:
        value = self.mapping(name)
        return None if value is None else Fields(value, self.path(name))

    def children(self, name: str) -> list[Fields]:
        """The objects of a list, or the single object instead of it."""
        key = self.key(name)
        value = self.value.get(key)
        if is_object(value):
            return [Fields(value, self.path(name))]
        return [Fields(item, at) for at, item in fields.objects(self.value, key, self.where)]

    def rest(self, known: Set[str]) -> Obj:
        """The members with other keys than `known`, in the client's spelling."""
        return {key: value for key, value in self.value.items() if camel(key) not in known}
