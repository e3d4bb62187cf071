"""Reads Gemma's calls: `{city:<|"|>Oslo<|"|>,days:3}`, with bare keys, and strings between tokens."""

from __future__ import annotations

import re
from functools import partial

from ...wire.jsonscan import match_end
from .catalog import Catalog, Subschema
from .readers import ReadCall, Reader
from .values import is_json, json_or_typed, quoted

_SPACE = re.compile(r"\s*")
_KEY = re.compile(r"[^:,{}\[\]]+")
_BARE = re.compile(r"[^,{}\[\]]+")  # a colon may be part of it: 10:30
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
# Nested values are read recursively. No tool nests its arguments this deep.
_MAX_DEPTH = 32


def quoted_by(quote: str) -> Reader:
    return partial(_read, quote)


def _read(quote: str, body: str, name: str, tools: Catalog, _last: bool) -> list[ReadCall] | None:
    try:
        text, end = _Text(body, quote).value(0, tools.parameters(name), 0)
    except ValueError:
        return None  # the end is inside a string, or the text is not a call
    return [(name, text)] if text[:1] == "{" and not body[end:].strip() else None


class _Text:
    """One body. Each method reads at a position and returns JSON text and the position after it."""

    def __init__(self, body: str, quote: str) -> None:
        self._body = body
        self._quote = quote

    def value(self, pos: int, schema: Subschema | None, depth: int) -> tuple[str, int]:
        pos = self._skip(pos)
        opens = self._body[pos : pos + 1]
        if opens in ("{", "["):
            return self._group(pos, schema, depth)
        if self._body.startswith(self._quote, pos):
            return self._string(pos)
        if opens == '"' and (found := _JSON_STRING.match(self._body, pos)) and is_json(found[0]):
            return found[0], found.end()
        return self._bare(pos, schema)

    def _group(self, pos: int, schema: Subschema | None, depth: int) -> tuple[str, int]:
        """An object or an array."""
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        opens = self._body[pos]
        closes = "}" if opens == "{" else "]"
        parts: list[str] = []
        pos = self._skip(pos + 1)
        while not self._body.startswith(closes, pos):
            if parts:
                pos = self._skip(self._past(",", pos))
            if opens == "{":
                key, pos = self._key(pos)
                member = schema.member(key) if schema else None
                text, pos = self.value(self._past(":", pos), member, depth + 1)
                text = f"{quoted(key)}:{text}"
            else:
                text, pos = self.value(pos, schema.item if schema else None, depth + 1)
            parts.append(text)
            pos = self._skip(pos)
        return f"{opens}{','.join(parts)}{closes}", pos + 1

    def _key(self, pos: int) -> tuple[str, int]:
        if self._body.startswith(self._quote, pos):
            end = self._string_end(pos)
            return self._body[pos + len(self._quote) : end], self._skip(end + len(self._quote))
        found = _KEY.match(self._body, pos)
        if found is None:
            raise ValueError("no key")
        return found[0].strip().strip("\"'"), found.end()

    def _string(self, pos: int) -> tuple[str, int]:
        end = self._string_end(pos)
        return quoted(self._body[pos + len(self._quote) : end]), end + len(self._quote)

    def _string_end(self, pos: int) -> int:
        return self._body.index(self._quote, pos + len(self._quote))

    def _bare(self, pos: int, schema: Subschema | None) -> tuple[str, int]:
        """A number, `true`, `false` or `null`. Any other word gets the type that the schema allows."""
        found = _BARE.match(self._body, pos)
        if found is None or self._quote in found[0]:
            raise ValueError("no value")
        word = found[0].strip()
        types = schema.types if schema else frozenset[str]()
        if "string" not in types and word in _WORDS:
            return _WORDS[word], found.end()
        return json_or_typed(word, types), found.end()

    def _skip(self, pos: int) -> int:
        return match_end(_SPACE, self._body, pos)

    def _past(self, literal: str, pos: int) -> int:
        if not self._body.startswith(literal, pos):
            raise ValueError(f"no {literal}")
        return pos + len(literal)
