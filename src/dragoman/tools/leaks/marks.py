"""The opening marks of all formats: where one is in a text, and which formats it may open."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .end_tokens import END_TOKENS
from .formats import FORMATS
from .heads import LeakFormat


class OpeningMarks:
    """The marks of some formats: `table` has the formats by mark, `prefixes` all cut marks."""

    def __init__(self, formats: Iterable[LeakFormat], or_pattern: str = "") -> None:
        table: dict[str, list[LeakFormat]] = {}
        for candidate in formats:
            for mark in dict.fromkeys(mark for head in candidate.heads for mark in head.marks):
                table.setdefault(mark, []).append(candidate)
        # A mark that begins a longer one may open the formats of the longer one too.
        self.table = {
            mark: tuple(
                dict.fromkeys(
                    candidate
                    for other, found in table.items()
                    if other.startswith(mark)
                    for candidate in found
                )
            )
            for mark in table
        }
        marks = "|".join(map(re.escape, sorted(table, key=len, reverse=True)))
        self.pattern = re.compile(f"(?:{marks}){or_pattern}")
        self.prefixes = frozenset(mark[:size] for mark in table for size in range(1, len(mark)))


def _placed(*places: str) -> list[LeakFormat]:
    return [candidate for candidate in FORMATS if candidate.place in places]


ANYWHERE = OpeningMarks(_placed("anywhere"), or_pattern="|`+")
LINE = OpeningMarks(_placed("line"))
# `[` opens a list of calls at the beginning of a line, and begins `[TOOL_CALLS]`, which is a mark anywhere.
LINE_FORMATS = OpeningMarks(_placed("anywhere", "line")).table
AFTER_CALL = OpeningMarks(_placed("anywhere", "line", "message", "call"))
ANSWER = OpeningMarks(_placed("anywhere", "line", "message", "answer"))
TAGGED = tuple(_placed("tag"))

LONGEST = max(map(len, ANYWHERE.table))
TAG = re.compile(r"<([A-Za-z_][\w-]*)>")
TAG_START = re.compile(r"<[A-Za-z_][\w-]*")
LINE_START = re.compile(rf"^([ \t]*)(~{{3,}}|{LINE.pattern.pattern}|{TAG.pattern})", re.MULTILINE)
LINE_PREFIXES = LINE.prefixes | {"~", "~~"}

# Marks that are only marks: some of the others are end tokens too.
_ONLY_MARKS = [mark for mark in ANYWHERE.table if mark not in END_TOKENS]
_MARKS = re.compile(rf"(?:\s*(?:{'|'.join(map(re.escape, _ONLY_MARKS))}))*\s*")
# Five characters of an opening mark are enough to recognise it.
_CUT_MARKS = frozenset(mark[:size] for mark in _ONLY_MARKS for size in range(5, len(mark)))


def is_mark(text: str) -> bool:
    """Whether `text` is only opening marks. The last of them may be cut."""
    found = _MARKS.match(text)
    rest = text[found.end() :] if found else text
    return rest in _CUT_MARKS or (bool(text.strip()) and not rest)
