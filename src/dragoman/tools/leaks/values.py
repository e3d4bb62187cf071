"""Turns values that markup writes as plain text or as Python into JSON text."""

from __future__ import annotations

import ast
import json
import keyword
import re
import warnings

import msgspec

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
    return literal(tree) if tree is not None else None


def parsed(text: str) -> ast.expr | None:
    """A Python expression. None if `text` is not one."""
    found = statements(text)
    return found[0] if found and len(found) == 1 else None


def statements(text: str) -> list[ast.expr] | None:
    """Python expressions, one per line. None if there is anything else."""
    tree = _tree(text.strip()) or _tree(_in_python(text.strip()))
    if tree is None:
        return None
    found = [node.value for node in tree.body if isinstance(node, ast.Expr)]
    return found if len(found) == len(tree.body) else None


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():  # Python warns about "\\d" in a string; that belongs in no log
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# The closing quote is optional: else the search from each unclosed quote costs the square of the text.
_STRING = r"""'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?"""
_NO_PYTHON = re.compile(rf"({_STRING})|\b({'|'.join(keyword.kwlist)})(?=\s*=(?!=))", re.DOTALL)
_RESERVED = "reserved_word_"


def _in_python(text: str) -> str:
    """Make text valid Python: escape line breaks in strings (LFM2), rename parameters called `from`."""

    def spelled(found: re.Match[str]) -> str:
        if found[2]:
            return _RESERVED + found[2]
        return found[1].replace("\r", "\\r").replace("\n", "\\n")

    return _NO_PYTHON.sub(spelled, text)


def parameter(name: str) -> str:
    """The original name of a parameter that was renamed to be valid Python."""
    return name.removeprefix(_RESERVED)


_WORDS = {"true": "true", "false": "false", "null": "null"}


def literal(node: ast.expr) -> str | None:
    """A Python literal (or `true`, `false`, `null`) as JSON text. None if it is not a literal."""
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
