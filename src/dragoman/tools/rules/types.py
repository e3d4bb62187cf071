"""Rules for values: the schema wants one JSON type, and the model wrote another.

Each rule takes a value that does not fit and returns one that does, `ABSENT` if the member should be left
out, or `UNCHANGED`. No rule guesses: a value with two possible meanings stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, cast

from ..json_text import dump
from ..schema import Node
from .lenient_json import read_text
from .rule import ABSENT, UNCHANGED, Place, rule
from .tables import SAME_CHOICE, squash

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_NOTHING = frozenset({"", "null", "none", "undefined", "nil"})
_TYPE_NAMES = frozenset({"type", "value", "description"})


@rule("value-in-description", "types")
def unwrap_described(value: Any, node: Node, place: Place) -> Any:
    """A value inside an object that looks like a schema is taken out of it.

    schema: {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    before: {"city": {"type": "string", "value": "Paris"}}
    after: {"city": "Paris"}
    """
    if not isinstance(value, dict) or node.wants("object"):
        return UNCHANGED
    members = cast("dict[str, Any]", value)
    if "value" in members and members.keys() <= _TYPE_NAMES and node.fits(members["value"]):
        return members["value"]
    return UNCHANGED


# Lists as JSON text: opencode#34652, pi#3370. With closing tags of the model's markup at the end:
# opencode#1373.
@rule("json-in-member", "types")
def read_json(value: Any, node: Node, place: Place) -> Any:
    r"""A list or object that was written as a string is parsed.

    schema: {"properties": {"todos": {"type": "array"}}, "required": ["todos"]}
    before: {"todos": "[{\"content\": \"A\"}]</parameter>\n</invoke>"}
    after: {"todos": [{"content": "A"}]}
    """
    if not isinstance(value, str) or node.wants("string") or not node.wants("array", "object"):
        return UNCHANGED
    found = read_text(value)
    fits_type = (isinstance(found, list) and node.wants("array")) or (
        isinstance(found, dict) and node.wants("object")
    )
    return cast("Any", found) if fits_type else UNCHANGED


# Markup formats (Qwen, GLM) have no types, so every parameter is text (vllm-mlx#63). "3.14" for an integer
# has no certain meaning: hermes-agent#5265.
@rule("number-as-text", "types")
def read_number(value: Any, node: Node, place: Place) -> Any:
    """A number that was written as a string is parsed; "3.14" is not an integer and stays.

    schema: {"properties": {"limit": {"type": "integer"}, "score": {"type": "number"}}}
    before: {"limit": "10", "score": "0.50"}
    after: {"limit": 10, "score": 0.50}
    """
    if not isinstance(value, str) or not node.wants("integer", "number") or node.fits(value):
        return UNCHANGED
    text = value.strip()
    if not _NUMBER.fullmatch(text):
        return UNCHANGED
    # `Decimal` keeps the digits: "0.50" must not become 0.5, and a large integer must not lose digits.
    number = Decimal(text)
    if number == number.to_integral_value() and (node.wants("integer") or text.isdecimal()):
        return int(number)
    return number if node.wants("number") else UNCHANGED


# hermes-agent#5265, opencode#7513.
@rule("boolean-as-text", "types")
def read_boolean(value: Any, node: Node, place: Place) -> Any:
    """A boolean that was written as a word, 0 or 1 becomes true or false.

    schema: {"properties": {"all": {"type": "boolean"}, "deep": {"type": "boolean"}}}
    before: {"all": "True", "deep": 0}
    after: {"all": true, "deep": false}
    """
    if not node.wants("boolean") or not isinstance(value, (str, int)):
        return UNCHANGED
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    return False if word in _FALSE else UNCHANGED


@rule("integer-with-point", "types")
def drop_point(value: Any, node: Node, place: Place) -> Any:
    """10.0 becomes 10 if the schema wants an integer: clients with typed parsers refuse the point.

    schema: {"properties": {"limit": {"type": "integer"}}}
    before: {"limit": 10.0}
    after: {"limit": 10}
    """
    if not isinstance(value, Decimal) or not node.wants("integer") or node.wants("number"):
        return UNCHANGED
    # Bounded: 1e999999999 is an integer too, with a gigabyte of digits.
    return int(value) if value == value.to_integral_value() and value.adjusted() < 64 else UNCHANGED


@rule("scalar-for-text", "types")
def write_scalar(value: Any, node: Node, place: Place) -> Any:
    """A number or boolean becomes text, digit for digit, if the schema wants text.

    schema: {"properties": {"title": {"type": "string"}, "version": {"type": "string"}}}
    before: {"title": 2024, "version": 1.10}
    after: {"title": "2024", "version": "1.10"}
    """
    if not node.wants("string") or not isinstance(value, (bool, int, Decimal)):
        return UNCHANGED
    return str(value).lower() if isinstance(value, bool) else str(value)


# Zammad-MCP#201.
@rule("choice-spelling", "types")
def match_choice(value: Any, node: Node, place: Place) -> Any:
    """A choice with other case or separators gets the spelling of the schema.

    schema: {"properties": {"mode": {"enum": ["content", "files_with_matches"]}}}
    before: {"mode": "Files-With-Matches"}
    after: {"mode": "files_with_matches"}
    """
    if not isinstance(value, str):
        return UNCHANGED
    wanted = squash(value)
    return _only(_text_choices(node), lambda choice: bool(wanted) and squash(choice) == wanted)


@rule("choice-synonym", "types")
def translate_choice(value: Any, node: Node, place: Place) -> Any:
    """A word with the same meaning as exactly one choice becomes that choice.

    schema: {"properties": {"status": {"enum": ["pending", "in_progress", "completed"]}}}
    before: {"status": "done"}
    after: {"status": "completed"}
    """
    if not isinstance(value, str):
        return UNCHANGED
    wanted = squash(value)
    for group in SAME_CHOICE:
        if wanted in group:
            return _only(_text_choices(node), lambda choice, group=group: squash(choice) in group)
    return UNCHANGED


# OpenAI's strict mode makes every member required and nullable, so models write null for "not given". A null
# that the schema allows stays: openclaw#96729.
@rule("null-for-optional", "types")
def drop_null(value: Any, node: Node, place: Place) -> Any:
    """Null, "null" or an empty string for an optional member that may not be null is dropped.

    schema: {"properties": {"path": {"type": "string"}, "limit": {"type": "number"}}, "required": ["path"]}
    before: {"path": "a", "limit": "null"}
    after: {"path": "a"}
    """
    if place.required or node.types is None:
        return UNCHANGED
    if value is None:
        return ABSENT
    return ABSENT if isinstance(value, str) and value.strip().lower() in _NOTHING else UNCHANGED


@rule("item-in-list", "types")
def take_only_item(value: Any, node: Node, place: Place) -> Any:
    """A list with one item becomes the item, if the schema wants no list.

    schema: {"properties": {"path": {"type": "string"}}}
    before: {"path": ["src"]}
    after: {"path": "src"}
    """
    if not isinstance(value, list) or node.types is None or node.wants("array"):
        return UNCHANGED
    items = cast("list[Any]", value)
    return items[0] if len(items) == 1 and not isinstance(items[0], list) else UNCHANGED


# GLM: openclacky#411.
@rule("list-in-list", "types")
def flatten_list(value: Any, node: Node, place: Place) -> Any:
    """A list wrapped in one more list is unwrapped.

    schema: {"properties": {"files": {"type": "array", "items": {"type": "string"}}}}
    before: {"files": [["a", "b"]]}
    after: {"files": ["a", "b"]}
    """
    if not isinstance(value, list) or not node.wants("array") or node.items.wants("array"):
        return UNCHANGED
    items = cast("list[Any]", value)
    inner = items[0] if len(items) == 1 else None
    return cast("Any", inner) if isinstance(inner, list) else UNCHANGED


@rule("list-in-object", "types")
def take_only_list(value: Any, node: Node, place: Place) -> Any:
    """A list inside an object with one member, as models used to XML write it, is taken out.

    schema: {"properties": {"todos": {"type": "array", "items": {"type": "object", "required": ["id"]}}}}
    before: {"todos": {"item": [{"id": 1}]}}
    after: {"todos": [{"id": 1}]}
    """
    if not isinstance(value, dict) or not node.wants("array") or node.wants("object"):
        return UNCHANGED
    members = list(cast("dict[str, Any]", value).values())
    inner = members[0] if len(members) == 1 else None
    return cast("Any", inner) if isinstance(inner, list) else UNCHANGED


@rule("item-for-list", "types")
def wrap_item(value: Any, node: Node, place: Place) -> Any:
    """A single item becomes a list with one item, if the schema wants a list.

    schema: {"properties": {"files": {"type": "array", "items": {"type": "string"}}}}
    before: {"files": "a.txt"}
    after: {"files": ["a.txt"]}
    """
    if value is None or isinstance(value, list) or not node.wants("array"):
        return UNCHANGED
    # Text that begins like a list is a list that cannot be parsed, not an item.
    if isinstance(value, str) and (not value or value.lstrip()[:1] in ("[", "{")):
        return UNCHANGED
    return [value]


@rule("object-for-text", "types")
def write_object(value: Any, node: Node, place: Place) -> Any:
    r"""An object becomes its JSON text, if the schema wants text: the content of a JSON file.

    schema: {"properties": {"content": {"type": "string"}}}
    before: {"content": {"name": "x"}}
    after: {"content": "{\"name\": \"x\"}"}
    """
    if not node.wants("string") or node.choices is not None or not value:
        return UNCHANGED
    if isinstance(value, dict):
        return dump(value)
    holds_objects = isinstance(value, list) and any(
        isinstance(item, (dict, list)) for item in cast("list[Any]", value)
    )
    return dump(value) if holds_objects else UNCHANGED


def _text_choices(node: Node) -> list[str]:
    found = [choice for choice in node.choices or () if isinstance(choice, str)]
    for option in node.options:
        found.extend(_text_choices(option))
    return found


def _only(choices: Iterable[str], matches: Callable[[str], bool]) -> Any:
    found = [choice for choice in choices if matches(choice)]
    return found[0] if len(found) == 1 else UNCHANGED
