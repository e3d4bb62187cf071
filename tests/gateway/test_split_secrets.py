"""Keys split over many small deltas are redacted: joining the stored deltas does not give the key."""

import asyncio
import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import SHORT, Gateway, post, running
from hypothesis import given, settings
from hypothesis import strategies as st
from support import scripted_upstream as upstreams
from support.scripted_talk import question, written
from support.scripted_upstream import ScriptedUpstream
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.conform import neutral
from dragoman.credentials.secret import Secret
from dragoman.model.messages import Tool
from dragoman.observe.tap import ClientBytes, Redactor, Ring, Tap, scrub_stream
from dragoman.recording import load, loads, replay
from dragoman.recording.redact import RecordFilter
from dragoman.translation.translation import Translation

KEY = "sk-upstream/0123456789-abcdefghij"
CALLERS = 'caller"s-own-key-0123456789'
SHOWN = Secret(KEY).fingerprint

Pieces = Callable[[list[str]], list[bytes]]


def sse(*values: Any) -> list[bytes]:
    return [b"data: %s\n\n" % json.dumps(value).encode() for value in values]


def chat_text(pieces: list[str]) -> list[bytes]:
    return sse(*({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces))


def chat_thought(pieces: list[str]) -> list[bytes]:
    return sse(*({"choices": [{"index": 0, "delta": {"reasoning_content": piece}}]} for piece in pieces))


def chat_arguments(pieces: list[str]) -> list[bytes]:
    """Two interleaved calls, with the index after the function."""
    calls: list[Any] = [
        {"function": {"name": "get_weather", "arguments": ""}, "id": f"c{n}", "index": n} for n in (0, 1)
    ]
    for piece in ['{"city": "', *(json.dumps(piece)[1:-1] for piece in pieces), '"}']:
        calls += [{"function": {"arguments": piece}, "index": n} for n in (0, 1)]
    return sse(*({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]} for call in calls))


