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


_ARGUMENTS = "response.function_call_arguments.delta"


def joined(events: Events) -> Events:
    """The events of a stream with the deltas of each text joined, without the numbers of Responses events.

    Dragoman may hold back a piece of a delta until it knows what the piece is.
    """
    found: Events = []
    for event in events:
        if isinstance(event, dict):
            event = {name: value for name, value in event.items() if name != "sequence_number"}
            if found and event.get("type") == _ARGUMENTS == found[-1].get("type"):
                found[-1] = {**found[-1], **event, "delta": found[-1]["delta"] + event["delta"]}
                continue
        content = _content(event)
        if content and found and content == _content(found[-1]) and event["index"] == found[-1]["index"]:
            before: Json = found[-1]["delta"]
            delta = {**before, **event["delta"]}
            delta[content[1]] = before[content[1]] + event["delta"][content[1]]
            found[-1] = {**found[-1], **event, "delta": delta}
        else:
            found.append(event)
    return found


def _content(event: Any) -> tuple[str, str] | None:
    """The type of a delta, and the member with its text."""
    delta: Json = {} if event == "[DONE]" or event.get("type") != "content_block_delta" else event["delta"]
    names = [name for name in ("text", "thinking", "partial_json") if name in delta]
    return (str(delta.get("type")), names[0]) if names else None


def _name(event: Any) -> str:
    return event["type"] if isinstance(event, dict) else "done"
