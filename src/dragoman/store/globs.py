"""Translate globs, which the gateway reads like `fnmatch`, for each engine.

The dialects differ. SQLite negates a set with `^`, `fnmatch` with `!`. SQLite finds nothing for a `[` without
its `]`; `fnmatch` takes it as it is. PostgreSQL has regular expressions instead of globs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class _Set(NamedTuple):
    """The characters of `[...]`, as ranges."""

    negated: bool
    ranges: tuple[tuple[str, str], ...]


_ANY = _Set(True, ())


def _tokens(glob: str) -> Iterator[str | _Set]:
    """`*` for any text, a set for one character, and any other character for itself, as a set of one."""
    at = 0
    while at < len(glob):
        character = glob[at]
        at += 1
        if character == "*":
            yield "*"
        elif character == "?":
            yield _ANY
        elif character == "[" and (end := _end(glob, at)):
            yield _set(glob[at:end])
            at = end + 1
        else:
            yield _Set(False, ((character, character),))


def _end(glob: str, at: int) -> int:
    """The place of the `]` that ends a set. The first character of a set may be a `]`. 0: there is no end."""
    start = at + 1 if glob.startswith("!", at) else at
    return max(glob.find("]", start + 1), 0)


def _set(inside: str) -> _Set:
    negated = inside.startswith("!")
    rest = inside[1:] if negated else inside
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(rest):
        if rest[at + 1 : at + 2] == "-" and at + 2 < len(rest):
            ranges.append((rest[at], rest[at + 2]))
            at += 3
        else:
            ranges.append((rest[at], rest[at]))
            at += 1
    return _Set(negated, tuple((low, high) for low, high in ranges if low <= high))


def sqlite_glob(glob: str) -> str:
    """The same glob for SQLite's GLOB."""
    return "".join("*" if isinstance(token, str) else _sqlite_set(token) for token in _tokens(glob))


def _sqlite_set(one: _Set) -> str:
    if not one.ranges:
        return "?" if one.negated else "[]"
    # SQLite takes these three for themselves only at certain places of a set, and never as an end of a range.
    specials: set[str] = set()
    texts: list[str] = []
    for low, high in one.ranges:
        while low <= high and low in "]^-":
            specials.add(low)
            low = chr(ord(low) + 1)
        while low <= high and high in "]^-":
            specials.add(high)
            high = chr(ord(high) - 1)
        if low <= high:
            texts.append(f"{low}-{high}")
    ends = [special for special in ("^", "-") if special in specials]
    inside = "".join(["]" if "]" in specials else "", *texts, *(ends if texts else reversed(ends))])
    if inside == "^":
        return "[^^]" if one.negated else "^"
    return f"[^{inside}]" if one.negated else f"[{inside}]"


def regex(glob: str) -> str:
    """The same glob as a regular expression of PostgreSQL."""
    parts = (".*" if isinstance(token, str) else _regex_set(token) for token in _tokens(glob))
    return f"^{''.join(parts)}$"


def _regex_set(one: _Set) -> str:
    if not one.ranges:
        return "." if one.negated else "$."
    if not one.negated and len(one.ranges) == 1 and one.ranges[0][0] == one.ranges[0][1]:
        return _escaped(one.ranges[0][0])
    ranges = "".join(f"{_escaped(low)}-{_escaped(high)}" for low, high in one.ranges)
    return f"[{'^' if one.negated else ''}{ranges}]"


def _escaped(character: str) -> str:
    """The character, as a code point: no letter means anything but itself then."""
    return character if character.isalnum() and character.isascii() else f"\\U{ord(character):08x}"
