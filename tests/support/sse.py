"""Server-sent events by the letter of the standard: what is not closed is not an event."""

import re
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Event:
    name: str | None
    data: str


def events(body: bytes) -> list[Event]:
    """Every event that carries data and was closed by a blank line."""
    found: list[Event] = []
    name: str | None = None
    data: list[str] = []
    for line in lines(body.decode("utf-8").removeprefix("\ufeff"))[:-1]:
        if not line:
            if data:
                found.append(Event(name, "\n".join(data)))
            name, data = None, []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return found


def lines(text: str) -> list[str]:
    """Split at LF, CR and CRLF only; the last entry is what follows the last line end."""
    return _LINE_END.split(text)
