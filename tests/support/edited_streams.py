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


def joined(events: Events) -> Events:
    """The events of an Anthropic stream with the deltas of each text joined.

    Dragoman may hold back a piece of a delta until it knows what the piece is.
    """
    found: Events = []
    for event in events:
        last, content = found[-1] if found else None, _content(event)
        if content and content == _content(last) and event["index"] == last["index"]:
            field, before, after = content[1], last["delta"], event["delta"]
            delta = {**before, **after, field: before[field] + after[field]}
            found[-1] = {**last, **event, "delta": delta}
        else:
            found.append(event)
    return found


def _content(event: Any) -> tuple[str, str] | None:
    """The type of a delta, and the member with its text."""
    if not isinstance(event, dict) or event.get("type") != "content_block_delta":
        return None
    kind: Any = event["delta"].get("type")
    return next(
        ((kind, name) for name in ("text", "thinking", "partial_json") if name in event["delta"]), None
    )


def _name(event: Any) -> str:
    return event["type"] if isinstance(event, dict) else "done"
