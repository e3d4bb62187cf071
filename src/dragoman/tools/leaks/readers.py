"""The parsers behind the table of formats: the body of a block in, the calls it holds out.

A reader takes the body (what stands between the opening and the end of a block), the name that the
opening gave (if it gave one) and the declared tools. It returns None where it sees no call of a
declared tool; `last` says that no more text will come, so a body that looks unfinished is all there
is.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from .json_text import Written, written_calls
from .values import Catalog, is_json, literal, parsed, quoted, typed

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
    if calls is None or not all(call.strict and _is_object(call.arguments) for call in calls):
        return None
    return _declared(calls, tools)


def _declared(calls: list[Written] | None, tools: Catalog) -> list[Call] | None:
    """All of them or none: half a block cannot be shown as text."""
    found: list[Call] = []
    for call in calls or ():
        name = tools.resolve(call.name)
        if name is None:
            return None
        found.append((name, call.arguments))
    return found or None


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, strict=False), dict)
    except (ValueError, RecursionError):
        return False


def read_arguments(body: str, name: str, _tools: Catalog, _last: bool) -> list[Call] | None:
    """The body is the arguments; the opening gave the name."""
    return [(name, body.strip() or "{}")]


def read_pythonic(body: str, _name: str, tools: Catalog, _last: bool) -> list[Call] | None:
    """`[get_weather(city='Oslo'), add(a=1, b=2)]`"""
    tree = parsed(body)
    if not isinstance(tree, ast.List) or not tree.elts:
        return None
    calls: list[Call] = []
    for node in tree.elts:
        call = _python_call(node, tools)
        if call is None:
            return None
        calls.append(call)
    return calls


def _python_call(node: ast.expr, tools: Catalog) -> Call | None:
    if not isinstance(node, ast.Call) or node.args:
        return None
    name = tools.resolve(ast.unparse(node.func))
    parts: list[str] = []
    for keyword in node.keywords:
        value = literal(keyword.value)
        if keyword.arg is None or value is None:
            return None
        parts.append(f"{quoted(keyword.arg)}: {value}")
    return (name, f"{{{', '.join(parts)}}}") if name else None


_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_][\w-]*)(\s*:)")


def _read_quoted(quote: str, body: str, name: str, _tools: Catalog, last: bool) -> list[Call] | None:
    """Gemma: `{city:<|"|>Oslo<|"|>,days:3}`, keys bare and strings between tokens."""
    parts = body.split(quote)
    if len(parts) % 2 == 0 and not last:
        return None  # the end stands inside a string
    text = "".join(
        quoted(part) if index % 2 else _BARE_KEY.sub(r'\1"\2"\3', part) for index, part in enumerate(parts)
    )
    return [(name, text)]


def quoted_by(quote: str) -> Reader:
    return partial(_read_quoted, quote)


class Markup(msgspec.Struct, frozen=True):
    """How one family of XML-like markup writes a call and its parameters.

    `parameter` gives the key in its first group; a second one, if any, the other attributes.
    `newlines` says that the model's template puts each value on lines of its own.
    """

    call: re.Pattern[str]
    call_ends: tuple[str, ...]
    parameter: re.Pattern[str]
    parameter_end: re.Pattern[str]
    newlines: bool = False


def markup_reader(markup: Markup) -> Reader:
    return partial(_read_markup, markup)


def _read_markup(markup: Markup, body: str, name: str, tools: Catalog, last: bool) -> list[Call] | None:
    spans = list(_parameters(markup, body, name, tools))
    if not spans:
        return None if body.strip() else [(name, "{}")]
    if not (last or _finished(markup, body)):
        return None
    ends = [start.start() for start in spans[1:]] + [len(body)]
    pairs: dict[str, str] = {}
    for opening, end in zip(spans, ends, strict=True):
        key = opening[1].strip()
        value = _trimmed(_value(markup, body[opening.end() : end]), markup)
        pairs[key] = _fragment(value, opening, tools.types(name, key))
    return [(name, _unwrapped(pairs, name, tools) or _joined(pairs))]


def _parameters(markup: Markup, body: str, name: str, tools: Catalog) -> Iterator[re.Match[str]]:
    """The openings of this call's parameters: not those that a value quotes.

    A value may hold markup of its own (vllm#44060: a file that explains the format). An opening
    counts where no quoted call is open, after the end of the parameter before it. Qwen forgets that
    end at times; then a declared key that has not come yet counts too.
    """
    seen: set[str] = set()
    depth = 0
    for token in _tokens(markup).finditer(body):
        if token.group().startswith("</"):
            depth = max(0, depth - 1)
        elif not (opening := markup.parameter.match(body, token.start())):
            depth += 1
        elif not depth and _begins(markup, body, opening, seen, tools.types(name, opening[1])):
            seen.add(opening[1])
            yield opening


def _begins(
    markup: Markup,
    body: str,
    opening: re.Match[str],
    seen: set[str],
    types: frozenset[str] | None,
) -> bool:
    before = body[: opening.start()].rstrip()
    if not seen:
        return not before
    return _ends_parameter(markup, before) or (types is not None and opening[1] not in seen)


def _tokens(markup: Markup) -> re.Pattern[str]:
    ends = "|".join(map(re.escape, markup.call_ends))
    return re.compile(f"{markup.call.pattern}|{ends}|{markup.parameter.pattern}")


def _finished(markup: Markup, body: str) -> bool:
    """Whether the end that was seen is the call's own, and not one inside a value."""
    opened = len(markup.call.findall(body))
    closed = sum(body.count(end) for end in markup.call_ends)
    return opened <= closed and _ends_parameter(markup, body.rstrip())


def _ends_parameter(markup: Markup, text: str) -> bool:
    tail = text[-40:]  # longer than any closing tag
    return any(end.end() == len(tail) for end in markup.parameter_end.finditer(tail))


def _value(markup: Markup, region: str) -> str:
    """Up to the last closing tag: a value may contain one, the call's structure may not."""
    ends = list(markup.parameter_end.finditer(region))
    return region[: ends[-1].start()] if ends else region.rstrip()


def _trimmed(value: str, markup: Markup) -> str:
    if value.startswith("<![CDATA[") and value.endswith("]]>"):  # MiniCPM, for special characters
        return value[9:-3]
    leading, trailing = value.startswith("\n"), value.endswith("\n")
    if markup.newlines or (leading and trailing and len(value) > 1):
        value = value.removeprefix("\n").removesuffix("\n")
    return value


def _fragment(value: str, opening: re.Match[str], types: frozenset[str] | None) -> str:
    attributes = opening[2] if opening.re.groups > 1 else ""
    if 'string="true"' in attributes:  # DSML says itself what is a string
        return quoted(value)
    if 'string="false"' in attributes and is_json(value):
        return value.strip()
    return typed(value, types)


_WHOLE = frozenset({"arguments", "parameters", "args", "input"})


def _unwrapped(pairs: dict[str, str], name: str, tools: Catalog) -> str | None:
    """The whole object in one parameter called arguments (sglang#38386)."""
    if len(pairs) != 1:
        return None
    key, value = next(iter(pairs.items()))
    if key not in _WHOLE or tools.types(name, key) is not None:
        return None
    inner = msgspec.json.decode(value, type=str) if value[0] == '"' else value
    return inner if _is_object(inner) else None


def _joined(pairs: dict[str, str]) -> str:
    return f"{{{', '.join(f'{quoted(key)}: {value}' for key, value in pairs.items())}}}"
