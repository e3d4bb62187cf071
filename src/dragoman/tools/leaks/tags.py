"""Reads markup in which each parameter has its own tag: `<path>a.py</path>`."""

from __future__ import annotations

import re
from functools import partial

from ...wire.jsonscan import match_end
from .catalog import Catalog, Subschema
from .readers import ReadCall, Reader
from .values import quoted, typed

# Elements nested deeper are text: the model writes markup inside a value.
_MAX_DEPTH = 32
_ITEM = "item"
_BLANK = re.compile(r"\s*")


def read_tagged(body: str, name: str, tools: Catalog, _last: bool) -> list[ReadCall] | None:
    """Cline: the declared parameters as tags, and nothing else. A value may contain tags too.

    A value ends with the closing tag that another declared parameter, or the end, follows.
    """
    schema = tools.parameters(name)
    pairs: list[str] = []
    left = {key: f"</{key}>" for key in schema.keys}
    pos = match_end(_BLANK, body, 0)
    while pos < len(body):
        key = next((key for key in left if body.startswith(f"<{key}>", pos)), None)
        if key is None:
            return None
        start, closing = pos + len(key) + 2, left.pop(key)
        end = body.find(closing, start)
        while end >= 0 and not _goes_on(body, match_end(_BLANK, body, end + len(closing)), left):
            end = body.find(closing, end + 1)
        if end < 0:
            return None
        value, member = body[start:end], schema.member(key)
        value = value.removeprefix("\n").removesuffix("\n")
        pairs.append(f"{quoted(key)}: {typed(value, member.types if member else None)}")
        pos = match_end(_BLANK, body, end + len(closing))
    return [(name, f"{{{', '.join(pairs)}}}")]


def _goes_on(body: str, pos: int, left: dict[str, str]) -> bool:
    return pos == len(body) or any(body.startswith(f"<{key}>", pos) for key in left)


def tag_reader(prefix: str) -> Reader:
    """Tags with a token before each of them (MiniMax M3). Objects and arrays are nested tags."""
    tokens = re.compile(rf"{re.escape(prefix)}\s*<(/?)([^<>\s]+)>")
    return partial(_read_prefixed, prefix, tokens)


class _Element:
    """An open element, with the members that were read so far."""

    def __init__(self, key: str, schema: Subschema | None, start: int) -> None:
        self.key = key
        self.schema = schema
        self.start = start
        self.members: list[tuple[str, str]] = []

    @property
    def array(self) -> bool:
        declared = self.schema is not None and "array" in self.schema.types
        return declared or (bool(self.members) and all(key == _ITEM for key, _ in self.members))

    def child(self, key: str) -> Subschema | None:
        if self.schema is None:
            return None
        return self.schema.item if key == _ITEM and "array" in self.schema.types else self.schema.member(key)

    def json(self, text: str) -> str:
        """The element as JSON. `text` is its content."""
        if self.members and self.array:
            return f"[{', '.join(value for _, value in self.members)}]"
        if self.members:
            return f"{{{', '.join(f'{quoted(key)}: {value}' for key, value in self.members)}}}"
        types = self.schema.types if self.schema else frozenset[str]()
        if not text.strip() and types & {"array", "object"} and "string" not in types:
            return "[]" if "array" in types else "{}"
        return typed(text, types)


def _read_prefixed(
    prefix: str, tokens: re.Pattern[str], body: str, name: str, tools: Catalog, _last: bool
) -> list[ReadCall] | None:
    body = body.rstrip().removesuffix(prefix)
    open_: list[_Element] = [_Element("", tools.parameters(name), 0)]
    for token in tokens.finditer(body):
        closes, key = bool(token[1]), token[2]
        _end_bare(open_, body, token.start(), key if closes else "")
        if not closes and len(open_) < _MAX_DEPTH:
            open_.append(_Element(key, open_[-1].child(key), token.end()))
        elif closes and key == open_[-1].key:
            _end(open_, body[open_[-1].start : token.start()])
        else:
            return None
    _end_bare(open_, body, len(body), "")
    root = open_[0]
    if len(open_) > 1:
        return None
    return [(name, root.json("") if root.members else "{}")]


def _end_bare(open_: list[_Element], body: str, end: int, key: str) -> None:
    """End the innermost element if M3 left out the token before its closing tag."""
    node = open_[-1]
    if node.members or node.key in ("", key):
        return
    text, closing = body[node.start : end].rstrip(), f"</{node.key}>"
    if text.endswith(closing):
        _end(open_, text.removesuffix(closing))


def _end(open_: list[_Element], text: str) -> None:
    """End the innermost element. `text` is its content."""
    node = open_.pop()
    open_[-1].members.append((node.key, node.json(text)))
