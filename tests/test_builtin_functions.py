"""Moonshot's built-in functions: the client declares `$web_search` and returns the arguments of its calls."""

import json
from typing import Any

import pytest
from support.exchanges import run, sliced
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman import Options, Translation
from dragoman.conform import laws
from dragoman.model.messages import Request
from dragoman.protocols.base import Target
from dragoman.protocols.registry import client_protocol, protocol

ARGUMENTS = '{"search_result":{"search_id":"s1"},"usage":{"total_tokens":13}}'
CALL: dict[str, Any] = {
    "id": "web_1",
    "type": "builtin_function",
    "function": {"name": "$web_search", "arguments": ARGUMENTS},
}
TOOLS: list[dict[str, Any]] = [
    {"type": "builtin_function", "function": {"name": "$web_search"}},
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
]
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "What is new?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "web_1", "name": "$web_search", "content": ARGUMENTS},
]


def read(**members: Any) -> Request:
    body = {"model": "kimi", "messages": HISTORY, "tools": TOOLS, **members}
    return client_protocol(CHAT).read_request(json.dumps(body).encode(), "")


def written(upstream: str, request: Request) -> dict[str, Any]:
    return json.loads(protocol(upstream).write_request(request, Target(model="m")).encoded())


def test_a_chat_upstream_gets_the_tools_unchanged() -> None:
    choice = {"type": "builtin_function", "function": {"name": "$web_search"}}
    out = written(CHAT, read(tool_choice=choice))
    assert (out["messages"], out["tools"], out["tool_choice"]) == (HISTORY, TOOLS, choice)


@pytest.mark.parametrize(
    ("upstream", "search"),
    [
        (ANTHROPIC, {"type": "web_search_20250305", "name": "web_search"}),
        (RESPONSES, {"type": "web_search"}),
        (GEMINI, {"googleSearch": {}}),
    ],
)
def test_another_upstream_gets_its_own_search(upstream: str, search: dict[str, Any]) -> None:
    out = written(upstream, read())
    assert search in out["tools"]
    assert "$web_search" not in json.dumps(out)


@pytest.mark.parametrize("upstream", [ANTHROPIC, RESPONSES, GEMINI])
def test_a_function_that_another_upstream_lacks_is_left_out_with_a_warning(upstream: str) -> None:
    tools = [{"type": "builtin_function", "function": {"name": "$code_runner"}}, TOOLS[1]]
    out = protocol(upstream).write_request(read(tools=tools, messages=HISTORY[:1]), Target(model="m"))
    assert [notice.rule for notice in out.notices] == ["hosted-tool-dropped"]
    assert b"code_runner" not in out.encoded()


def chunk(**choice: Any) -> bytes:
    value = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "kimi",
        "choices": [{"index": 0, "delta": {}, "finish_reason": None, **choice}],
    }
    return b"data: " + json.dumps(value).encode() + b"\n\n"


STREAM = (
    chunk(delta={"role": "assistant", "content": ""})
    + chunk(delta={"tool_calls": [{"index": 0, **CALL}]})
    + chunk(finish_reason="tool_calls")
    + b"data: [DONE]\n\n"
)


@pytest.mark.parametrize("size", [1, 11, 1 << 20])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_chat_client_gets_the_call_by_its_own_name_and_type(stream: bool, size: int) -> None:
    names = protocol(CHAT).write_request(read(), Target(model="m")).names
    it = Translation(CHAT, CHAT, tools=names, options=Options(stream=stream, id="x", created=1, model="kimi"))
    got = run(it, sliced(STREAM, size))
    receipt = it.receipts[0]
    assert (receipt.name, receipt.sent, receipt.problems, receipt.dropped) == (
        "$web_search",
        ARGUMENTS,
        (),
        None,
    )
    if not stream:
        assert json.loads(got)["choices"][0]["message"]["tool_calls"] == [CALL]
    else:
        assert b'"builtin_function"' in got
        assert b'"$web_search"' in got


@pytest.mark.parametrize("type", ["unction", "7", "builtin_function"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_declared_tool_is_the_clients_whatever_type_the_server_sends(stream: bool, type: str) -> None:
    call = {"id": "f_1", "type": type, "function": {"name": "f", "arguments": "{}"}}
    names = protocol(CHAT).write_request(read(), Target(model="m")).names
    it = Translation(CHAT, CHAT, tools=names, options=Options(stream=stream, id="x", created=1, model="kimi"))
    chunks = (
        chunk(delta={"role": "assistant", "tool_calls": [{"index": 0, **call}]}),
        chunk(finish_reason="tool_calls"),
        b"data: [DONE]\n\n",
    )
    out = run(it, list(chunks))
    assert laws.check(CHAT, out, stream=stream) == []
    assert f'"type":"{type}"'.encode() not in out
    assert (it.receipts[0].name, it.receipts[0].dropped) == ("f", None)
