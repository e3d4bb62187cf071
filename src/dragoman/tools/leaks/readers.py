"""The parsers behind the table of formats: the body of a block in, the calls it holds out.

A reader takes the body (what stands between the opening and the end of a block), the name that the
opening gave (if it gave one) and the declared tools. It returns None where it sees no call of a
declared tool; `last` says that no more text will come, so a body that looks unfinished is all there
is. Here are the readers of JSON and of Python; markup has its own modules.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

from .catalog import Catalog
from .json_text import Written, written_calls
from .values import literal, parameter, parsed, quoted, statements

Call = tuple[str, str]  # the declared name, and the arguments as text
Reader = Callable[[str, str, Catalog, bool], list[Call] | None]


def read_json(body: str, name: str, tools: Catalog, last: bool) -> list[Call] | None:
    """`{"name": …, "arguments": {…}}`, a list of those, several in a row; or a list of Python."""
    calls = written_calls(body)
    if calls is None and body[:1] == "[":
        return read_pythonic(body, name, tools, last)
    return _declared(calls, tools)


def read_bare_json(body: str, _name: str, tools: Catalog, _last: bool) -> list[Call] | None:
    """JSON without markup: only valid JSON in exactly the shape of a call."""
    calls = written_calls(body)
    if calls is None or not all(call.strict and is_object(call.arguments) for call in calls):
        return None
    return _declared(calls, tools)


def _declared(calls: list[Written] | None, tools: Catalog) -> list[Call] | None:
    """All of them or none: half a block cannot be shown as text."""
    found: list[Call] = []
    for call in calls or ():
        name = tools.resolve(call.name)
        if name is None or not _may_be_arguments(call.arguments, name, tools):
            return None
        found.append((name, call.arguments))
    return found or None


def _may_be_arguments(text: str, name: str, tools: Catalog) -> bool:
    """An object; or a bare value, where the tool has only one parameter that can take it."""
    return text[:1] == "{" or (text[:1] != "[" and len(tools.place(name).keys) <= 1)


def is_object(text: str) -> bool:
    """Is it the JSON text of an object (raw line breaks in strings count as JSON)?"""
    try:
        return isinstance(json.loads(text, strict=False), dict)
    except (ValueError, RecursionError):
        return False


def read_arguments(body: str, name: str, _tools: Catalog, _last: bool) -> list[Call] | None:
    """The body is the arguments; the opening gave the name."""
    return [(name, body.strip() or "{}")]


def read_valid_arguments(body: str, name: str, _tools: Catalog, _last: bool) -> list[Call] | None:
    """The same, where so little marks the call that its arguments must be valid JSON."""
    return [(name, body)] if is_object(body) else None


def read_pythonic(body: str, _name: str, tools: Catalog, _last: bool) -> list[Call] | None:
    """`[get_weather(city='Oslo'), add(a=1, b=2)]`"""
    tree = parsed(body)
    return _python_calls(tree.elts, tools) if isinstance(tree, ast.List) else None


def read_python_lines(body: str, _name: str, tools: Catalog, _last: bool) -> list[Call] | None:
    """`get_weather(city='Oslo')`, one call per line."""
    return _python_calls(statements(body) or [], tools)


def _python_calls(nodes: list[ast.expr], tools: Catalog) -> list[Call] | None:
    calls: list[Call] = []
    for node in nodes:
        call = _python_call(node, tools)
        if call is None:
            return None
        calls.append(call)
    return calls or None


def _python_call(node: ast.expr, tools: Catalog) -> Call | None:
    if not isinstance(node, ast.Call) or node.args:
        return None
    name = tools.resolve(ast.unparse(node.func))
    parts: list[str] = []
    for keyword in node.keywords:
        value = literal(keyword.value)
        if keyword.arg is None or value is None:
            return None
        parts.append(f"{quoted(parameter(keyword.arg))}: {value}")
    return (name, f"{{{', '.join(parts)}}}") if name else None
