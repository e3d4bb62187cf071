"""Between equal protocols frames pass verbatim, and the encoder can take over at any frame."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run
from support.sample_streams import CUSTOM_TOOL, SAMPLES, TOOLS
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.conform import laws, neutral
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

OFFERED = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]

# Frames without meaning that must not pass to a client of the protocol.
NOISE = {
    ANTHROPIC: b'event: other\ndata: {"type":"ping"}',
    CHAT: b'data: {"nothing":1}',
    RESPONSES: b'event: other\ndata: {"type":"response.reasoning_noise.done"}',
    GEMINI: b'data: {"candidates":[]}',
}
CASES = [(name, kind) for name in PROTOCOLS for kind in SAMPLES[name] if not kind.startswith("error")]


@pytest.mark.parametrize(("protocol", "kind"), CASES)
def test_the_encoder_takes_over_at_any_frame(protocol: str, kind: str) -> None:
    stream = SAMPLES[protocol][kind].stream.replace(b"\r\n", b"\n")
    frames = stream.removesuffix(b"\n\n").split(b"\n\n")
    whole = understood(protocol, stream)
    for place in range(1, len(frames)):
        spoiled = b"\n\n".join([*frames[:place], NOISE[protocol], *frames[place:]]) + b"\n\n"
        assert understood(protocol, spoiled) == whole, place


def understood(protocol: str, stream: bytes) -> Any:
    got = run(exchange(protocol, protocol, OFFERED), [stream])
    assert laws.check(protocol, got, stream=True) == []
    said = neutral.reduce(protocol, got, stream=True)
    return {**said, "tool_calls": [(c["id"], c["name"], c["arguments"]) for c in said["tool_calls"]]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_bodies_are_not_passed_as_one(protocol: str) -> None:
    body = SAMPLES[protocol]["text"].whole
    assert body is not None
    line = json.dumps(json.loads(body)).encode()
    got = run(exchange(protocol, protocol, stream=False), [line + b"\n" + line + b"\n"])
    assert laws.check(protocol, got, stream=False) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_only_the_last_call_can_have_been_cut_by_the_token_limit(client: str) -> None:
    """An unreadable call before another call was not cut: it is broken."""
    frames = SAMPLES[CHAT]["max_tokens_tool"].stream
    broken = frames.replace(b'{\\"path\\": \\"src/', b"nonsense")
    assert broken != frames
    it = exchange(CHAT, client, OFFERED)
    got = run(it, [broken])
    assert laws.check(client, got, stream=True) == []
    assert neutral.reduce(client, got, stream=True)["stop"] == "error"


@pytest.mark.parametrize("client", [ANTHROPIC, CHAT])
def test_an_undeclared_tool_name_is_made_legal(client: str) -> None:
    body = SAMPLES[GEMINI]["tool"].stream.replace(b'"get_weather"', b'"mcp.files:read"')
    it = exchange(GEMINI, client, OFFERED)
    got = run(it, [body])
    assert laws.check(client, got, stream=True) == []
    (call,) = neutral.reduce(client, got, stream=True)["tool_calls"]
    assert call["name"].startswith("mcp_files_read_")
    assert it.receipts[0].upstream_name == "mcp.files:read"
