"""The laws of framing, shared by all protocols: UTF-8, lines, events, one JSON value per event."""

from __future__ import annotations

import re
from typing import TypeGuard

from .. import sse
from ..shape import LINE_SEPARATORS, Json, UnreadableError, load_object, parse_object
from .base import Complaints, Law

DONE = "[DONE]"
_FIELD = re.compile(r"(data|event): ?")

UTF8 = Law("utf-8", "the bytes are UTF-8 without a byte order mark")
SEPARATORS = Law(
    "line-separators", "U+2028, U+2029 and U+0085 are escaped: some readers take them for a line end"
)
CLOSED = Law("closed-events", "a blank line closes every event, the last one too")
FIELDS = Law("sse-fields", "lines are `data: …` and `event: …`, with one space, and not empty")
JSON = Law("json", "every event, and every body, is one JSON object")
SHAPE = Law("shape", "required members are present and have the right type")
CALL_JSON = Law("call-json", "the arguments of a finished call are a JSON object")

STREAM = (UTF8, SEPARATORS, CLOSED, FIELDS, JSON, SHAPE)
"""The laws of every stream."""


def text_of(body: bytes, complaints: Complaints, *, separators: bool) -> str | None:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        complaints.at("", body[max(0, error.start - 20) :], error.start)
        complaints.add(UTF8, f"not UTF-8: {error}")
        return None
    complaints.at("", body, 0)
    complaints.unless(not text.startswith("\ufeff"), UTF8, "starts with a byte order mark")
    if separators:
        for separator in LINE_SEPARATORS:
            found = body.find(separator.encode())
            complaints.at("", body[max(0, found - 60) :], found)
            complaints.unless(found < 0, SEPARATORS, f"raw U+{ord(separator):04X}")
    complaints.at("")
    return text


def events(body: bytes, complaints: Complaints, *, comments: bool = True) -> list[sse.Event]:
    """Check every line of a stream. Returns its events."""
    if text_of(body, complaints, separators=True) is None:
        return []
    lines = sse.lines(body)
    complaints.at_end(body)
    complaints.place = ""
    complaints.unless(
        [line.text for line in lines[-2:]] == ["", ""], CLOSED, "the last event is not closed by a blank line"
    )
    fields: set[str] = set()
    for number, line in enumerate(lines, 1):
        complaints.at(f"line {number}", body[line.offset : line.end], line.offset)
        if line.text:
            fields.add(_field(line.text, complaints, comments=comments))
            continue
        complaints.unless("event" not in fields or "data" in fields, FIELDS, "an event without data")
        fields = set()
    complaints.at("")
    return sse.events(body)


def _field(line: str, complaints: Complaints, *, comments: bool) -> str:
    """The name of the line's field; a comment has none."""
    if line.startswith(":"):
        complaints.unless(comments, FIELDS, "a comment, which the client's reader cannot read")
        return ""
    match = _FIELD.match(line)
    if match is None:
        complaints.add(FIELDS, f"neither data nor event: {line[:40]!r}")
        return ""
    complaints.unless(match[0].endswith(" "), FIELDS, f"no space after {match[0]}")
    complaints.unless(line[match.end() :], FIELDS, f"{match[0]} is empty")
    return match[1]


def json_object(data: str, complaints: Complaints) -> Json | None:
    if data == DONE:
        complaints.add(JSON, "[DONE] does not belong here")
        return None
    complaints.seen.add(JSON)
    try:
        return load_object(data)
    except UnreadableError as error:
        complaints.add(JSON, str(error))
        return None


def whole_object(body: bytes, complaints: Complaints) -> Json | None:
    text = text_of(body, complaints, separators=False)
    complaints.at("", body, 0)
    return None if text is None else json_object(text.removeprefix("\ufeff"), complaints)


def finished_call(complaints: Complaints, name: str, raw: object) -> None:
    whole = isinstance(raw, str) and parse_object(raw) is not None
    complaints.unless(whole, CALL_JSON, f"finished call {name} without a JSON object: {str(raw)[:60]!r}")


def filled(value: object) -> bool:
    return isinstance(value, str) and value != ""


def whole_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
