"""Reads XML-like markup: a call whose parameters are elements with plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import msgspec

from .catalog import Catalog
from .readers import ReadCall, Reader, is_object
from .values import json_or_typed, quoted, typed

# Blanks between tags. Some models write a line break as `\\n`, as in a JSON string.
BLANKS = r"(?:\s|\\n)*"
_LINE_BREAK = "\\n"


class Markup(msgspec.Struct, frozen=True):
    """How one family of XML-like markup writes a call and its parameters.

    The first group of `parameter` is the key; a second group has the other attributes.
    `newlines`: the model's template puts a line break before and after each value. `valueless`: the key of
    a parameter that got no value; it is left out.
    """

    call: re.Pattern[str]
    call_ends: tuple[str, ...]
    parameter: re.Pattern[str]
    parameter_end: re.Pattern[str]
    newlines: bool = False
    valueless: re.Pattern[str] | None = None


def markup_reader(markup: Markup) -> Reader:
    return partial(_read_markup, markup)


def _read_markup(markup: Markup, body: str, name: str, tools: Catalog, last: bool) -> list[ReadCall] | None:
    spans = list(_parameters(markup, body, name, tools))
    if not spans:
        return None if _ended(markup, body) else [(name, "{}")]
    if not (last or _finished(markup, body)):
        return None
    ends = [start.start() for start in spans[1:]] + [len(body)]
    pairs: dict[str, str] = {}
    for opening, end in zip(spans, ends, strict=True):
        key = opening[1].strip()
        value = _trimmed(_value(markup, body[opening.end() : end]), markup)
        pairs[key] = _json_value(value, opening, tools.types(name, key))
    return [(name, _unwrapped(pairs, name, tools) or _joined(pairs))]


def _parameters(markup: Markup, body: str, name: str, tools: Catalog) -> Iterator[re.Match[str]]:
    """The openings of this call's parameters, without openings inside a value.

    A value may contain markup too (vllm#44060: a file that explains the format). An opening counts outside
    a quoted call, after the end of the parameter before it. Qwen sometimes forgets that end, so the opening
    of a declared parameter that did not occur yet counts as well.
    """
    seen: set[str] = set()
    depth = 0
    for token in _tokens(markup).finditer(body):
        if token.group() in markup.call_ends:
            depth = max(0, depth - 1)
        elif not (opening := markup.parameter.match(body, token.start())):
            depth += 1
        elif not depth and _begins_parameter(markup, body, opening, seen, tools.types(name, opening[1])):
            seen.add(opening[1])
            yield opening


def _begins_parameter(
    markup: Markup,
    body: str,
    opening: re.Match[str],
    seen: set[str],
    types: frozenset[str] | None,
) -> bool:
    before = _ended(markup, body[: opening.start()])
    if not seen:
        return not before
    return _ends_parameter(markup, before) or (types is not None and opening[1] not in seen)


def _tokens(markup: Markup) -> re.Pattern[str]:
    ends = "|".join(map(re.escape, markup.call_ends))
    return re.compile(f"{markup.call.pattern}|{ends}|{markup.parameter.pattern}")


def _finished(markup: Markup, body: str) -> bool:
    """Whether the end that was found is the end of the call, not one inside a value."""
    opened = len(markup.call.findall(body))
    closed = sum(body.count(end) for end in markup.call_ends)
    return opened <= closed and _ends_parameter(markup, _ended(markup, body))


def _ended(markup: Markup, text: str) -> str:
    """The text without the blanks at its end, and without keys there that got no value."""
    end = _before_blanks(text, len(text))
    while True:
        if text.endswith(_LINE_BREAK, 0, end):
            end = _before_blanks(text, end - len(_LINE_BREAK))
            continue
        key = text.rfind("<", 0, max(0, text.rfind("<", 0, end))) if markup.valueless else -1
        if key < 0 or markup.valueless is None or not markup.valueless.fullmatch(text, key, end):
            return text[:end]
        end = _before_blanks(text, key)


def _before_blanks(text: str, end: int) -> int:
    while end and text[end - 1].isspace():
        end -= 1
    return end


def _ends_parameter(markup: Markup, text: str) -> bool:
    tail = text[-40:]  # longer than any closing tag
    return any(end.end() == len(tail) for end in markup.parameter_end.finditer(tail))


def _value(markup: Markup, region: str) -> str:
    """The value up to the last closing tag: the value itself may contain closing tags."""
    ends = list(markup.parameter_end.finditer(region))
    return region[: ends[-1].start()] if ends else region.rstrip()


def _trimmed(value: str, markup: Markup) -> str:
    if value.startswith("<![CDATA[") and value.endswith("]]>"):  # MiniCPM writes special characters so
        return value[9:-3]
    leading, trailing = value.startswith("\n"), value.endswith("\n")
    if markup.newlines or (leading and trailing and len(value) > 1):
        value = value.removeprefix("\n").removesuffix("\n")
    return value


_TYPE = re.compile(r"""\b(?:string|type)=["']?(\w+)""")
_TEXT = frozenset({"true", "string", "str"})


def _json_value(value: str, opening: re.Match[str], types: frozenset[str] | None) -> str:
    """The value as JSON. Kimi K3 (`type="number"`) and DSML (`string="false"`) name its type."""
    named = _TYPE.search(opening[2]) if opening.re.groups > 1 else None
    if named is None:
        return typed(value, types)
    if named[1] in _TEXT:
        return quoted(value)
    return json_or_typed(value, types)


_WHOLE = frozenset({"arguments", "parameters", "args", "input"})


def _unwrapped(pairs: dict[str, str], name: str, tools: Catalog) -> str | None:
    """The arguments, if they are all in one parameter called `arguments` (sglang#38386)."""
    if len(pairs) != 1:
        return None
    key, value = next(iter(pairs.items()))
    if key not in _WHOLE or tools.types(name, key) is not None:
        return None
    inner = msgspec.json.decode(value, type=str) if value[0] == '"' else value
    return inner if is_object(inner) else None


def _joined(pairs: dict[str, str]) -> str:
    return f"{{{', '.join(f'{quoted(key)}: {value}' for key, value in pairs.items())}}}"
