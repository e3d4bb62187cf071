"""An answer as it goes over the wire, with its silences and its breaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

STREAM = "text/event-stream"
JSON = "application/json"
FOREVER = 3600.0
"""Longer than anybody waits; no pace makes it shorter."""


class Wait(msgspec.Struct, frozen=True):
    """Nothing happens for so many seconds."""

    seconds: float


class Cut(msgspec.Struct, frozen=True):
    """The connection breaks off: closed in the middle of the body, or reset."""

    reset: bool = False


Step = bytes | Wait | Cut


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the server does with one request. The steps of an answer without end are an iterator."""

    steps: Iterable[Step] = ()
    status: int = 200
    content_type: str = JSON
    headers: dict[str, str] = {}
    delay: float = 0.0
    """Seconds before even the status line."""
    length: int | None = None
    """The `Content-Length` it claims; without one the body is sent in chunks."""
    bare: bool = False
    """The steps are all the client gets: no HTTP around them."""


def body(data: bytes, *, status: int = 200, content_type: str = JSON, **headers: str) -> Reply:
    """One whole body. Header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(steps=(data,), status=status, content_type=content_type, headers=named, length=len(data))


def in_pieces(steps: Iterable[Step], size: int) -> Iterator[Step]:
    """The same bytes, torn apart without regard for frames, lines or characters."""
    for step in steps:
        if isinstance(step, bytes):
            for start in range(0, len(step), size):
                yield step[start : start + size]
        else:
            yield step


def as_array(steps: Iterable[Step]) -> Iterator[Step]:
    """Gemini's stream for those who do not ask for `alt=sse`: one JSON array that grows."""
    lead = b"["
    for step in steps:
        if not isinstance(step, bytes):
            yield step
            continue
        for frame in step.split(b"\n\n"):
            if frame:
                yield lead + frame.removeprefix(b"data: ")
                lead = b"\n,\n"
    yield b"]" if lead != b"[" else b"[]"