def anthropic_text(pieces: list[str]) -> list[bytes]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return sse(*({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas))


def two_blocks(pieces: list[str]) -> list[bytes]:
    """The key continues in the next block."""
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return sse(*({"type": "content_block_delta", "index": n, "delta": d} for n, d in enumerate(deltas)))


def gemini_array(pieces: list[str]) -> list[bytes]:
    parts = [{"candidates": [{"content": {"parts": [{"text": piece}]}}]} for piece in pieces]
    return [json.dumps(parts, indent=1).encode()]


def lines(pieces: list[str]) -> list[bytes]:
    return [json.dumps({"message": {"content": piece}}).encode() + b"\r\n" for piece in pieces]


def escaped(pieces: list[str]) -> list[bytes]:
    """Each character as an escape."""
    texts = ["".join(f"\\u{ord(character):04x}" for character in piece) for piece in pieces]
    return [b'data: {"delta":"%s"}\n\n' % text.encode() for text in texts]


STREAMS: dict[str, Pieces] = {
    one.__name__: one
    for one in (
        *(chat_text, chat_thought, chat_arguments, anthropic_text),
        *(two_blocks, gemini_array, lines, escaped),
    )
}


def strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


def joined(data: bytes) -> str:
    """All strings of a stream joined, without those of the second call."""
    text = data.decode().replace("data: ", "").strip()
    values = (
        json.loads(text)
        if text.startswith("[")
        else [json.loads(line) for line in text.split("\n") if line.strip()]
    )
    left = [value for value in values if "index': 1}]" not in str(value)]
    known = {"text_delta", "content_block_delta", "get_weather", "c0", "c1"}
    return "".join(string for string in strings(left) if string not in known)


def cut(text: str, cuts: Iterable[int]) -> list[str]:
    edges = [0, *sorted({at % len(text) for at in cuts} - {0}), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def redactor() -> Redactor:
    known = Redactor()
    known.learn([Secret(KEY), Secret(CALLERS)])
    return known


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("key", [KEY, CALLERS])
@settings(max_examples=25)
@given(cuts=st.sets(st.integers(0, 80), max_size=30), chunk=st.integers(1, 200), batch=st.integers(1, 4))
def test_a_key_is_redacted_for_every_split(
    name: str, key: str, cuts: set[int], chunk: int, batch: int
) -> None:
    said = f"It is {key}, and {key}."
    data = b"".join(STREAMS[name](cut(said, cuts)))
    assert key in joined(data) or json.dumps(key)[1:-1] in joined(data), "the stream contains it"
    chunks = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    at_once = b"".join(scrub_stream(redactor(), chunks))
    shown = Secret(key).fingerprint
    assert joined(at_once).replace("*", "").count(shown) == 2
    assert joined(at_once).replace("*", "").replace(shown, key).strip('{"city: }') in (
        joined(data).replace("\\", "").strip('{"city: }')
    )
    censor = RecordFilter(redactor(), Tap(Ring(0)).begin("x", "anthropic"))
    out: list[Any] = []
    for at in range(0, len(chunks), batch):
        out += censor.filter([ClientBytes(float(at), piece) for piece in chunks[at : at + batch]])
    out += censor.flush()
    assert len(out) == len(chunks)
    written = joined(b"".join(one.data for one in out))
    assert key not in written
    assert json.dumps(key)[1:-1] not in written


@pytest.mark.parametrize("name", STREAMS)
@settings(max_examples=25)
@given(cuts=st.sets(st.integers(0, 80), max_size=30), chunk=st.integers(1, 200))
def test_a_stream_without_a_key_is_unchanged(name: str, cuts: set[int], chunk: int) -> None:
    said = f"It is {KEY[:-1]}, and {CALLERS[:-1]}: sk-upstream"
    data = b"".join(STREAMS[name](cut(said, cuts)))
    chunks = [data[at : at + chunk] for at in range(0, len(data), chunk)]
    assert scrub_stream(redactor(), chunks) == chunks
    censor = RecordFilter(redactor(), Tap(Ring(0)).begin("x", "anthropic"))
    out = [one for piece in chunks for one in censor.filter([ClientBytes(0.0, piece)])]
    assert [one.data for one in (*out, *censor.flush()) if isinstance(one, ClientBytes)] == chunks


def test_patterns_are_redacted_in_joined_text() -> None:
    private = Redactor([r"\d{3}-\d{2}-\d{4}"])
    data = b"".join(chat_text(["I am 12", "3-4", "5-67", "89 years"]))
    shown = joined(b"".join(scrub_stream(private, [data])))
    assert shown == "I am [redacted] years"


def test_holding_is_limited_and_the_rest_is_masked() -> None:
    """The held text is limited. A key whose beginning was written is never written completely."""
    chunks = [*chat_text([KEY[:10]]), *chat_thought(["x" * 1000] * 500), *chat_text([KEY[10:]])]
    censor = RecordFilter(redactor(), Tap(Ring(0)).begin("x", "anthropic"))
    out = [one for piece in chunks for one in censor.filter([ClientBytes(0.0, piece)])]
    assert len(out) > 100, "not everything waits until the end"
    out += censor.flush()
    text = joined(b"".join(one.data for one in out if isinstance(one, ClientBytes)))
    assert KEY[10:] not in text


@pytest.mark.parametrize(
    "body", [b'{"a": "\xff\xfe', b'"' * 1000, b"{[" * 1000, b'{"a\\', b"\n\n\r\n{}}}]]\n"]
)
def test_bytes_that_are_not_json_are_unchanged(body: bytes) -> None:
    data = body + b"\n\n" + b"".join(chat_text([KEY[:9], KEY[9:]]))
    (shown,) = scrub_stream(redactor(), [data])
    assert shown.startswith(body)
    assert joined(shown[len(body) + 2 :]).replace("*", "") == SHOWN


# Through the gateway.


def config(url: str, folder: Path) -> str:
    names = "\n".join(
        f'[upstreams.{name}]\nprotocol = "{protocol}"\nbase_url = "{url}"\ncredential = "env:KEY"'
        for protocol, name in SHORT.items()
    )
    return f'[server]\nretries = 0\nrecord = "{folder}"\n{names}'


def answer(protocol: str, text: str, size: int) -> list[bytes]:
    """An upstream's answer with `text` in deltas of `size` characters, and in a tool call."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    arguments = json.dumps({"city": text})
    fragments = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    deltas: list[Any] = [
        *({"content": piece} for piece in pieces),
        {"tool_calls": [first]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in fragments),
    ]
    chat = sse(
        *({"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    )
    chat.append(b"data: [DONE]\n\n")
    if protocol == CHAT:
        return chat
    tool = Tool(name="get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})
    exchange = Translation(CHAT, protocol, tools=[tool])
    return [*(exchange.feed(frame) for frame in chat), exchange.close()]


async def get(gateway: Gateway, path: str, method: str = "GET") -> bytes:
    async with gateway.session.request(method, gateway.url + path) as response:
        data = await response.read()
        assert response.status == 200, data
    return data


def joined_answer(protocol: str, data: bytes) -> str:
    """The joined text, reasoning and arguments of an answer."""
    return json.dumps(neutral.reduce(protocol, data, stream=True)).replace('\\\\\\"', '"')


@pytest.mark.parametrize("client", [ANTHROPIC, CHAT, RESPONSES, GEMINI])
@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, RESPONSES, GEMINI])
@pytest.mark.parametrize("size", [1, 7])
def test_views_and_recordings_hide_a_key_in_an_answer(
    client: str, upstream: str, size: int, tmp_path: Path
) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url, tmp_path), {"KEY": KEY}) as gateway:
            frames = answer(upstream, f"<{KEY}> <{CALLERS}>", size)
            served.script(upstreams.stream(b"".join(frames)))
            path, body = written(client, question(f"{SHORT[upstream]}/m", stream=True))
            got = await post(gateway, client, path, body, stream=True, x_api_key=CALLERS)
            assert got.status == 200
            assert KEY in joined_answer(client, got.body), "the client gets the model's answer"
            id = got.headers["x-dragoman-exchange"]
            shown = json.loads(await get(gateway, f"/exchanges/{id}/bytes"))
            recording = loads(await get(gateway, f"/exchanges/{id}/recording"))
            replayed = json.loads(await get(gateway, f"/exchanges/{id}/replay", "POST"))
            for protocol, chunks in (
                (upstream, [chunk["text"].encode() for chunk in shown["upstream"]]),
                (client, [chunk["text"].encode() for chunk in shown["client"]]),
                (upstream, [chunk.data for chunk in recording.calls[0].received]),
                (client, [chunk.data for chunk in recording.sent_chunks]),
                (client, [chunk["text"].encode() for chunk in replayed["client"]]),
            ):
                clean(protocol, b"".join(chunks))

    asyncio.run(scene())
    (path,) = tmp_path.iterdir()
    written_down = load(path)
    clean(upstream, b"".join(chunk.data for chunk in written_down.calls[0].received))
    clean(client, written_down.sent)
    replay(written_down)


def clean(protocol: str, data: bytes) -> None:
    said = joined_answer(protocol, data)
    assert KEY not in said
    assert KEY[:24] not in said
    assert CALLERS not in said
    assert SHOWN in said


def test_a_truncated_receipt_holds_no_part_of_a_key(tmp_path: Path) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url, tmp_path), {"KEY": KEY}) as gateway:
            filler = "x" * (4096 - len('{"city": "') - len(KEY) + 1)
            served.script(upstreams.stream(*answer(CHAT, filler + KEY, 1000)))
            path, body = written(CHAT, question("c/m", stream=True))
            got = await post(gateway, CHAT, path, body, stream=True)
            await gateway.state.observed.ledger.close()
            gateway.state.observed.tap.ring.resize(0)
            receipt = json.loads(await get(gateway, f"/exchanges/{got.headers['x-dragoman-exchange']}"))
            (call,) = receipt["calls"]
            assert call["shortened"]
            assert KEY[:8] not in json.dumps(receipt)

    asyncio.run(scene())
