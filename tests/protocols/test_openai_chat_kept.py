"""Chat answers reach Chat clients with all members of their servers, and their sources reach all clients."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run
from support.scenarios import TOOLS
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

Obj = dict[str, Any]

HEAD: Obj = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1763213221, "model": "m"}


def sse(*chunks: Obj) -> bytes:
    frames = [b"data: %b\n\n" % json.dumps({**HEAD, **chunk}).encode() for chunk in chunks]
    return b"".join(frames) + b"data: [DONE]\n\n"


def chunk(delta: Obj, finish: str | None = None, /, **members: Any) -> Obj:
    """A chunk with one choice. Members that begin with `choice_` belong to the choice."""
    choice = {name[7:]: value for name, value in members.items() if name.startswith("choice_")}
    rest = {name: value for name, value in members.items() if not name.startswith("choice_")}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}], **rest}


def chunks(data: bytes) -> list[Obj]:
    frames = [frame.removeprefix(b"data: ") for frame in data.split(b"\n\n")]
    return [json.loads(frame) for frame in frames if frame[:1] == b"{"]


USAGE = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}

OPENROUTER = sse(
    chunk({"role": "assistant", "content": "Hi"}, provider="Fireworks"),
    chunk({"content": " there"}, provider="Fireworks"),
    chunk({"content": ""}, "stop", provider="Fireworks", choice_native_finish_reason="end_turn"),
    {"choices": [], "provider": "Fireworks", "usage": {**USAGE, "cost": 0.00021, "is_byok": False}},
)
REASONS = sse(
    chunk({"role": "assistant", "content": "", "reasoning": "Hm", "reasoning_details": [{"index": 0}]}),
    chunk({"content": "", "reasoning": ", so.", "reasoning_details": [{"index": 0, "text": ", so."}]}),
    chunk({"content": "Yes.", "reasoning": None}),
    chunk({}, "stop"),
)
XAI = sse(
    chunk({"role": "assistant", "content": "Hi"}, system_fingerprint="fp_1"),
    chunk({}, "stop", system_fingerprint="fp_1"),
    {"choices": [], "usage": {**USAGE, "num_sources_used": 0, "cost_in_usd_ticks": 158500}},
)
FILTERS = {"hate": {"filtered": False, "severity": "safe"}}
AZURE = sse(
    {**HEAD, "id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
    chunk({"role": "assistant", "content": "", "refusal": None}, choice_content_filter_results={}),
    chunk({"content": "Hi"}, choice_content_filter_results=FILTERS, choice_content_filter_offsets={"a": 1}),
    chunk({}, "stop", choice_content_filter_results={}),
)
LOGPROBS = {"content": [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}]}
OPENAI = sse(
    chunk({"role": "assistant", "content": ""}, usage=None, obfuscation="a1", choice_logprobs=None),
    chunk({"content": "Hi"}, usage=None, obfuscation="b22", choice_logprobs=LOGPROBS),
    chunk({}, "stop", usage=None, obfuscation="", choice_logprobs=None),
    {"choices": [], "usage": USAGE, "obfuscation": "x"},
)
TWO = sse(
    {"choices": [{"index": n, "delta": {"role": "assistant", "content": ""}} for n in (0, 1)]},
    {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]},
    {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": None, "x": 1}]},
    {"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)
STREAMS = {"openrouter": OPENROUTER, "reasoning": REASONS, "xai": XAI, "openai": OPENAI}


@pytest.mark.parametrize("size", [1, 40, 1 << 20])
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_passes_chunk_by_chunk(name: str, size: int) -> None:
    data = STREAMS[name]
    got = run(exchange(CHAT, CHAT, TOOLS), [data[at : at + size] for at in range(0, len(data), size)])
    assert chunks(got) == chunks(data)


def test_azures_verdicts_pass_with_the_answers_own_id() -> None:
    got = chunks(run(exchange(CHAT, CHAT, TOOLS), [AZURE]))
    assert {chunk["id"] for chunk in got} == {"gen-1"}
    assert [chunk.get("prompt_filter_results") for chunk in got].count([{"prompt_index": 0}]) == 1
    choices = [choice for chunk in got for choice in chunk["choices"]]
    assert [choice.get("content_filter_results") for choice in choices] == [{}, FILTERS, {}]
    assert [choice["delta"].get("content") for choice in choices] == ["", "Hi", None]
    assert choices[1]["content_filter_offsets"] == {"a": 1}


def test_further_choices_pass_as_they_came() -> None:
    got = [choice for chunk in chunks(run(exchange(CHAT, CHAT), [TWO])) for choice in chunk["choices"]]
    second = [choice for choice in got if choice["index"] == 1]
    assert "".join(choice["delta"].get("content") or "" for choice in second) == "b"
    assert [choice["x"] for choice in second if "x" in choice] == [1]
    assert [choice.get("finish_reason") for choice in second][-1] == "stop"


def test_a_whole_body_passes_with_every_member() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}, "y": 2}
    message = {"role": "assistant", "content": None, "tool_calls": [call], "annotations": [], "audio": None}
    choices = [
        {"index": 0, "message": message, "finish_reason": "tool_calls", "native_finish_reason": "tool"},
        {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "stop"},
    ]
    body = {**HEAD, "object": "chat.completion", "choices": choices, "usage": {**USAGE, "cost": 0.1}}
    got = json.loads(run(exchange(CHAT, CHAT, stream=False), [json.dumps(body).encode()]))
    assert got == body


def test_an_error_keeps_what_its_server_adds() -> None:
    error = {"message": "Rate limited", "code": 429, "metadata": {"provider_name": "X", "raw": "slow"}}
    data = sse(chunk({"role": "assistant", "content": "Hi"}), {"error": error, "user_id": "u_1"})
    last = chunks(run(exchange(CHAT, CHAT), [data]))[-1]
    assert (last["error"]["metadata"], last["user_id"]) == (error["metadata"], "u_1")
    assert b"metadata" not in run(exchange(CHAT, ANTHROPIC), [data])


def test_counts_of_several_turns_are_ours_and_keep_the_rest() -> None:
    """xAI counts reasoning apart from the completion. The total shows it."""
    usage = {**USAGE, "total_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 6}, "cost": 2}
    data = sse(
        chunk({"role": "assistant", "content": "x"}), chunk({}, "stop"), {"choices": [], "usage": usage}
    )
    (last,) = [chunk for chunk in chunks(run(exchange(CHAT, CHAT), [data])) if "usage" in chunk]
    assert last["usage"]["cost"] == 2
    assert last["usage"]["completion_tokens"] == 10


PAGE = {"title": "Ulm", "url": "https://ulm.example/", "snippet": "A city."}
PERPLEXITY = {"citations": [PAGE["url"]], "search_results": [PAGE]}
NOTE = {"type": "url_citation", "url_citation": {"url": PAGE["url"], "title": "Ulm", "start_index": 0}}
CITED = {
    "perplexity": sse(
        chunk({"role": "assistant", "content": "Ulm is a city[1]."}, **PERPLEXITY),
        chunk({}, "stop", **PERPLEXITY),
    ),
    "perplexity, older": sse(
        chunk({"role": "assistant", "content": "Ulm[1]."}, citations=[PAGE["url"]]),
        chunk({}, "stop", citations=[PAGE["url"]]),
    ),
    "openrouter, before the text": sse(
        chunk({"role": "assistant", "annotations": [NOTE]}), chunk({"content": "Ulm."}), chunk({}, "stop")
    ),
    "openrouter, after the text": sse(
        chunk({"role": "assistant", "content": "Ulm."}), chunk({"annotations": [NOTE]}), chunk({}, "stop")
    ),
}


@pytest.mark.parametrize("client", [ANTHROPIC, RESPONSES, GEMINI])
@pytest.mark.parametrize("name", CITED)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_sources_reach_clients_of_other_protocols(name: str, client: str, asked: bool) -> None:
    got = run(exchange(CHAT, client, stream=asked), [CITED[name]])
    assert str(PAGE["url"]).encode() in got


@pytest.mark.parametrize("name", CITED)
def test_sources_reach_chat_clients_as_they_came(name: str) -> None:
    data = CITED[name]
    assert chunks(run(exchange(CHAT, CHAT), [data])) == chunks(data)
