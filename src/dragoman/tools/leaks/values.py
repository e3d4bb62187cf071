"""The declared tools, and the values of markup that writes every value as plain text."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

_INDEX = re.compile(r":\d+$")  # Kimi: functions.get_weather:0
_SEGMENT = re.compile(r"[.:/]")
_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NULLS = frozenset({"null", "None"})
_REF = "#/"

Schema = Mapping[str, Any]


class Catalog:
    """The tools a client declared: what a model's spelling of a name means, and parameter types."""

    __slots__ = ("_folded", "_tools")

    def __init__(self, tools: Mapping[str, Schema | None]) -> None:
        self._tools = tools
        self._folded: dict[str, list[str]] = {}
        for name in tools:
            self._folded.setdefault(name.casefold(), []).append(name)

    def __len__(self) -> int:
        return len(self._tools)

    def resolve(self, name: str) -> str | None:
        """The one declared tool that `name` can mean; None when there is none, or more than one."""
        bare = _INDEX.sub("", name.strip())
        last = _SEGMENT.split(bare)[-1]  # functions.Read, default_api:Read
        for spelling in (name, bare, last):
            if spelling in self._tools:
                return spelling
        for spelling in (bare.casefold(), last.casefold()):
            if same := self._folded.get(spelling):
                return same[0] if len(same) == 1 else None
        return self._by_suffix(last.casefold())

    def _by_suffix(self, name: str) -> str | None:
        """Models drop the server's prefix of a tool: `search` for `mcp__docs__search`."""
        ending = "__" + name
        found = [names for folded, names in self._folded.items() if folded.endswith(ending)]
        return found[0][0] if name and len(found) == 1 and len(found[0]) == 1 else None

    def types(self, tool: str, parameter: str) -> frozenset[str] | None:
        """The JSON types that a parameter allows; None when it is not declared."""
        schema = self._tools.get(tool) or {}
        declared = _mapping(_mapping(schema).get("properties"))
        if parameter not in declared:
            return None
        return frozenset(_types(declared[parameter], schema, 0))


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _types(schema: Any, root: Schema, depth: int) -> Iterator[str]:
    here = _mapping(schema)
    if depth > 8:  # a schema that refers to itself
        return
    ref = here.get("$ref")
    if isinstance(ref, str) and ref.startswith(_REF):
        yield from _types(_referred(ref, root), root, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for branch in here.get(keyword) or ():
            yield from _types(branch, root, depth + 1)
    yield from _own_types(here)


def _own_types(schema: Mapping[str, Any]) -> Iterator[str]:
    named = schema.get("type")
    for name in [named] if isinstance(named, str) else named or ():
        yield str(name).lower()  # Gemini writes STRING
    if schema.get("nullable") is True:
        yield "null"
    if named is None and any(isinstance(value, str) for value in schema.get("enum") or ()):
        yield "string"


def _referred(ref: str, root: Schema) -> Any:
    here: Any = root
    for step in ref[len(_REF) :].split("/"):
        here = _mapping(here).get(step)
    return here


def typed(value: str, types: frozenset[str] | None) -> str:
    """`value` as JSON text of a type that the parameter allows; a string when it fits no other.

    >>> typed("5", frozenset({"integer"})), typed("5", frozenset({"string"}))
    ('5', '"5"')
    """
    bare = value.strip()
    types = types or frozenset()
    if bare in _NULLS and "null" in types:
        return "null"
    if "string" in types:
        return quoted(value)
    if "boolean" in types and bare.lower() in ("true", "false"):
        return bare.lower()
    if "integer" in types and _INTEGER.fullmatch(bare):
        return bare
    if "number" in types and _NUMBER.fullmatch(bare):
        return bare
    if types & {"array", "object"} and bare[:1] in ("[", "{"):
        return structure(bare) or quoted(value)
    return quoted(value)


def quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def structure(text: str) -> str | None:
    """An array or object as JSON text, also when it was written as Python: `['a', True]`."""
    if is_json(text):
        return text
    tree = parsed(text)
    return literal(tree) if tree is not None else None


def parsed(text: str) -> ast.expr | None:
    """A Python expression; None when `text` is none."""
    try:
        with warnings.catch_warnings():  # "\\d" in a model's string is no concern of the log
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


_WORDS = {"true": "true", "false": "false", "null": "null"}


def literal(node: ast.expr) -> str | None:
    """A Python literal (or a word of JSON) as JSON text; None if it is no value."""
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id)
    if isinstance(node, ast.Dict):
        return _object(node)
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = [literal(item) for item in node.elts]
        return f"[{', '.join(part for part in parts if part)}]" if None not in parts else None
    return _scalar(node)


def _object(node: ast.Dict) -> str | None:
    parts: list[str] = []
    for key, item in zip(node.keys, node.values, strict=True):
        value = literal(item)
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)) or value is None:
            return None
        parts.append(f"{quoted(key.value)}: {value}")
    return f"{{{', '.join(parts)}}}"


def _scalar(node: ast.expr) -> str | None:
    sign = ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = "-", node.operand
    if not isinstance(node, ast.Constant):
        return None
    value = node.value
    if isinstance(value, bool) or value is None:
        return json.dumps(value) if not sign else None
    if isinstance(value, (int, float)):
        return f"{sign}{json.dumps(value)}"
    return quoted(value) if isinstance(value, str) and not sign else None
