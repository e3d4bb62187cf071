"""Find values for a tool's arguments in the user's text."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...tools.rules.tables import words

_QUOTED = re.compile(r"[\"“'`]([^\"”'`\n]+)[\"”'`]")
_TICKED = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?<![\w/:.])~?/?(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,4}\b|(?<!\S)\.?/[\w./-]+")
_URL = re.compile(r"https?://[^\s\"'`<>)]+")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,12}(?:\.\d{1,6})?(?![\w.])")
_PLACE = re.compile(r"\b(?:in|for|at|near|from|of)\s+([A-ZÀ-Þ][\w'-]+(?:\s[A-ZÀ-Þ][\w'-]+)*)")
_COMMAND = re.compile(r"(?im)\b(?:run|execute|command)\b:?\s+(?:the\s+)?(.{2,80}?)[.!?]?\s*$")


_TIMES, _LONG = frozenset({"timeout", "ms", "second", "wait"}), 20_000


class StringKind(NamedTuple):
    """A kind of string argument: words of its name, patterns for the user's text, and two defaults."""

    names: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]
    fallback: tuple[str, str]


def _kind(names: str, first: str, second: str, *patterns: re.Pattern[str]) -> StringKind:
    return StringKind(frozenset(names.split()), patterns, (first, second))


# The first kind whose words are in the argument's name applies.
_STRING_KINDS = (
    _kind("url uri link href", "https://example.com/", "https://example.org/", _URL),
    _kind("command cmd script", "ls -la", "git status", _TICKED, _COMMAND),
    _kind("pattern query regex glob search term", "TODO", "FIXME", _QUOTED, _PATH),
    _kind("path file filename filepath", "README.md", "pyproject.toml", _PATH),
    _kind("directory dir folder cwd workdir", ".", "src"),
    _kind("city location place town", "Paris", "Rome", _PLACE),
    _kind("date day", "2026-01-31", "2026-02-01"),
    _kind("email", "ada@example.com", "grace@example.com"),
    _kind("language lang locale", "en", "fr"),
    _kind("old", "before", "earlier"),
    _kind("new", "after", "later"),
)


class UserText:
    """One message of the user. `variant` 1 gives other values, for a second call in the same turn."""

    def __init__(self, text: str, variant: int = 0) -> None:
        self.text = text
        self._variant = variant

    def string(self, name: str) -> str:
        """A value for a string argument called `name`."""
        parts = words(name)
        kind = next((kind for kind in _STRING_KINDS if kind.names & parts), None)
        return self.words() if kind is None else self._pick(kind)

    def words(self) -> str:
        quoted = None if self._variant else _QUOTED.search(self.text)
        text = quoted[1] if quoted else " ".join(self.text.split())[:60].strip()
        return (text or "hello") + (" once more" if self._variant else "")

    def command(self) -> str | None:
        """The command in backticks, if the user wrote one."""
        match = _TICKED.search(self.text)
        return match[1] if match else None

    def number(self, name: str = "") -> float:
        if words(name) & _TIMES:
            return _LONG  # long enough in milliseconds and in seconds
        match = None if self._variant else _NUMBER.search(self.text)
        return float(match[0]) if match else 10

    def mentions(self, value: object) -> bool:
        return re.search(rf"\b{re.escape(str(value))}\b", self.text, re.IGNORECASE) is not None

    def _pick(self, kind: StringKind) -> str:
        found = (pattern.search(self.text) for pattern in kind.patterns)
        match = next((match for match in found if match), None)
        picked = match[match.lastindex or 0].strip() if match else kind.fallback[0]
        if not self._variant:
            return picked
        return next(other for other in reversed(kind.fallback) if other != picked)
