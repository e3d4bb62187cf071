"""Laws 46 and 47: unknown events and reasons do no harm, and split surrogate pairs are joined."""

import json
from typing import Any

import pytest
from support import edited_streams
from support.exchanges import exchange, run
from support.sample_streams import SAMPLES, TOOLS
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.conform import laws, neutral
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

ALL = list(PROTOCOLS)

NEW_EVENTS: dict[str, Any] = {
    ANTHROPIC: {"type": "weather_changed", "to": {"x": [1, None]}},
    RESPONSES: {"type": "response.weather.changed", "to": {"x": [1, None]}},
    GEMINI: {"weatherMetadata": {"x": [1, None]}, "modelVersion": "", "responseId": ""},
}


def client_bytes(upstream: str, client: str, body: bytes, *, stream: bool = True) -> bytes:
    return run(exchange(upstream, client, TOOLS, stream=stream), [body])


def joined(body: bytes) -> list[Any]:
    return edited_streams.joined(edited_streams.split(body))


# Gemini's calls without an id are rebuilt, which loses the position of an unknown chunk.
BESIDE = [
    (p, kind) for p in NEW_EVENTS for kind in ("text", "tool", "usage") if (p, kind) != (GEMINI, "tool")
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("upstream", "kind"), BESIDE)
def test_46_an_unknown_event_passes_in_its_protocol_and_is_dropped_in_others(
    upstream: str, client: str, kind: str
) -> None:
    events = edited_streams.split(SAMPLES[upstream][kind].stream)
    new = NEW_EVENTS[upstream]
    if upstream == GEMINI:
        new = {**new, "modelVersion": events[0]["modelVersion"], "responseId": events[0]["responseId"]}
    events.insert(2, new)
    body = edited_streams.join(upstream, events)
    got = client_bytes(upstream, client, body)
    if upstream == client:
        assert joined(got) == joined(body)
    else:
        assert got == client_bytes(upstream, client, SAMPLES[upstream][kind].stream)


def _new_block(events: list[Any]) -> None:
    block = {"type": "hologram", "beam": {"x": 1}}
    events.insert(1, {"type": "content_block_start", "index": 0, "content_block": block})
    events.insert(2, {"type": "content_block_stop", "index": 0})
    for event in events[3:]:
        if "index" in event:
            event["index"] += 1


def _new_item(events: list[Any]) -> None:
    item = {"id": "ho_1", "type": "hologram_call", "beam": {"x": 1}, "status": "completed"}
    for event in events[2:]:
        if "output_index" in event:
            event["output_index"] += 1
    events.insert(2, {"type": "response.output_item.added", "output_index": 0, "item": item})
    events.insert(3, {"type": "response.output_item.done", "output_index": 0, "item": item})
    events[-1]["response"]["output"].insert(0, item)


def _new_part(events: list[Any]) -> None:
    events[0]["candidates"][0]["content"]["parts"].insert(0, {"hologram": {"x": 1}})


NEW_PARTS = {ANTHROPIC: _new_block, RESPONSES: _new_item, GEMINI: _new_part}


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("upstream", NEW_PARTS)
def test_46_an_unknown_part_passes_in_its_protocol_and_is_dropped_in_others(
    upstream: str, client: str
) -> None:
    sample = SAMPLES[upstream]["text_tool"]
    body = edited_streams.spoiled(upstream, sample.stream, NEW_PARTS[upstream])
    for asked in (True, False):
        got = client_bytes(upstream, client, body, stream=asked)
        assert laws.check(client, got, stream=asked) == []
        said = neutral.reduce(client, got, stream=asked)
        assert said["text"] == sample.expect["text"]
        assert [call["name"] for call in said["tool_calls"]] == ["get_weather"]
        assert (b"hologram" in got) == (upstream == client)
    if upstream == client != GEMINI:  # whose calls without an id are rebuilt
        assert joined(client_bytes(upstream, client, body)) == joined(body)


def _set_finish(value: Any, key: str, word: str) -> int:
    """Replace every `key` that is set. Returns how many there were."""
    count = 0
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        count += _set_finish(inner, key, word)
    if isinstance(value, dict) and value.get(key):
        value[key] = word
        count += 1
    return count


