"""The readers of markup in which a parameter is a tag of its own: `<path>a.py</path>`."""

from __future__ import annotations

import re
from functools import partial

from .catalog import Catalog, Place
from .readers import Call, Reader
from .values import quoted, typed

_DEEPEST = 32
_ITEM = "item"
_BLANK = re.compile(r"\s*")


def read_tagged(body: str, name: str, tools: Catalog, _last: bool) -> list[Call] | None:
    """Cline: the declared parameters as tags, and nothing else; a value may hold tags of its own.

    A value ends with its closing tag where another declared parameter follows, or the end.
    """
    place = tools.place(name)
    pairs: list[str] = []
    left = {key: f"</{key}>" for key in place.keys}
    pos = _after_blanks(body, 0)
    while pos < len(body):
        key = next((key for key in left if body.startswith(f"<{key}>", pos)), None)
        if key is None:
            return None
        start, closing = pos + len(key) + 2, left.pop(key)
        end = body.find(closing, start)
        while end >= 0 and not _goes_on(body, _after_blanks(body, end + len(closing)), left):
            end = body.find(closing, end + 1)
        if end < 0:
            return None
        value, member = body[start:end], place.member(key)
        value = value.removeprefix("\n").removesuffix("\n")
        pairs.append(f"{quoted(key)}: {typed(value, member.types if member else None)}")
        pos = _after_blanks(body, end + len(closing))
    return [(name, f"{{{', '.join(pairs)}}}")]


def _goes_on(body: str, pos: int, left: dict[str, str]) -> bool:
    return pos == len(body) or any(body.startswith(f"<{key}>", pos) for key in left)


def _after_blanks(body: str, pos: int) -> int:
    found = _BLANK.match(body, pos)
    return found.end() if found else pos


def tag_reader(prefix: str) -> Reader:
    """Tags that each stand behind a token (MiniMax M3): objects and arrays are nested tags."""
    tokens = re.compile(rf"{re.escape(prefix)}\s*<(/?)([^<>\s]+)>")
    return partial(_read_prefixed, prefix, tokens)


class _Node:
    """An element that is open: what stood in it so far."""

    def __init__(self, key: str, place: Place | None, start: int) -> None:
        self.key = key
        self.place = place
        self.start = start
        self.members: list[tuple[str, str]] = []

    @property
    def array(self) -> bool:
        declared = self.place is not None and "array" in self.place.types
        return declared or (bool(self.members) and all(key == _ITEM for key, _ in self.members))

    def child(self, key: str) -> Place | None:
        if self.place is None:
            return None
        return self.place.item if key == _ITEM and "array" in self.place.types else self.place.member(key)

    def json(self, text: str) -> str:
        """The element as JSON; `text` is what stands in it."""
        if self.members and self.array:
            return f"[{', '.join(value for _, value in self.members)}]"
        if self.members:
            return f"{{{', '.join(f'{quoted(key)}: {value}' for key, value in self.members)}}}"
        types = self.place.types if self.place else frozenset[str]()
        if not text.strip() and types & {"array", "object"} and "string" not in types:
            return "[]" if "array" in types else "{}"
        return typed(text, types)


def _read_prefixed(
    prefix: str, tokens: re.Pattern[str], body: str, name: str, tools: Catalog, _last: bool
) -> list[Call] | None:
    body = body.rstrip().removesuffix(prefix)
    open_: list[_Node] = [_Node("", tools.place(name), 0)]
    for token in tokens.finditer(body):
        closes, key = bool(token[1]), token[2]
        _end_bare(open_, body, token.start(), key if closes else "")
        if not closes and len(open_) < _DEEPEST:
            open_.append(_Node(key, open_[-1].child(key), token.end()))
        elif closes and key == open_[-1].key:
            _end(open_, body[open_[-1].start : token.start()])
        else:
            return None
    _end_bare(open_, body, len(body), "")
    root = open_[0]
    if len(open_) > 1:
        return None
    return [(name, root.json("") if root.members else "{}")]


def _end_bare(open_: list[_Node], body: str, end: int, key: str) -> None:
    """Ends the innermost element where M3 left the token out before its closing tag."""
    node = open_[-1]
    if node.members or node.key in ("", key):
        return
    text, closing = body[node.start : end].rstrip(), f"</{node.key}>"
    if text.endswith(closing):
        _end(open_, text.removesuffix(closing))


def _end(open_: list[_Node], text: str) -> None:
    """The innermost element is over; `text` is what stands in it."""
    node = open_.pop()
    open_[-1].members.append((node.key, node.json(text)))
