"""Compaction over any upstream: the trigger, `POST /v1/responses/compact`, and the returned item."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from support.gateways import Gateway, Loop, gateway
from support.open_responses import USAGE, missing
from support.plain_http import Got, post
from support.scripted_upstream import ScriptedUpstream, in_background, status
from support.wires import PROTOCOLS

from dragoman import Target, protocol
from dragoman.config import loads
from dragoman.conform.scripted import serve
from dragoman.protocols.openai_responses import compaction

UPSTREAM = '[upstreams.{0}]\nprotocol = "{0}"\nbase_url = "{1}"\ncredential = "none"\n'
HISTORY: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": "Run `ls`."},
    {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command":"ls"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There is a.txt."}]},
]
SHELL = {
    "type": "function",
    "name": "shell",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
TRIGGER = {"type": "compaction_trigger"}


@pytest.fixture(scope="module")
def served() -> Iterator[Gateway]:
    loop = Loop()
    url, stop = loop.run(serve(pace=0))
    try:
        with gateway("".join(UPSTREAM.format(name, url) for name in PROTOCOLS), loop) as running:
            yield running
    finally:
        loop.run(stop())
        loop.close()


def ask(served: Gateway, path: str, upstream: str, **body: Any) -> Got:
    model = f"{upstream}/demo"
    return post(f"{served.url}{path}", {"model": model, "input": HISTORY, "tools": [SHELL], **body})


def final(got: Got, stream: bool) -> dict[str, Any]:
    if not stream:
        return got.json
    events = [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in events if event["type"].startswith("response.output_item")] == [
        "response.output_item.added",
        "response.output_item.done",
    ]
    return events[-1]["response"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_trigger_gives_exactly_one_compaction_item(upstream: str, stream: bool, served: Gateway) -> None:
    got = ask(served, "/v1/responses", upstream, input=[*HISTORY, TRIGGER], stream=stream)
    assert got.status == 200
    response = final(got, stream)
    assert missing(response) == []
    (item,) = response["output"]
    assert (item["type"], response["status"]) == ("compaction", "completed")
    summary = compaction.summary_of(item["encrypted_content"])
    assert summary is not None
    assert "Write a summary" in summary  # the scripted model repeats the user's last text


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_compact_endpoint_keeps_user_messages(upstream: str, served: Gateway) -> None:
    got = ask(served, "/v1/responses/compact", upstream)
    assert got.status == 200
    body = got.json
    assert body["object"] == "response.compaction"
    assert [item["type"] for item in body["output"]] == ["message", "compaction"]
    assert body["output"][0]["content"] == [{"type": "input_text", "text": "Run `ls`."}]
    assert set(USAGE["required"]) <= set(body["usage"])
    assert got.headers["x-dragoman-exchange"]


def test_the_official_sdk_compacts(served: Gateway) -> None:
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none")
    compacted = client.responses.compact(model="openai-chat/demo", input="Run `ls`.")
    assert [item.type for item in compacted.output] == ["message", "compaction"]
    going_on = [*(item.model_dump(exclude_none=True, warnings=False) for item in compacted.output)]
    answer = client.responses.create(
        model="openai-chat/demo", input=[*going_on, {"role": "user", "content": "Go on."}]
    )
    assert answer.status == "completed"


@pytest.mark.parametrize("body", [{"model": None}, {"model": "openai-chat/demo", "input": 7}])
def test_a_bad_request_to_compact_is_refused(body: dict[str, Any], served: Gateway) -> None:
    given = {name: value for name, value in {"input": "Hi.", **body}.items() if value is not None}
    got = post(f"{served.url}/v1/responses/compact", given)
    assert got.status == 400
    assert got.json["error"]["message"]


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_item_is_expanded_for_every_upstream(upstream: str) -> None:
    """The summary reaches the model as text. No upstream gets an item that only Dragoman can read."""
    item = compaction.compaction_part("We listed the files.", "1").raw.value
    body = {"model": "m", "input": [item, {"role": "user", "content": "Go on."}]}
    request = protocol("openai-responses").read_request(json.dumps(body).encode(), "")
    sent = protocol(upstream).write_request(request, Target(model="m"))
    assert "We listed the files." in sent.encoded().decode()
    assert item["encrypted_content"] not in sent.encoded().decode()
    assert sent.notices == ()


def test_an_item_of_openai_goes_back_unchanged() -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABo"}
    body = {"model": "m", "input": [item, {"role": "user", "content": "Go on."}]}
    request = protocol("openai-responses").read_request(json.dumps(body).encode(), "")
    sent = protocol("openai-responses").write_request(request, Target(model="m"))
    assert sent.body["input"][0] == item


def test_an_upstream_that_fails_gives_an_error_and_no_item(served: Gateway) -> None:
    got = post(
        f"{served.url}/v1/responses",
        {"model": "openai-chat/demo-length", "input": [*HISTORY, TRIGGER], "tools": [SHELL]},
    )
    assert got.status >= 400
    assert "could not be compacted" in got.json["error"]["message"]


NATIVE = {"id": "cmp_9", "type": "compaction", "encrypted_content": "gAAAAABo"}
ANSWER = {
    "id": "resp_9",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "completed",
    "output": [NATIVE],
    "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
}


@pytest.fixture
def compacting() -> Iterator[tuple[Gateway, ScriptedUpstream]]:
    """A gateway with an upstream that compacts conversations itself."""
    loop = Loop()
    with in_background() as upstream:
        responses = UPSTREAM.format("openai-responses", upstream.url)
        chat = UPSTREAM.format("openai-chat", upstream.url)
        config = f"{responses}compaction = true\n{chat}compaction = true\n"
        with gateway(config, loop) as running:
            yield running, upstream
    loop.close()


def test_an_upstream_that_compacts_gets_the_trigger(compacting: tuple[Gateway, ScriptedUpstream]) -> None:
    served, upstream = compacting
    upstream.script(status(200, json.dumps(ANSWER).encode()))
    got = ask(served, "/v1/responses", "openai-responses", input=[*HISTORY, TRIGGER])
    assert got.json["output"] == [NATIVE]
    assert upstream.last.json["input"] == [*HISTORY, TRIGGER]


def test_a_streamed_item_of_the_upstream_passes(compacting: tuple[Gateway, ScriptedUpstream]) -> None:
    served, upstream = compacting
    begun = {**ANSWER, "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": NATIVE},
        {"type": "response.output_item.done", "output_index": 0, "item": NATIVE},
        {"type": "response.completed", "response": ANSWER},
    ]
    frames = [json.dumps({**event, "sequence_number": at}) for at, event in enumerate(events)]
    upstream.script("".join(f"data: {frame}\n\n" for frame in frames).encode())
    got = ask(served, "/v1/responses", "openai-responses", input=[*HISTORY, TRIGGER], stream=True)
    assert final(got, stream=True)["output"] == [NATIVE]
    assert upstream.last.json["input"][-1] == TRIGGER


def test_the_compact_endpoint_of_an_upstream_that_compacts(
    compacting: tuple[Gateway, ScriptedUpstream],
) -> None:
    served, upstream = compacting
    upstream.script(status(200, json.dumps(ANSWER).encode()))
    got = ask(served, "/v1/responses/compact", "openai-responses")
    assert [item["type"] for item in got.json["output"]] == ["message", "compaction"]
    assert got.json["output"][-1] == NATIVE
    assert upstream.last.json["input"][-1] == TRIGGER


def test_no_upstream_compacts_over_chat(compacting: tuple[Gateway, ScriptedUpstream]) -> None:
    served, upstream = compacting
    said = {"index": 0, "message": {"role": "assistant", "content": "We ran ls."}, "finish_reason": "stop"}
    upstream.script(status(200, json.dumps({"id": "c", "model": "m", "choices": [said]}).encode()))
    got = ask(served, "/v1/responses", "openai-chat", input=[*HISTORY, TRIGGER])
    (item,) = got.json["output"]
    assert "We ran ls." in (compaction.summary_of(item["encrypted_content"]) or "")


@pytest.mark.parametrize(
    ("config", "compacts"),
    [
        ("[upstreams.openai]", True),
        ("[upstreams.openai]\ncompaction = false", False),
        ('[upstreams.x]\nprotocol = "openai-responses"\nbase_url = "https://api.openai.com"', True),
        ('[upstreams.x]\nprotocol = "openai-responses"\nbase_url = "https://llm.example.com"', False),
        ("[upstreams.openrouter]", False),
    ],
)
def test_which_upstreams_compact_themselves(config: str, compacts: bool) -> None:
    (upstream,) = loads(config).upstreams.values()
    assert upstream.target("m").compacts is compacts
