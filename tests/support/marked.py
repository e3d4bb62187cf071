"""Give every object of an answer a member that nobody knows, and look where the members come out."""

import json
from collections.abc import Iterator
from typing import Any

Path = tuple[str, ...]
Marks = dict[str, Path]
"""Each mark with the place of its object: the names of members on the way, and the types of list items."""

# A tool's input is the client's data, not an object of the protocol.
_INPUTS = frozenset({"input", "args"})


def marked_stream(stream: bytes) -> tuple[list[bytes], list[Marks]]:
    """The events of an SSE stream, marked, and the marks of each event."""
    frames: list[bytes] = []
    marks: list[Marks] = []
    count = 0
    for frame in stream.replace(b"\r\n", b"\n").strip(b"\n").split(b"\n\n"):
        head, data, payload = frame.partition(b"data: ")
        found: Marks = {}
        if payload.lstrip().startswith(b"{"):
            value = json.loads(payload)
            count = _mark(value, (), found, count)
            payload = json.dumps(value, ensure_ascii=False).encode()
        frames.append(head + data + payload + b"\n\n")
        marks.append(found)
    return frames, marks


def marked_body(body: bytes) -> tuple[bytes, Marks]:
    """A whole body, marked, and its marks."""
    value, found = json.loads(body), Marks()
    _mark(value, (), found, 0)
    return json.dumps(value, ensure_ascii=False).encode(), found


def marks_in_stream(stream: bytes) -> list[tuple[str, Path]]:
    """The marks in the events of a stream, in order."""
    found: list[tuple[str, Path]] = []
    for frame in stream.replace(b"\r\n", b"\n").strip(b"\n").split(b"\n\n"):
        payload = frame.partition(b"data: ")[2]
        if payload.lstrip().startswith(b"{"):
            found += _marks(json.loads(payload), ())
    return found


def marks_in_body(body: bytes) -> list[tuple[str, Path]]:
    return list(_marks(json.loads(body), ()))


def _mark(value: Any, path: Path, found: Marks, count: int) -> int:
    if isinstance(value, dict):
        place = (*path, str(value["type"])) if isinstance(value.get("type"), str) else path  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
        for key, inner in list(value.items()):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            if key not in _INPUTS:
                count = _mark(inner, (*place, str(key)), found, count)  # pyright: ignore[reportUnknownArgumentType]
        mark = f"mark_{count}"
        value[mark] = count
        found[mark] = place
        return count + 1
    if isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            count = _mark(inner, path, found, count)
    return count


def _marks(value: Any, path: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(value, dict):
        place = (*path, str(value["type"])) if isinstance(value.get("type"), str) else path  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            if str(key).startswith("mark_"):  # pyright: ignore[reportUnknownArgumentType]
                yield str(key), place  # pyright: ignore[reportUnknownArgumentType]
            else:
                yield from _marks(inner, (*place, str(key)))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _marks(inner, path)
