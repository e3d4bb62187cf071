"""Runs decoders and encoders. Every stream is read whole and byte by byte."""

import json
from typing import Any

from dragoman.conform import sse
from dragoman.model.events import Event
from dragoman.protocols.base import AnswerContext
from dragoman.protocols.common.collect import Answer, collect
from dragoman.protocols.registry import PROTOCOLS
from dragoman.wire.reader import FrameReader

from .wires import ANTHROPIC, RESPONSES

MINTED = AnswerContext(id="e1", created=5, model="asked-for")


def frames(protocol: str, *values: Any) -> bytes:
    """A stream of these values, with event names if the protocol has them."""
    out: list[str] = []
    for value in values:
        named = protocol in (ANTHROPIC, RESPONSES) and isinstance(value, dict)
        name = f"event: {value['type']}\n" if named else ""
        out.append(f"{name}data: {value if isinstance(value, str) else json.dumps(value)}\n\n")
    return "".join(out).encode()


def events(protocol: str, *values: Any, issuer: str = "up") -> list[Event]:
    """The events of a stream of these values, up to the end of its bytes."""
    body = frames(protocol, *values)
    found = [_read(protocol, body, size, issuer) for size in (len(body) or 1, 1)]
    assert found[0] == found[1]
    return found[0]


def answer(protocol: str, *values: Any) -> Answer:
    return collect(events(protocol, *values))


def written(protocol: str, *said: Event) -> list[Any]:
    """The JSON frames for these events. The encoder gets one event at a time."""
    encoder = PROTOCOLS[protocol].stream_encoder(MINTED)
    body = b"".join(encoder.encode([event]) for event in said)
    assert body == PROTOCOLS[protocol].stream_encoder(MINTED).encode(list(said)) or protocol == ANTHROPIC
    return [json.loads(event.data) if event.data != "[DONE]" else event.data for event in sse.events(body)]


def rendered(protocol: str, *said: Event) -> Any:
    """The body for these events."""
    return json.loads(PROTOCOLS[protocol].render(collect(said), MINTED))


def _read(protocol: str, body: bytes, size: int, issuer: str) -> list[Event]:
    reader, decoder = FrameReader(), PROTOCOLS[protocol].decoder(issuer, False)
    found: list[Event] = []
    for at in range(0, len(body), size):
        for frame in reader.feed(body[at : at + size]):
            found += decoder.frame(frame)
    for frame in reader.close():
        found += decoder.frame(frame)
    return found + decoder.close()
