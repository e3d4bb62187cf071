"""Two calls that advance at the same time, as parallel sampling makes them."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from ...model.messages import Part
from ...protocols.common.fields import is_object
from ...protocols.facts import Server
from . import answer_bytes
from .answer_bytes import Scene
from .replies import Reply, Step

_encode = msgspec.json.Encoder().encode


def interleaved(scene: Scene, parts: list[Part]) -> Reply:
    """The frames of the last two blocks in turn; everything else where it was."""
    reply = answer_bytes.say(scene, parts)
    server = scene.wire.server
    if not scene.stream or server.block is None:
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
    """The frame's JSON; nothing for `[DONE]`."""
    _, _, data = frame.rpartition(b"data: ")
    value: Any = msgspec.json.decode(data) if data.startswith(b"{") else None
    return value if is_object(value) else {}


def _numbered(server: Server, number: int, frame: bytes) -> bytes:
    """Where servers number their events, they do so in the order they send them."""
    if server.numbered is None:
        return frame
    head, mark, _ = frame.rpartition(b"data: ")
    return head + mark + _encode(server.numbered(_data(frame), number))
