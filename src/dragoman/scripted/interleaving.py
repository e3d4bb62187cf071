"""Two calls that advance at the same time, as parallel sampling makes them."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

from ..messages import Part
from ..protocols.fields import is_object
from . import speech
from .replies import Reply, Step
from .speech import Scene

_encode = msgspec.json.Encoder().encode
_PLACE = {"anthropic": "index", "openai-responses": "output_index"}


def interleaved(scene: Scene, parts: list[Part]) -> Reply:
    """The frames of the last two blocks in turn; everything else where it was."""
    reply = speech.say(scene, parts)
    if not scene.stream or scene.protocol == "gemini":
        return reply
    frames = [
        frame for step in reply.steps if isinstance(step, bytes) for frame in step.split(b"\n\n") if frame
    ]
    places = [_place(scene.protocol, frame) for frame in frames]
    used = sorted({place for place in places if place is not None})
    if len(used) < 2:
        return reply
    first, second = (
        [f for f, place in zip(frames, places, strict=True) if place == wanted] for wanted in used[-2:]
    )
    start, end = places.index(used[-2]), len(places) - places[::-1].index(used[-1])
    mixed = [f for pair in itertools.zip_longest(first, second) for f in pair if f is not None]
    ordered = [*frames[:start], *mixed, *frames[end:]]
    steps: list[Step] = [_numbered(scene.protocol, n, frame) + b"\n\n" for n, frame in enumerate(ordered)]
    return msgspec.structs.replace(reply, steps=steps)


def _data(frame: bytes) -> dict[str, Any]:
    """The frame's JSON; nothing for `[DONE]`."""
    _, _, data = frame.rpartition(b"data: ")
    value: Any = msgspec.json.decode(data) if data.startswith(b"{") else None
    return value if is_object(value) else {}


def _place(protocol: str, frame: bytes) -> int | None:
    """Which block the frame is about."""
    value = _data(frame)
    if protocol in _PLACE:
        return value.get(_PLACE[protocol])
    choices: list[dict[str, Any]] = value.get("choices") or []
    calls: list[dict[str, Any]] = choices[0]["delta"].get("tool_calls", []) if choices else []
    return calls[0]["index"] if calls else None


def _numbered(protocol: str, number: int, frame: bytes) -> bytes:
    """Responses servers number their events in the order they send them."""
    if protocol != "openai-responses":
        return frame
    head, mark, _ = frame.rpartition(b"data: ")
    return head + mark + _encode(_data(frame) | {"sequence_number": number})
