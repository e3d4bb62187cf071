"""A stream as a list of events that a test can spoil, and back to bytes."""

from collections.abc import Callable
from typing import Any

from dragoman.conform import sse
from dragoman.conform.shape import Json, load_object, wire

from .wires import ANTHROPIC, RESPONSES

Events = list[Any]
# Changes a list of events, or a body, in place.
Spoil = Callable[[Any], object]


def split(stream: bytes) -> Events:
    """Each event's JSON; `[DONE]` stays a string."""
    return [event.data if event.data == "[DONE]" else load_object(event.data) for event in sse.events(stream)]


def join(protocol: str, events: Events) -> bytes:
    """The events with the names of their protocol. Responses events get new numbers."""
    frames: list[str] = []
    for number, event in enumerate(events):
        if isinstance(event, dict) and protocol == RESPONSES:
            event = {**event, "sequence_number": number}
        name = f"event: {_name(event)}\n" if protocol in (ANTHROPIC, RESPONSES) else ""
        frames.append(f"{name}data: {event if isinstance(event, str) else wire(event)}\n\n")
    return "".join(frames).encode()


def spoiled(protocol: str, stream: bytes, spoil: Spoil) -> bytes:
    events = split(stream)
    spoil(events)
    return join(protocol, events)


def first(events: Events, kind: str) -> Json:
    """The first event of a type."""
    return events[place(events, kind)]


def place(events: Events, kind: str) -> int:
    return next(i for i, event in enumerate(events) if event["type"] == kind)


def _name(event: Any) -> str:
    return event["type"] if isinstance(event, dict) else "done"
