"""The laws of the transfer itself: bytes, lines, events, and one JSON value per event."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeGuard

from . import sse
from .shape import LINE_SEPARATORS, Json, UnreadableError, load_object, parse_object

DONE = "[DONE]"
_FIELD = re.compile(r"(data|event): ?")


@dataclass(slots=True)
class Complaints:
    """What was found wrong, each time with the place it was found at."""

    found: list[str] = field(default_factory=list[str])
    place: str = ""

    def add(self, text: str) -> None:
        self.found.append(f"{self.place}: {text}" if self.place else text)

    def unless(self, good: object, text: str) -> None:
        if not good:
            self.add(text)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is read in here has the protocol's shape, or that is the complaint."""
        try:
            yield
        except (KeyError, TypeError, AttributeError) as error:
            self.add(f"malformed: {error!r}")


def text_of(body: bytes, complaints: Complaints, *, separators: bool) -> str | None:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        complaints.add(f"not UTF-8: {error}")
        return None
    complaints.unless(not text.startswith("\ufeff"), "starts with a byte order mark")
    if separators:
        for separator in LINE_SEPARATORS:
            complaints.unless(separator not in text, f"raw U+{ord(separator):04X}")
    return text


def events(body: bytes, complaints: Complaints, *, comments: bool = True) -> list[sse.Event]:
    """The events of a stream, after a look at every line of it."""
    text = text_of(body, complaints, separators=True)
    if text is None:
        return []
    lines = sse.lines(text.removeprefix("\ufeff"))
    complaints.unless(lines[-2:] == ["", ""], "the last event is not closed by a blank line")
    fields: set[str] = set()
    for number, line in enumerate(lines, 1):
        complaints.place = f"line {number}"
        if line:
            fields.add(_field(line, complaints, comments=comments))
            continue
        complaints.unless("event" not in fields or "data" in fields, "an event without data")
        fields = set()
    complaints.place = ""
    return sse.events(body)


def _field(line: str, complaints: Complaints, *, comments: bool) -> str:
    """The name of the line's field; a comment has none."""
    if line.startswith(":"):
        complaints.unless(comments, "a comment, which the client's reader cannot take")
        return ""
    match = _FIELD.match(line)
    if match is None:
        complaints.add(f"neither data nor event: {line[:40]!r}")
        return ""
    complaints.unless(match[0].endswith(" "), f"no space after {match[0]}")
    complaints.unless(line[match.end() :], f"{match[0]} is empty")
    return match[1]


def json_object(data: str, complaints: Complaints) -> Json | None:
    if data == DONE:
        complaints.add("[DONE] has no place here")
        return None
    try:
        return load_object(data)
    except UnreadableError as error:
        complaints.add(str(error))
        return None


def whole_object(body: bytes, complaints: Complaints) -> Json | None:
    text = text_of(body, complaints, separators=False)
    return None if text is None else json_object(text.removeprefix("\ufeff"), complaints)


def finished_call(complaints: Complaints, name: str, raw: object) -> None:
    """A finished call carries a JSON object, and nothing else."""
    whole = isinstance(raw, str) and parse_object(raw) is not None
    complaints.unless(whole, f"finished call {name} without a JSON object: {str(raw)[:60]!r}")


def filled(value: object) -> bool:
    return isinstance(value, str) and value != ""


def whole_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
