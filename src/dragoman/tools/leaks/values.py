"""Turns values that markup writes as plain text or as Python into JSON text."""

from __future__ import annotations

import ast
import json
import re

import msgspec

from .python_text import parsed

_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NULLS = frozenset({"null", "None"})


def typed(value: str, types: frozenset[str] | None) -> str:
    """`value` as JSON text of a type that the parameter allows. A string if no other type fits.

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
        return structure(bare) or _unescaped(bare) or quoted(value)
    return quoted(value)


def json_or_typed(value: str, types: frozenset[str] | None) -> str:
    """`value` if it is JSON, otherwise as `typed`. The word `null` is a string if the schema has no null.

    >>> json_or_typed("5", frozenset({"string"})), json_or_typed("null", frozenset({"string"}))
    ('5', '"null"')
    """
    bare = value.strip()
    word = bare in _NULLS and types is not None and "string" in types and "null" not in types
    return bare if is_json(bare) and not word else typed(value, types)


def _unescaped(text: str) -> str | None:
    r"""An array or object that was written like the inside of a JSON string: `[{\"id\": 1}]` (GLM)."""
    if '\\"' not in text:
        return None
    try:
        inner = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    return inner if is_json(inner) else None


def quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def structure(text: str) -> str | None:
    """An array or object as JSON text, also if it was written as Python: `['a', True]`."""
    if is_json(text):
        return text
    tree = parsed(text)
    return literal(tree) if isinstance(tree, (ast.List, ast.Tuple, ast.Dict)) else None


_WORDS = {"true": "true", "false": "false", "null": "null"}


def literal(node: ast.expr) -> str | None:
    """A Python literal (or `true`, `false`, `null`) as JSON text. None if it is not a literal."""
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id)
    if isinstance(node, ast.Dict):
        return _object(node)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
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
