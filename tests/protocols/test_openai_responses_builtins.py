"""Codex's built-in tools over any upstream: the model calls a function, the client gets a built-in item."""

import msgspec
import pytest
from support import oracle

from dragoman.conform import laws
from dragoman.protocols.base import Target
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.translation.translation import Options, Translation

REQUEST = {
    "model": "m",
    "input": "list the files",
    "tools": [{"type": "local_shell"}, {"type": "apply_patch"}],
}


def answer(name: str, arguments: str) -> bytes:
    function = {"name": name, "arguments": arguments}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return msgspec.json.encode(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )


def items(name: str, arguments: str, *, stream: bool) -> list[dict[str, object]]:
    request = protocol("openai-responses").read_request(msgspec.json.encode(REQUEST), "")
    outgoing = protocol("openai-chat").write_request(request, Target(model="m"))
    options = Options(id="b1", stream=stream)
    it = Translation("openai-chat", "openai-responses", tools=outgoing.names, options=options)
    data = it.feed(answer(name, arguments)) + it.close()
    assert laws.check("openai-responses", data, stream=stream) == []
    oracle.parse("openai-responses", data, stream=stream)
    last = data.split(b"data: ")[-1] if stream else data
    body = msgspec.json.decode(last)
    return (body["response"] if stream else body)["output"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_shell_call_is_a_shell_item(stream: bool) -> None:
    (item,) = items("local_shell", '{"command": ["ls", "-la"]}', stream=stream)
    assert item["type"] == "local_shell_call"
    assert item["call_id"] == "call_1"
    assert item["action"]["command"] == ["ls", "-la"]
    assert item["status"] == "completed"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_patch_is_a_patch_item(stream: bool) -> None:
    arguments = {"operation": {"type": "create_file", "path": "a.txt", "diff": "+hi"}}
    (item,) = items("apply_patch", msgspec.json.encode(arguments).decode(), stream=stream)
    assert item["type"] == "apply_patch_call"


@pytest.mark.parametrize("upstream", [name for name in PROTOCOLS if name != "openai-responses"])
def test_every_other_upstream_is_offered_functions(upstream: str) -> None:
    request = protocol("openai-responses").read_request(msgspec.json.encode(REQUEST), "")
    outgoing = protocol(upstream).write_request(request, Target(model="m"))
    assert set(outgoing.names.declared()) == {"local_shell", "apply_patch"}
    assert b"local_shell" in msgspec.json.encode(outgoing.body["tools"])


SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Searches over deferred tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
CALENDAR = {
    "type": "namespace",
    "name": "calendar",
    "description": "Dates.",
    "tools": [{"type": "function", "name": "add", "description": "Adds a date", "parameters": {}}],
}
SEARCHED = [
    {"role": "user", "content": "Book it"},
    {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "call_1",
        "execution": "client",
        "arguments": {"query": "calendar"},
        "status": "completed",
    },
    {
        "type": "tool_search_output",
        "id": "tso_1",
        "call_id": "call_1",
        "execution": "client",
        "status": "completed",
        "tools": [CALENDAR],
    },
]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_tool_search_is_a_search_item(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REQUEST, "tools", [SEARCH])
    (item,) = items("tool_search", '{"query": "calendar"}', stream=stream)
    assert (item["type"], item["execution"], item["call_id"]) == ("tool_search_call", "client", "call_1")
    assert item["arguments"] == {"query": "calendar"}


@pytest.mark.parametrize("upstream", [name for name in PROTOCOLS if name != "openai-responses"])
def test_found_tools_can_be_called(upstream: str) -> None:
    body = {"model": "m", "input": SEARCHED, "tools": [SEARCH]}
    request = protocol("openai-responses").read_request(msgspec.json.encode(body), "")
    outgoing = protocol(upstream).write_request(request, Target(model="m"))
    assert outgoing.notices == ()
    sent = msgspec.json.encode(outgoing.body)
    assert b"Adds a date" in sent.partition(b'"tools"')[2]
    result = protocol(upstream).read_request(sent, outgoing.path).messages[-1].parts[0]
    assert result.parts[0].text == "calendar: Dates.\n  add: Adds a date"


def test_a_tool_search_of_openai_is_left_to_it() -> None:
    server = {"execution": "server", "call_id": None}
    history = [SEARCHED[0], SEARCHED[1] | server, SEARCHED[2] | server]
    body = {"model": "m", "input": history, "tools": [{"type": "tool_search"}]}
    request = protocol("openai-responses").read_request(msgspec.json.encode(body), "")
    assert [tool.kind for tool in request.tools] == ["hosted", "function"]
    assert [type(message.parts[0]).__name__ for message in request.messages] == ["Text", "Opaque", "Opaque"]
