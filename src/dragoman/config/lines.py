"""Find the line of each key in a TOML text, so that errors can name it.

`tomllib` gives values without positions. This scanner reads only keys and nesting, of a text that `tomllib`
has accepted. A path lists the keys and indexes that lead to a value: `("routes", 0, "to")`.
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{1,2})?' r"|'''.*?'''(?:'{1,2})?" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}#\n]+")  # numbers, dates, booleans


def line_index(text: str) -> dict[Path, int]:
    """The line of every table, key and list item in `text`, counted from 1."""
    return _Scan(text).run()


class _Scan:
    """One pass over a valid document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        """The number of items of each array of tables so far."""
        self._counted = (0, 1)
        """The last position and its line. The next count of newlines starts there."""

    def run(self) -> dict[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self._lines

    def _header(self) -> Path:
        line = self._line()
        many = self._text.startswith("[[", self._at)
        self._at += 2 if many else 1
        names = self._names()
        self._at += 2 if many else 1
        path: Path = ()
        for name in names[:-1]:
            path = self._inside((*path, name))
            self._lines.setdefault(path, line)
        path = (*path, names[-1])
        if many:
            self._lines.setdefault(path, line)
            self._counts[path] = self._counts.get(path, 0) + 1
        path = self._inside(path)
        self._lines[path] = line
        return path

    def _inside(self, path: Path) -> Path:
        """In TOML, the name of an array of tables means its last item."""
        count = self._counts.get(path)
        return path if count is None else (*path, count - 1)

    def _pair(self, table: Path) -> None:
        line = self._line()
        names = self._names()
        path = table
        for name in names:
            path = (*path, name)
            self._lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: Path) -> None:
        if self._peek("["):
            self._list(path)
        elif self._peek("{"):
            self._table(path)
        elif self._peek('"') or self._peek("'"):
            self._skip(_STRING)
        else:
            self._skip(_PLAIN)

    def _list(self, path: Path) -> None:
        self._at += 1
        index = 0
        self._skip(_BLANK)
        while not self._peek("]"):
            if self._peek(","):
                self._at += 1
                index += 1
            else:
                item = (*path, index)
                self._lines[item] = self._line()
                self._value(item)
            self._skip(_BLANK)
        self._at += 1

    def _table(self, path: Path) -> None:
        self._at += 1
        self._skip(_BLANK)
        while not self._peek("}"):
            if self._peek(","):
                self._at += 1
            else:
                self._pair(path)
            self._skip(_BLANK)
        self._at += 1

    def _names(self) -> list[str]:
        """The parts of a dotted key, bare or quoted. Stops before `=` or `]`."""
        names: list[str] = []
        while True:
            self._skip(_SPACE)
            names.append(self._name())
            self._skip(_SPACE)
            if not self._peek("."):
                return names
            self._at += 1

    def _name(self) -> str:
        pattern = _STRING if self._text[self._at] in "\"'" else _BARE
        found = pattern.match(self._text, self._at)
        assert found is not None  # the text is valid
        self._at = found.end()
        if pattern is _BARE:
            return found[0]
        return tomllib.loads(f"key = {found[0]}")["key"]

    def _line(self) -> int:
        start, line = self._counted
        line += self._text.count("\n", start, self._at)
        self._counted = (self._at, line)
        return line

    def _peek(self, character: str) -> bool:
        return self._text.startswith(character, self._at)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