FINISHES = {ANTHROPIC: "stop_reason", CHAT: "finish_reason", GEMINI: "finishReason"}


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("upstream", FINISHES)
@pytest.mark.parametrize("kind", ["text", "tool"])
def test_46_an_unknown_stop_reason_ends_the_answer(upstream: str, client: str, kind: str) -> None:
    sample = SAMPLES[upstream][kind]
    events = edited_streams.split(sample.stream)
    assert _set_finish(events, FINISHES[upstream], "NEW_REASON") == 1
    got = client_bytes(upstream, client, edited_streams.join(upstream, events))
    found = [str(broken) for broken in laws.check(client, got, stream=True)]
    assert [text for text in found if upstream != client or "NEW_REASON" not in text] == []
    said = neutral.reduce(client, got, stream=True)
    assert said["text"] == sample.expect["text"]
    assert len(said["tool_calls"]) == len(sample.expect["tool_calls"])
    assert said["error"] is None


def split_emoji(upstream: str, kind: str) -> bytes:
    """A stream with a surrogate pair split over two frames."""
    if kind == "text":
        old, first, second = "How can I", "How \\ud83d", "\\ude00 can I"
    else:
        old, first, second = 'is\\", \\"unit\\": \\"cel', "is \\ud83d", '\\ude00\\", \\"unit\\": \\"cel'
    found: list[str] = []
    for frame in SAMPLES[upstream][kind].stream.decode().replace("\r\n", "\n").split("\n\n"):
        if f'"{old}"' in frame and ".done" not in frame and "completed" not in frame:
            found += [frame.replace(f'"{old}"', f'"{half}"') for half in (first, second)]
        else:
            found.append(frame)
    return "\n\n".join(found).encode()


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("upstream", ALL)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_47_a_split_surrogate_pair_in_text_is_joined(upstream: str, client: str, asked: bool) -> None:
    body = split_emoji(upstream, "text")
    assert b"\\ud83d" in body
    got = client_bytes(upstream, client, body, stream=asked)
    assert laws.check(client, got, stream=asked) == []
    assert "How \U0001f600 can I" in neutral.reduce(client, got, stream=asked)["text"]


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, RESPONSES])
def test_47_a_split_surrogate_pair_in_arguments_is_joined(upstream: str, client: str) -> None:
    """Once as JSON escapes inside the argument text, once split in the text itself."""
    text = '{"city": "Par\U0001f600is"}'
    halves = text.encode("utf-16-le", "surrogatepass")
    at = 2 * (text.index("\U0001f600") + 1)
    pieces = [part.decode("utf-16-le", "surrogatepass") for part in (halves[:at], halves[at:])]
    events = edited_streams.split(SAMPLES[upstream]["tool"].stream)
    deltas = [place for place, event in enumerate(events) if _arguments(event) is not None]
    for place, piece in zip(deltas, [*pieces, "", "", "", ""], strict=False):
        _set_arguments(events[place], piece)
    if upstream == RESPONSES:
        events = [e for e in events if not e["type"].endswith(("arguments.done", "item.done"))]
        events[-1]["response"]["output"] = []
    body = b"".join(
        b"event: %s\ndata: %s\n\n" % (str(e.get("type", "")).encode(), json.dumps(e).encode())
        if isinstance(e, dict) and upstream != CHAT
        else b"data: %s\n\n" % (e if isinstance(e, str) else json.dumps(e)).encode()
        for e in events
    )
    assert b"\\ud83d" in body
    got = client_bytes(upstream, client, body)
    assert laws.check(client, got, stream=True) == []
    (call,) = neutral.reduce(client, got, stream=True)["tool_calls"]
    assert call["arguments"] == {"city": "Par\U0001f600is"}


def _arguments(event: Any) -> str | None:
    if not isinstance(event, dict):
        return None
    if event.get("type") == "response.function_call_arguments.delta":
        return event["delta"]
    if event.get("type") == "content_block_delta":
        return event["delta"].get("partial_json")
    for choice in event.get("choices") or ():
        for call in choice["delta"].get("tool_calls") or ():
            return call["function"].get("arguments")
    return None


def _set_arguments(event: Any, text: str) -> None:
    if event.get("type") == "response.function_call_arguments.delta":
        event["delta"] = text
    elif event.get("type") == "content_block_delta":
        event["delta"]["partial_json"] = text
    else:
        event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"] = text
