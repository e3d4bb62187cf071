"""Faults in recorded answers: the scripted models' ways to misbehave, and a cut after any event."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ..conform.scripted import BEHAVIOURS
from ..conform.scripted.answer_bytes import ReplyContext, encode_reply
from ..conform.scripted.replies import Cut, Reply
from ..model.errors import DragomanError
from ..model.messages import Request
from ..protocols.registry import DEFAULT_PROTOCOL, PROTOCOLS
from ..wire.reader import FrameReader
from .library import RecordingEntry, recorded_answer

_PREFIX = "demo-"
_CUT = "cut"
NAMES: dict[str, str] = {
    name.removeprefix(_PREFIX): behaviour.description
    for name, behaviour in BEHAVIOURS.items()
    if name.startswith(_PREFIX)
}
"""The faults, and what the model then does."""
_WRITTEN = re.compile(r"(?P<name>[a-z0-9]+)(?:@(?P<event>\d+))?(?::(?P<turn>\d+))?")


class Fault(msgspec.Struct, frozen=True):
    """What goes wrong."""

    name: str
    event: int | None = None
    """`cut`: after this event of the upstream. None: in the middle of a call, or of the text."""
    turn: int | None = None
    """Only in this request, counted from 1. None: in all of them."""


def parse_fault(written: str) -> Fault:
    """`NAME`, `cut@EVENT`, either with `:TURN`. Raises DragomanError."""
    found = _WRITTEN.fullmatch(written)
    if found is None or found["name"] not in NAMES:
        raise DragomanError(
            f"there is no fault {written!r}; write cut@3, misnamed:2, or one of {', '.join(NAMES)}"
        )
    if found["event"] and found["name"] != _CUT:
        raise DragomanError(f"{written!r}: only `cut` happens after an event, as in cut@3")
    event, turn = (int(found[key]) if found[key] else None for key in ("event", "turn"))
    return Fault(found["name"], event, turn)


def upstream_of(entry: RecordingEntry, fault: Fault | None) -> str:
    """The protocol in which the answer is given: the recorded one, if faults can be written in it."""
    recorded = entry.calls[0].request.protocol
    return recorded if fault is None or recorded in PROTOCOLS else DEFAULT_PROTOCOL.name


def faulty(entry: RecordingEntry, fault: Fault, request: Request, attempt: int) -> Reply:
    """The recorded answer with `fault`. `attempt` counts equal requests."""
    protocol = upstream_of(entry, fault)
    context = ReplyContext(
        protocol=protocol,
        request=request,
        seed=entry.recording.begun.id,
        attempt=attempt,
        turn=tuple(recorded_answer(entry)[1].parts),
    )
    if fault.event is None:
        return BEHAVIOURS[_PREFIX + fault.name].play(context)
    if protocol != entry.calls[0].request.protocol:
        whole = encode_reply(context, context.with_ids(context.turn or ()))
        data = b"".join(step for step in whole.steps if isinstance(step, bytes))
    else:
        data = b"".join(chunk.data for chunk in entry.calls[0].received)
    return Reply(steps=(cut_after(data, fault.event), Cut()))


def cut_after(data: bytes, events: int) -> bytes:
    """The bytes up to the end of this many events. A body without events is cut in half."""
    reader, end = FrameReader(), 0
    for piece in _pieces(data):
        end += len(piece)
        for _ in reader.feed(piece):
            events -= 1
        if events <= 0:
            return data[:end] if reader.streaming else data[: len(data) // 2]
    return data if reader.streaming else data[: len(data) // 2]


def _pieces(data: bytes) -> Iterator[bytes]:
    """Lines: an event ends with one."""
    yield from data.splitlines(keepends=True)
