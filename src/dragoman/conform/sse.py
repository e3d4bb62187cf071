"""Server-sent events, strictly by the standard: an event without its closing blank line does not count.

The judges do not use the parser in `wire/`: a shared parser would hide its own bugs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_MARK = "\ufeff"  # the standard ignores one byte order mark at the start of a stream


@dataclass(frozen=True, slots=True)
class Event:
    """A closed event, with its bytes and their offset."""

    name: str | None
    data: str
    raw: bytes = field(default=b"", compare=False)
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end, and its offset. `closed` is False for a last line without an end."""

    text: str
    offset: int
    end: int
    closed: bool


def lines(body: bytes) -> list[Line]:
    """Split at LF, CR and CRLF only. The last entry is the text after the last line end."""
    found: list[Line] = []
    text = body.decode("utf-8")
    at = len(_MARK.encode()) if text.startswith(_MARK) else 0
    for match in _LINE.finditer(text.removeprefix(_MARK)):
        end = at + len(match[0].encode())
        found.append(Line(match[1], at, end, bool(match[2])))
        at = end
        if not match[2]:
            break
    return found


def events(body: bytes) -> list[Event]:
    """All events that have data and a closing blank line."""
    found: list[Event] = []
    name: str | None = None
    data: list[str] = []
    start: int | None = None
    for line in lines(body)[:-1]:
        start = line.offset if start is None else start
        if not line.text:
            if data:
                found.append(Event(name, "\n".join(data), body[start : line.end], start))
            name, data, start = None, [], None
            continue
        key, _, value = line.text.partition(":")
        value = value.removeprefix(" ")
        if key == "event":
            name = value
        elif key == "data":
            data.append(value)
    return found
