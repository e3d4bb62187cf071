"""The stages of the core, each alone: what is run, and how many events, fragments or messages that is."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman import Exchange, Options, Tool
from dragoman.events import Event
from dragoman.protocols.base import Minted
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.tools.arguments import assemble
from dragoman.tools.rules import rules
from dragoman.tools.schema import compile_schema
from dragoman.wire.jsonscan import JsonScanner
from dragoman.wire.reader import FrameReader
from dragoman.wire.sse import SSEReader

from ..answers import CHAT, stream
from ..shapes import TOOL, Shape
from . import histories
from .work import Work

SHAPE = Shape(texts=40, fragments=20, arguments=800)
READ = 4096
SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string"},
        "content": {"type": "string"},
        "lines": {"type": "integer"},
    },
    "required": ["file_path", "content"],
}
TOOLS = (Tool(name=TOOL, parameters=SCHEMA),)
PAIRS = (
    ("openai-chat", "openai-chat"),
    ("openai-chat", "anthropic"),
    ("anthropic", "openai-chat"),
    ("anthropic", "anthropic"),
    ("openai-chat", "openai-responses"),
    ("gemini", "anthropic"),
)


def reads(data: bytes) -> list[bytes]:
    """As they come from a socket."""
    return [data[at : at + READ] for at in range(0, len(data), READ)]


def exchanged(upstream: str, client: str, pieces: list[bytes]) -> bytes:
    exchange = Exchange(upstream, client, tools=TOOLS, options=Options(id="bench"))
    return b"".join([*[exchange.feed(piece) for piece in pieces], exchange.close()])


def streams() -> dict[str, bytes]:
    """The same answer as an upstream of each protocol gives it."""
    chat = b"".join(stream(CHAT, SHAPE))
    return {name: exchanged(CHAT, name, [chat]) for name in PROTOCOLS}


def works() -> Iterator[Work]:
    """All of them."""
    data = streams()
    pieces = reads(data[CHAT])
    yield Work(
        "SSE",
        "event",
        SHAPE.events,
        lambda: [list(reader.feed(p)) for reader in [SSEReader()] for p in pieces],
    )
    yield from _arguments()
    for name in PROTOCOLS:
        yield _decoding(name, data[name])
    for name in PROTOCOLS:
        yield _encoding(name, data[CHAT])
    for upstream, client in PAIRS:
        yield _exchange(upstream, client, reads(data[upstream]))
    single = [event + b"\n\n" for event in data[CHAT].split(b"\n\n") if event]
    yield Work(
        "openai-chat -> anthropic, one by one",
        "event",
        SHAPE.events,
        lambda: exchanged(CHAT, "anthropic", single),
    )
    yield from histories.works()


def _arguments() -> Iterator[Work]:
    valid = SHAPE.argument_fragments()
    text = "".join(valid).replace('"file_path"', '"path"').removesuffix("}") + ', "lines": "12"}'
    size = len(text) // SHAPE.fragments + 1
    mended = [text[at : at + size] for at in range(0, len(text), size)]
    yield Work("JSON scan", "fragment", len(valid), lambda: _scanned(valid))
    yield Work("live arguments, valid", "fragment", len(valid), lambda: _assembled(valid))
    yield Work("live arguments, mended", "fragment", len(mended), lambda: _assembled(mended))


def _scanned(fragments: list[str]) -> None:
    scanner = JsonScanner()
    for fragment in fragments:
        scanner.feed(fragment)
    assert scanner.state == "complete"


def _assembled(fragments: list[str]) -> None:
    engine = assemble("live", TOOL, compile_schema(SCHEMA), rules())
    for fragment in fragments:
        engine.feed(fragment)
    outcome = engine.finish(ended=True)
    assert outcome.complete
    assert not outcome.problems


def _decoding(name: str, data: bytes) -> Work:
    reader = FrameReader()
    frames = [*reader.feed(data), *reader.close()]

    def run() -> None:
        decoder = protocol(name).decoder("", False)
        for frame in frames:
            decoder.frame(frame)
        decoder.close()

    return Work(f"decode {name}", "event", SHAPE.events, run)


def _encoding(name: str, chat: bytes) -> Work:
    batches: list[list[Event]] = []
    exchange = Exchange(CHAT, name, tools=TOOLS, options=Options(id="bench"))
    exchange.tap = lambda events: batches.append(list(events))
    exchange.feed(chat)
    exchange.close()

    def run() -> None:
        encoder = protocol(name).stream_encoder(Minted(id="bench", created=1, model="m"))
        for batch in batches:
            encoder.encode(batch)

    return Work(f"encode {name}", "event", SHAPE.events, run)


def _exchange(upstream: str, client: str, pieces: list[bytes]) -> Work:
    name = f"{upstream} -> {client}"
    return Work(name, "event", SHAPE.events, lambda: exchanged(upstream, client, pieces))
