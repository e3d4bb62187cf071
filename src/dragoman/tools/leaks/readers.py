"""The readers of the table of formats: from the body of a block to the calls in it.

A reader takes the body (the text between the opening and the end of a block), the tool name in the opening
(if there is one) and the declared tools. It returns None if there is no call of a declared tool. `last`:
no more text will arrive, so a body that looks unfinished is all there is. This module has the readers of
JSON and Python. Markup has its own modules.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

from .catalog import Catalog
from .json_calls import WrittenCall, members, written_calls
from .python_text import original, parsed, statements
from .values import literal, quoted, typed

ReadCall = tuple[str, str]  # the declared name, and the arguments as text
Reader = Callable[[str, str, Catalog, bool], list[ReadCall] | None]


def read_json(body: str, name: str, tools: Catalog, last: bool) -> list[ReadCall] | None:
    """`{"name": …, "arguments": {…}}`, a list of them, or several in a row. Also a list of Python calls."""
    calls = written_calls(body)
    if calls is None and body[:1] == "[":
        return read_pythonic(body, name, tools, last)
    return _declared(calls, tools)


def read_bare_json(body: str, _name: str, tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """JSON without markup: only valid JSON with exactly the members of a call."""
    calls = written_calls(body)
    if calls is None or not all(call.strict and is_object(call.arguments) for call in calls):
        return None
    return _declared(calls, tools)


def _declared(calls: list[WrittenCall] | None, tools: Catalog) -> list[ReadCall] | None:
    """The calls, if all of them are of declared tools: a block becomes calls or stays text as a whole."""
    found: list[ReadCall] = []
    for call in calls or ():
        name = tools.resolve(call.name)
        if name is None or not _may_be_arguments(call.arguments, name, tools):
            return None
        found.append((name, call.arguments))
    return found or None


def _may_be_arguments(text: str, name: str, tools: Catalog) -> bool:
    """Whether this is an object, or a bare value for a tool with at most one parameter."""
    return text[:1] == "{" or (text[:1] != "[" and len(tools.parameters(name).keys) <= 1)


def is_object(text: str) -> bool:
    """Whether this is the JSON text of an object. Raw line breaks in strings are allowed."""
    try:
        return isinstance(json.loads(text, strict=False), dict)
    except (ValueError, RecursionError):
        return False


def read_arguments(body: str, name: str, _tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """The body is the arguments. The opening has the name."""
    return [(name, body.strip() or "{}")]


def read_valid_arguments(body: str, name: str, _tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """As `read_arguments`, but only valid JSON: the marks of this format alone are too weak a sign."""
    return [(name, body)] if is_object(body) else None


def read_nameless_arguments(body: str, _name: str, tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """Arguments without a tool name: a call of the only tool that they can be for."""
    if not is_object(body):
        return None
    keys = frozenset(members(body))
    fitting = [
        tool
        for tool in tools
        if keys and keys <= tools.parameters(tool).keys and tools.parameters(tool).required <= keys
    ]
    return [(fitting[0], body)] if len(fitting) == 1 else None


def read_only_argument(body: str, name: str, tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """The body is the only argument, as plain text: a tool with several parameters needs more."""
    keys = tools.parameters(name).keys
    text = body.strip().removeprefix('"').removesuffix('"')
    if len(keys) != 1 or not text:
        return None
    key = next(iter(keys))
    return [(name, f"{{{quoted(key)}: {typed(text, tools.types(name, key))}}}")]


def read_pythonic(body: str, _name: str, tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """`[get_weather(city='Oslo'), add(a=1, b=2)]`"""
    tree = parsed(body)
    return _python_calls(tree.elts, tools) if isinstance(tree, ast.List) else None


def read_python_lines(body: str, _name: str, tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """`get_weather(city='Oslo')`, one call per line."""
    return _python_calls(statements(body) or [], tools)


def _python_calls(nodes: list[ast.expr], tools: Catalog) -> list[ReadCall] | None:
    calls: list[ReadCall] = []
    for node in nodes:
        call = _python_call(node, tools)
        if call is None:
            return None
        calls.append(call)
    return calls or None


def _python_call(node: ast.expr, tools: Catalog) -> ReadCall | None:
    if not isinstance(node, ast.Call) or node.args:
        return None
    name = tools.resolve(original(ast.unparse(node.func)))
    parts: list[str] = []
    for keyword in node.keywords:
        value = literal(keyword.value)
        if keyword.arg is None or value is None:
            return None
        parts.append(f"{quoted(original(keyword.arg))}: {value}")
    return (name, f"{{{', '.join(parts)}}}") if name else None
