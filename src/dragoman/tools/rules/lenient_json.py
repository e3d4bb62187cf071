"""Reads text that is nearly JSON and writes it as strict JSON.

This is the slow, lenient reader behind the strict streaming one (`arguments/corrector.py`). It runs at most
once per call, on the text from the first damage to the end. It accepts wrong quotes, commas, words, comments
and quotes inside strings, but never a missing end: text that stops inside a value is `Unreadable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from ...wire.jsonscan import match_end
from ..json_text import MAX_DEPTH, NotJson, parse_exact
from .syntax import (
    comma_is_wrong,
    escape_control,
    escape_quote,
    is_comment,
    is_doubled_brace,
    is_escaped_blank,
    is_json_scalar,
    mend_escape,
    mend_word,
    quote_key,
    quote_text,
    requote,
    strip_fence,
    strip_xml_tail,
)

Inside = Literal["key", "object", "array"]

# A model encodes arguments twice, or three times. A text that decodes more often was made to cost time.
_MAX_ENCODINGS = 4
_MARKS = "\"'`\u201c\u201d\u2018\u2019"
_BLANK = re.compile(r"(?:[\s\ufeff]++|\\[nrt]|//[^\n]*+|#[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_WORD = re.compile(rf"[^\s,:{{}}\[\]\\{_MARKS}]++")
_KEY_WORD = re.compile(r"[A-Za-z_$@-][\w$.@-]*+")
_COLON = re.compile(r"(?:\s|\\[nrt])*+(?::|=>|=)")
_BARE_TEXT = re.compile(rf"[^,:{{}}\[\]{_MARKS}\n]++")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')

# Opening quote -> the quotes that may close it. `_PLAIN`: characters inside the string that need no check.
_CLOSERS = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": '\u201d\u201c"',
    "\u201d": '\u201d\u201c"',
    "\u2018": "\u2019\u2018'",
    "\u2019": "\u2019\u2018'",
}
_PLAIN = {mark: re.compile(rf'[^"\\\x00-\x1f{closers}]*+') for mark, closers in _CLOSERS.items()}

_QUOTED_AHEAD = (
    r'"(?:[^"\\\n]|\\.)*+"',
    r"'[^'\n]*+'",
    r"`[^`\n]*+`",
    r"[\u201c\u201d][^\u201c\u201d\"\n]*+[\u201c\u201d\"]",
    r"[\u2018\u2019][^\u2018\u2019'\n]*+[\u2018\u2019']",
)
_KEY_AHEAD = rf"(?:{'|'.join(_QUOTED_AHEAD)}|[A-Za-z_$][\w$.-]*+)\s*+:"
_END_OF_ALL = r"[\s}\])>;`]*+\Z"
# What may follow a closing quote. The second pattern of each pair is for strings in which an earlier quote
# was text: there a closing bracket proves nothing, unless the whole text ends with it.
_AFTER: dict[Inside, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "key": (_COLON, _COLON),
    "object": (
        re.compile(rf"\s*+(?:}}|,\s*+(?:[}}/#]|{_KEY_AHEAD})|,?\s*+//|{_KEY_AHEAD}|\Z)"),
        re.compile(rf"\s*+(?:,?\s*+{_KEY_AHEAD}|}}(?:{_END_OF_ALL}|\s*+[\]}}]*+\s*+,\s*+[\"'{{\[]))"),
    ),
    "array": (
        re.compile(r"\s*+[,\]]"),
        re.compile(rf"\s*+(?:,\s*+[\"'\u201c{{\[\d-]|\](?:{_END_OF_ALL}|\s*+[\]}}]*+\s*+,))"),
    ),
}


# The same for whitespace that is written as an escape. An escape after a quote is most often part of the
# string, so these patterns are as strict as those for strings with quotes inside.
_GAP = r"(?:\s|\\[nrt])*+"
_ENDS = r"(?:[\s}\])>;`]|\\[nrt])*+\Z"
_AFTER_ESCAPED: dict[Inside, re.Pattern[str]] = {
    "key": re.compile(rf"{_GAP}:"),
    "object": re.compile(
        rf"{_GAP}(?:,{_GAP}{_KEY_AHEAD}|}}(?:{_ENDS}|{_GAP}(?:[\]}}]|\\[nrt]|\s)*+,{_GAP}[\"{{\[]))"
    ),
    "array": re.compile(rf"{_GAP}(?:,{_GAP}[\"{{\[\d-]|\](?:{_ENDS}|{_GAP}(?:[\]}}]|\\[nrt]|\s)*+,))"),
}


class Unreadable(ValueError):
    """The text cannot be read as JSON without guessing."""


class LenientReader:
    """Reads from a position and collects strict JSON in `out`. `used` has the rules that were needed."""

    def __init__(self, text: str, allowed: Callable[[str], bool]) -> None:
        self.text = text
        self.used: dict[str, str] = {}  # rule name -> the text around its first use
        self.out: list[str] = []
        self._allowed = allowed
        self._depth = 0

    def value(self, pos: int, inside: Inside = "object") -> int:
        """Read one value from `pos`. Return the position after it."""
        pos = self.blank(pos)
        char = self.text[pos : pos + 1]
        if char in _CLOSERS:
            return self.string(pos, inside)
        if char in ("{", "["):
            return self._nested(pos, char)
        return self._bare(pos)

    def members(self, pos: int, first: bool = True) -> int:
        """Read the members of an object up to and including its closing brace."""
        at_start = first
        while True:
            pos = self._commas(pos, expected=not first)
            char = self.text[pos]
            if char == "}":
                self.out.append("}")
                return pos + 1
            if at_start and is_doubled_brace(char):
                self._use("doubled-brace", pos)
                at_start = False
                pos += 1
                continue
            self.out.append("" if first else ", ")
            pos = self._member(pos)
            first = at_start = False

    def rest_of_string(self, pos: int) -> int:
        """Continue inside a string of an object, at a quote that cannot close it."""
        return self._body(pos, '"', "object", broken=False)

    def string(self, pos: int, inside: Inside) -> int:
        mark = self.text[pos]
        if mark != '"':
            self._use("quotes", pos)
        self.out.append('"')
        return self._body(pos + 1, mark, inside, broken=False)

    def blank(self, pos: int) -> int:
        """Skip whitespace and comments. Raises `Unreadable` at the end of the text."""
        end = match_end(_BLANK, self.text, pos)
        skipped = self.text[pos:end]
        if is_escaped_blank(skipped):
            self._use("escaped-blanks", pos)
            skipped = skipped.lstrip("\\nrt \n\r\t")
        if is_comment(skipped.lstrip()):
            self._use("comments", pos)
        if end >= len(self.text):
            raise Unreadable("the text ends too early")
        return end

    def _use(self, rule: str, pos: int) -> None:
        if not self._allowed(rule):
            raise Unreadable(f"rule {rule} is off")
        self.used.setdefault(rule, self.text[max(0, pos - 20) : pos + 20])

    def _nested(self, pos: int, char: str) -> int:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("nested too deeply")
        self.out.append(char)
        end = self.members(pos + 1) if char == "{" else self._items(pos + 1)
        self._depth -= 1
        return end

    def _items(self, pos: int) -> int:
        first = True
        while True:
            pos = self._commas(pos, expected=not first)
            if self.text[pos] == "]":
                self.out.append("]")
                return pos + 1
            self.out.append("" if first else ", ")
            pos = self.value(pos, "array")
            first = False

    def _commas(self, pos: int, expected: bool) -> int:
        """Skip to the next member or bracket. Between two members one comma is right, elsewhere none."""
        start = pos
        seen = 0
        pos = self.blank(pos)
        while self.text[pos] == ",":
            seen += 1
            pos = self.blank(pos + 1)
        wanted = 1 if expected and self.text[pos] not in "}]" else 0
        if comma_is_wrong(seen, wanted):
            self._use("commas", start)
        return pos

    def _member(self, pos: int) -> int:
        if self.text[pos] in _CLOSERS:
            pos = self.string(pos, "key")
        else:
            word = _KEY_WORD.match(self.text, pos)
            if not word:
                raise Unreadable("a key is missing")
            self._use("unquoted-keys", pos)
            self.out.append(quote_key(word.group()))
            pos = word.end()
        colon = _COLON.match(self.text, pos)
        if not colon:
            raise Unreadable("a key has no value")
        self.out.append(": ")
        return self.value(colon.end())

    def _body(self, pos: int, mark: str, inside: Inside, broken: bool) -> int:
        """Read the inside of a string from `pos`, and its closing quote."""
        plain, closers = _PLAIN[mark], _CLOSERS[mark]
        while True:
            end = match_end(plain, self.text, pos)
            self.out.append(self.text[pos:end])
            char = self.text[end : end + 1]
            if not char:
                raise Unreadable("the text ends inside a string")
            if char in closers and self._closes(end + 1, inside, broken):
                self.out.append('"')
                return end + 1
            if char in closers and char == mark:
                broken = True
                self._use("inner-quotes", end)
                self.out.append(escape_quote(char))
                pos = end + 1
            else:
                pos = self._special(end, char)

    def _closes(self, pos: int, inside: Inside, broken: bool) -> bool:
        """Whether the quote before `pos` may close its string."""
        if _AFTER[inside][broken].match(self.text, pos):
            return True
        return not broken and _AFTER_ESCAPED[inside].match(self.text, pos) is not None

    def _special(self, pos: int, char: str) -> int:
        if char == "\\":
            legal = _ESCAPE.match(self.text, pos)
            if legal:
                self.out.append(legal.group())
                return legal.end()
            if pos + 1 == len(self.text):
                raise Unreadable("the text ends inside an escape")
            self._use("illegal-escapes", pos)
            self.out.append(mend_escape(self.text[pos + 1]))
            return pos + 2
        if char < " ":
            self._use("control-characters", pos)
            self.out.append(escape_control(char))
        else:
            self.out.append(requote(char))
        return pos + 1

    def _bare(self, pos: int) -> int:
        word = _WORD.match(self.text, pos)
        after = self.blank(word.end()) if word else pos
        if word and self._ends_scalar(word.group(), self.text[after]):
            self._scalar(word.group(), pos)
            return word.end()
        bare = _BARE_TEXT.match(self.text, pos)
        after = self.blank(bare.end()) if bare else pos
        if not bare or not bare.group().strip() or self.text[after] not in ",}]":
            raise Unreadable("a value is missing")
        self._use("unquoted-text", pos)
        self.out.append(quote_text(bare.group()))
        return bare.end()

    def _ends_scalar(self, word: str, after: str) -> bool:
        known = is_json_scalar(word) or mend_word(word) is not None
        return after in ",}]" or (known and after in _CLOSERS)

    def _scalar(self, word: str, pos: int) -> None:
        if is_json_scalar(word):
            self.out.append(word)
            return
        mended = mend_word(word)
        self._use("words" if mended is not None else "unquoted-text", pos)
        self.out.append(mended if mended is not None else quote_text(word))


def read_value(text: str, allowed: Callable[[str], bool]) -> LenientReader | None:
    """Read text that is exactly one list or object. None if it is not."""
    reader = LenientReader(text, allowed)
    try:
        end = reader.value(0)
    except Unreadable:
        return None
    return None if text[end:].strip() else reader


def read_text(text: str) -> Any:
    """The list or object that a string contains as JSON text, or None."""
    inner = strip_xml_tail(strip_fence(text)).strip()
    for _ in range(_MAX_ENCODINGS):
        found = _read_nested(inner)
        if found is not None:
            return found
        encoded = unescape(inner)
        if encoded is None:
            return None
        inner = encoded.strip()
    return None


def _read_nested(text: str) -> Any:
    if text[:1] not in ("[", "{"):
        return None
    try:
        return parse_exact(text)
    except NotJson:
        reader = read_value(text, lambda _: True)
        return parse_exact("".join(reader.out)) if reader else None


def unescape(text: str) -> str | None:
    r"""Decode JSON text that was encoded again as a string, with or without quotes around it.

    >>> unescape(r'[\"a\", \"b\"]'), unescape(r'"[\"a\"]"'), unescape('["a"]')
    ('["a", "b"]', '["a"]', None)
    """
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    if not quoted and '\\"' not in text:
        return None
    try:
        decoded: Any = parse_exact(text if quoted else f'"{text}"')
    except NotJson:
        return None
    return decoded if isinstance(decoded, str) and decoded != text else None
