"""What the user wrote, and what a tool's arguments can be made of."""

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


class Sort(NamedTuple):
    """A sort of string: the words of its name, where to find one in the user's text, and what else to say."""

    names: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]
    fallback: tuple[str, str]


def _sort(names: str, first: str, second: str, *patterns: re.Pattern[str]) -> Sort:
    return Sort(frozenset(names.split()), patterns, (first, second))


# The first line that fits is taken.
_SORTS = (
    _sort("url uri link href", "https://example.com/", "https://example.org/", _URL),
    _sort("command cmd script", "ls -la", "git status", _TICKED, _COMMAND),
    _sort("pattern query regex glob search term", "TODO", "FIXME", _QUOTED, _PATH),
    _sort("path file filename filepath", "README.md", "pyproject.toml", _PATH),
    _sort("directory dir folder cwd workdir", ".", "src"),
    _sort("city location place town", "Paris", "Rome", _PLACE),
    _sort("date day", "2026-01-31", "2026-02-01"),
    _sort("email", "ada@example.com", "grace@example.com"),
    _sort("language lang locale", "en", "fr"),
    _sort("old", "before", "earlier"),
    _sort("new", "after", "later"),
)


class Wish:
    """One message of the user's. The second variant of it asks for other things."""

    def __init__(self, text: str, variant: int = 0) -> None:
        self.text = text
        self._variant = variant

    def string(self, name: str) -> str:
        """What a string called `name` could be."""
        parts = words(name)
        sort = next((sort for sort in _SORTS if sort.names & parts), None)
        return self.words() if sort is None else self._pick(sort)

    def words(self) -> str:
        quoted = None if self._variant else _QUOTED.search(self.text)
        said = quoted[1] if quoted else " ".join(self.text.split())[:60].strip()
        return (said or "hello") + (" once more" if self._variant else "")

    def command(self) -> str | None:
        """A command between backticks, if the user wrote one."""
        match = _TICKED.search(self.text)
        return match[1] if match else None

    def number(self, name: str = "") -> float:
        if words(name) & _TIMES:
            return _LONG  # whatever the unit, nothing is cut short
        match = None if self._variant else _NUMBER.search(self.text)
        return float(match[0]) if match else 10

    def mentions(self, value: object) -> bool:
        return re.search(rf"\b{re.escape(str(value))}\b", self.text, re.IGNORECASE) is not None

    def _pick(self, sort: Sort) -> str:
        found = (pattern.search(self.text) for pattern in sort.patterns)
        match = next((match for match in found if match), None)
        picked = match[match.lastindex or 0].strip() if match else sort.fallback[0]
        if not self._variant:
            return picked
        return next(other for other in reversed(sort.fallback) if other != picked)
