"""A reply as a list of steps: bytes, pauses and broken connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

STREAM = "text/event-stream"
JSON = "application/json"
FOREVER = 3600.0
"""Longer than any client waits. `pace` does not shorten it."""


class Wait(msgspec.Struct, frozen=True):
    """Pause for this many seconds."""

    seconds: float


class Cut(msgspec.Struct, frozen=True):
    """Close the connection in the middle of the body, or reset it."""

    reset: bool = False


Step = bytes | Wait | Cut


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The server's reply to one request. The steps of an endless answer are an iterator."""

    steps: Iterable[Step] = ()
    status: int = 200
    content_type: str = JSON
    headers: dict[str, str] = {}
    delay: float = 0.0
    """Seconds before the status line."""
    length: int | None = None
    """The `Content-Length` header; None sends a chunked body."""
    bare: bool = False
    """Send only the bytes of the steps, without any HTTP."""


def body(data: bytes, *, status: int = 200, content_type: str = JSON, **headers: str) -> Reply:
    """A reply with one body. Write header names with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(steps=(data,), status=status, content_type=content_type, headers=named, length=len(data))


def in_pieces(steps: Iterable[Step], size: int) -> Iterator[Step]:
    """Split the bytes into pieces of `size`, even inside frames, lines and characters."""
    for step in steps:
        if isinstance(step, bytes):
            for start in range(0, len(step), size):
                yield step[start : start + size]
        else:
            yield step


def as_array(steps: Iterable[Step]) -> Iterator[Step]:
    """Gemini's stream for clients without `alt=sse`: one JSON array, sent piece by piece."""
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
