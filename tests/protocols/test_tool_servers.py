"""MCP servers that the provider connects to: unchanged between equal protocols, translated for others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types.beta import message_create_params
from pydantic import TypeAdapter
from support.anew import anew
from support.sdk_types import CHECKS, drained

from dragoman.model.errors import BadRequest
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.registry import protocol

Obj = dict[str, Any]
ANTHROPIC, CHAT, GEMINI, RESPONSES = "anthropic", "openai-chat", "gemini", "openai-responses"
URL = "https://docs.example/mcp"
BETA = TypeAdapter[Any](message_create_params.MessageCreateParamsNonStreaming)
NEVER = {"require_approval": "never"}


def anthropic(*toolsets: Obj, **server: Any) -> Obj:
    return {
        "model": "claude-opus-4-7",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Ask the docs."}],
        "mcp_servers": [{"type": "url", "name": "docs", "url": URL, **server}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "docs", **toolset} for toolset in toolsets],
    }


def responses(**server: Any) -> Obj:
    tool = {"type": "mcp", "server_label": "docs", "server_url": URL, **server}
    return {"model": "gpt-5", "input": "Ask the docs.", "tools": [tool]}


def gemini(**transport: Any) -> Obj:
    server = {"name": "docs", "streamableHttpTransport": {"url": URL, **transport}}
    return {
        "contents": [{"role": "user", "parts": [{"text": "Ask the docs."}]}],
        "tools": [{"mcpServers": [server]}],
    }


def carried(client: str, body: Obj, upstream: str, *, rebuilt: bool = False) -> Outgoing:
    path = "/v1beta/models/gemini-3-pro:generateContent" if client == GEMINI else ""
    request = protocol(client).read_request(json.dumps(body).encode(), path)
    request = anew(request) if rebuilt else request
    written = protocol(upstream).write_request(request, Target(model="m", issuer="up"))
    if upstream == ANTHROPIC:
        assert drained(BETA.validate_python(written.body)) == written.body
    elif client != upstream:
        CHECKS[upstream](written.body)
    return written


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize(
    ("name", "body"),
    [
        (ANTHROPIC, anthropic({"configs": {"search": {"enabled": False}}}, authorization_token="t")),
        (ANTHROPIC, anthropic({}) | {"tool_choice": {"type": "tool", "name": "search"}}),
        (ANTHROPIC, {k: v for k, v in anthropic(tool_configuration={}).items() if k != "tools"}),
        (RESPONSES, responses(require_approval={"never": {"tool_names": ["a"]}}, headers={"x-a": "b"})),
        (RESPONSES, responses(tool_choice=None, allowed_tools={"read_only": True})),
        (RESPONSES, responses(server_url=None, connector_id="connector_gmail")),
        (GEMINI, gemini(headers={"x-a": "b"})),
    ],
)  # fmt: skip
def test_equal_protocols_get_servers_unchanged(name: str, body: Obj, rebuilt: bool) -> None:
    written = carried(name, body, name, rebuilt=rebuilt).body
    for key in ("mcp_servers", "tools", "tool_choice"):
        assert written.get(key) == body.get(key)


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_server_of_anthropic_is_a_tool_of_responses(rebuilt: bool) -> None:
    written = carried(ANTHROPIC, anthropic({}, authorization_token="t"), RESPONSES, rebuilt=rebuilt)
    tool = {"type": "mcp", "server_label": "docs", "server_url": URL, "authorization": "t", **NEVER}
    assert written.body["tools"] == [tool]
    assert written.notices == ()


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        (anthropic({"default_config": {"enabled": False}, "configs": {"a": {"enabled": True}}}), ["a"]),
        (anthropic({"default_config": {"enabled": False}}), []),
        (anthropic(tool_configuration={"allowed_tools": ["a", "b"]}), ["a", "b"]),
        (anthropic(tool_configuration={"enabled": False}), []),
        (anthropic(), None),
    ],
)
def test_only_the_enabled_tools_may_be_called(body: Obj, allowed: list[str] | None) -> None:
    (tool,) = carried(ANTHROPIC, body, RESPONSES).body["tools"]
    assert tool.get("allowed_tools") == allowed


@pytest.mark.parametrize(
    ("given", "token", "toolset"),
    [
        (responses(**NEVER), None, {}),
        (responses(**NEVER, authorization="t"), "t", {}),
        (responses(**NEVER, headers={"Authorization": "Bearer t"}), "t", {}),
        (
            responses(**NEVER, allowed_tools=["a"]),
            None,
            {"default_config": {"enabled": False}, "configs": {"a": {"enabled": True}}},
        ),
        (
            responses(**NEVER, allowed_tools={"tool_names": ["a"]}),
            None,
            {"default_config": {"enabled": False}, "configs": {"a": {"enabled": True}}},
        ),
    ],
)
def test_a_tool_of_responses_is_a_server_of_anthropic(given: Obj, token: str | None, toolset: Obj) -> None:
    written = carried(RESPONSES, given, ANTHROPIC)
    server = {"type": "url", "name": "docs", "url": URL}
    assert written.body["mcp_servers"] == [server | ({"authorization_token": token} if token else {})]
    assert written.body["tools"] == [{"type": "mcp_toolset", "mcp_server_name": "docs", **toolset}]
    assert (written.betas, written.notices) == (("mcp-client-2025-11-20",), ())


def test_gemini_servers_are_servers_of_the_others() -> None:
    body = gemini(headers={"Authorization": "Bearer t"})
    assert carried(GEMINI, body, ANTHROPIC).body["mcp_servers"][0]["authorization_token"] == "t"
    assert carried(GEMINI, body, RESPONSES).body["tools"][0]["authorization"] == "t"
    (back,) = carried(ANTHROPIC, anthropic({}, authorization_token="t"), GEMINI).body["tools"]
    assert back["mcpServers"][0]["streamableHttpTransport"] == {
        "url": URL,
        "headers": {"Authorization": "Bearer t"},
    }


@pytest.mark.parametrize(
    ("client", "body", "upstream"),
    [
        (ANTHROPIC, anthropic({}), CHAT),
        (RESPONSES, responses(**NEVER), CHAT),
        (ANTHROPIC, anthropic({"configs": {"a": {"enabled": False}}}), RESPONSES),
        (RESPONSES, responses(require_approval="always"), ANTHROPIC),
        (RESPONSES, responses(), ANTHROPIC),
        (RESPONSES, responses(), GEMINI),
        (RESPONSES, responses(require_approval={"always": {"tool_names": ["a"]}}), GEMINI),
        (RESPONSES, responses(**NEVER, headers={"x-tenant": "1"}), ANTHROPIC),
        (RESPONSES, responses(**NEVER, allowed_tools={"read_only": True}), ANTHROPIC),
        (RESPONSES, responses(**NEVER, server_url=None, connector_id="connector_gmail"), ANTHROPIC),
        (RESPONSES, responses(**NEVER, allowed_tools=["a"]), GEMINI),
    ],
)
def test_a_translation_that_allows_more_tools_is_refused(client: str, body: Obj, upstream: str) -> None:
    with pytest.raises(BadRequest, match=r"tools\[0\]"):
        carried(client, body, upstream)
