"""Codex's own tools over any upstream: the model calls a function, the client gets its built-in's item."""

import msgspec
import pytest
from support import oracle

from dragoman.conformance import laws
from dragoman.exchange import Exchange, Options
from dragoman.protocols.base import Target
from dragoman.protocols.registry import PROTOCOLS, protocol

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
    it = Exchange("openai-chat", "openai-responses", tools=outgoing.names, options=options)
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
