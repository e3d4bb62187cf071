"""Interleave the fragments of two calls, like servers that generate calls in parallel."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from ...model.messages import Part
from ...protocols.common.fields import is_object
from ...protocols.facts import Server
from . import answer_bytes
from .answer_bytes import ReplyContext
from .replies import Reply, Step

_encode = msgspec.json.Encoder().encode


def interleaved(context: ReplyContext, parts: list[Part]) -> Reply:
    """Alternate the frames of the last two blocks. All other frames keep their place."""
    reply = answer_bytes.encode_reply(context, parts)
    server = context.wire.server
    if not context.stream or server.block is None:
        return reply
    frames = [
        frame for step in reply.steps if isinstance(step, bytes) for frame in step.split(b"\n\n") if frame
    ]
    places = [server.block(_data(frame)) for frame in frames]
    used = sorted({place for place in places if place is not None})
    if len(used) < 2:
        return reply
    first, second = (
        [f for f, place in zip(frames, places, strict=True) if place == wanted] for wanted in used[-2:]
    )
    start, end = places.index(used[-2]), len(places) - places[::-1].index(used[-1])
    mixed = [f for pair in itertools.zip_longest(first, second) for f in pair if f is not None]
    ordered = [*frames[:start], *mixed, *frames[end:]]
    steps: list[Step] = [_numbered(server, n, frame) + b"\n\n" for n, frame in enumerate(ordered)]
    return msgspec.structs.replace(reply, steps=steps)


def _data(frame: bytes) -> dict[str, Any]:
    """The frame's JSON; empty for `[DONE]`."""
    _, _, data = frame.rpartition(b"data: ")
    value: Any = msgspec.json.decode(data) if data.startswith(b"{") else None
    return value if is_object(value) else {}


def _numbered(server: Server, number: int, frame: bytes) -> bytes:
    """Renumber a frame. OpenAI Responses numbers its events in the order of sending."""
    if server.numbered is None:
        return frame
    head, mark, _ = frame.rpartition(b"data: ")
    return head + mark + _encode(server.numbered(_data(frame), number))
