"""Anthropic requests: bodies of real clients are read, and every neutral request can be written."""

from __future__ import annotations

import base64
import copy
import itertools
import json
import re
from typing import Any

import msgspec
import pytest
from anthropic.lib.tools._toolsets._computer_inputs import COMPUTER_INPUT_TYPES
from anthropic.lib.tools._toolsets._inputs import BROWSER_INPUT_TYPES
from anthropic.lib.tools._toolsets._registry import BROWSER_DEFAULT_DISABLED_MEMBERS
from hypothesis import given, settings
from hypothesis import strategies as st
from support.anew import anew
from support.sdk_types import check_anthropic

from dragoman.model.errors import BadRequest
from dragoman.model.messages import (
    Cache,
    Citation,
    Extras,
    Format,
    Media,
    Message,
    Opaque,
    Raw,
    Reasoning,
    Refusal,
    Request,
    Seal,
    Settings,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.protocols.anthropic.request.read import read_request
from dragoman.protocols.anthropic.request.write import IDS, write_request
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.common import call_ids as ids
from dragoman.protocols.common import sealed_reasoning

TARGET = Target(model="m")
NEW = Target(model="m", anthropic_version="2026-10-21")
PNG = "iVBORw0KGgo="
OBJECT = {"type": "object", "properties": {}}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    said = list(messages) or [{"role": "user", "content": "hi"}]
    return {"model": "claude-x", "max_tokens": 64, "messages": said, **fields}


def read(value: dict[str, Any], path: str = "/v1/messages") -> Request:
    return read_request(json.dumps(value, separators=(",", ":")).encode(), path)


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def tool_use(id: str = "toolu_1", name: str = "Bash", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **fields}


def tool_result(id: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, **fields}


def part_of(block: dict[str, Any], *, result: bool = False) -> Any:
    """The one part that `block` becomes in a user message, or in a result."""
    if result:
        messages = [assistant(tool_use()), user(tool_result(content=[block]))]
        return read(body(*messages)).messages[1].parts[0].parts[0]
    return read(body(user(block))).messages[0].parts[0]


# Bodies of real clients (clients.md 2.1).

CLAUDE_CODE = {
    "model": "claude-opus-5-5",
    "max_tokens": 128000,
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.325.b55;"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>be good"}]},
        {
            "role": "system",
            "content": [{"type": "text", "text": "deferred tools", "cache_control": None}],
            "output_config": {"effort": "medium"},
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
                {"type": "redacted_thinking", "data": "ZZZ"},
                {"type": "text", "text": "Let me look."},
                {
                    "type": "tool_use",
                    "id": "toolu_01",
                    "name": "Bash",
                    "input": {"command": "ls", "timeout": 10, "z": 1, "a": 2.50},
                    "caller": {"type": "direct"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_01",
                    "content": "a.txt",
                    "is_error": False,
                    "cache_control": {"type": "ephemeral", "ttl": "1h"},
                },
            ],
        },
        {"role": "system", "content": "the same entry as a string"},
    ],
    "tools": [
        {
            "name": "Bash",
            "description": "run",
            "input_schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
            "eager_input_streaming": True,
        },
        {"name": "DeferredToolPlaceholder", "input_schema": OBJECT, "defer_loading": True},
    ],
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": '{"device_id":"d","account_uuid":"","session_id":"s"}'},
    "stream": True,
}

TITLE_REQUEST = body(
    tools=[],
    thinking={"type": "disabled"},
    temperature=1,
    output_config={"format": {"type": "json_schema", "schema": OBJECT}},
)

CLINE = body(
    tools=[
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"name": "read", "input_schema": OBJECT, "cache_control": {"type": "ephemeral"}},
    ],
    tool_choice={"type": "auto", "disable_parallel_tool_use": True},
    system="a string",
)

EVERYTHING = body(
    user(
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "T",
            "context": "C",
            "citations": {"enabled": True},
        },
        {"type": "container_upload", "file_id": "f"},
        {"type": "brand_new", "x": {"y": 1}},
    ),
    assistant(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {
            "type": "text",
            "text": "found",
            "citations": [
                {
                    "type": "web_search_result_location",
                    "url": "https://e.com",
                    "title": "E",
                    "cited_text": "c",
                    "encrypted_index": "Eo8B",
                }
            ],
        },
        {
            "type": "tool_use",
            "id": "t",
            "name": "left_click",
            "input": {},
            "toolset_name": "computer",
        },
    ),
    user({"type": "tool_result", "tool_use_id": "t"}),
    mcp_servers=[{"type": "url", "name": "s", "url": "https://mcp"}],
    container="c",
    unknown_field={"b": 1, "a": [None, 1.5, "é\u2028"]},
    tools=[
        {"type": "bash_20250124", "name": "bash"},
        {"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}},
        {"type": "mcp_toolset", "mcp_server_name": "s"},
    ],
    output_config={"task_budget": {"type": "tokens", "total": 5}, "effort": "low"},
    thinking={"type": "between_tools"},
    service_tier="standard_only",
    top_k=5,
    top_p=0.5,
)

SAMPLES = {"claude-code": CLAUDE_CODE, "title": TITLE_REQUEST, "cline": CLINE, "all": EVERYTHING}


def test_claude_code_is_read():
    request = read(CLAUDE_CODE)
    system, first, mid, answer, results, last = request.messages
    assert (request.model, request.stream) == ("claude-opus-5-5", True)
    assert system.role == "system"
    assert system.parts[1] == Text("You are Claude Code.", Cache())
    assert first.parts == (Text("<system-reminder>be good"),)
    assert (mid.role, mid.parts) == ("system", (Text("deferred tools"),))
    thinking, redacted, text, call = answer.parts
    assert thinking == Thinking("hm", Seal("anthropic", "EqQB"))
    assert redacted == Thinking("", Seal("anthropic", "ZZZ", redacted=True))
    assert text == Text("Let me look.")
    assert isinstance(call, ToolCall)
    assert (call.id, call.name) == ("toolu_01", "Bash")
    assert call.arguments == '{"command":"ls","timeout":10,"z":1,"a":2.5}'
    assert call.extras == Extras("anthropic", {"caller": {"type": "direct"}})
    (result,) = results.parts
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.parts) == ("toolu_01", (Text("a.txt"),))
    assert (result.is_error, result.cache) == (False, Cache("1h"))
    assert (last.role, last.parts) == ("system", (Text("the same entry as a string"),))
    bash, deferred = request.tools
    assert bash.extras == {"eager_input_streaming": True}
    assert (deferred.deferred, deferred.kind) == (True, "function")
    # The last system message with an effort sets that of this turn.
    assert request.settings.reasoning == Reasoning(True, "medium", adaptive=True, show=False)
    assert request.settings.user == CLAUDE_CODE["metadata"]["user_id"]
    assert request.extras == {"context_management": CLAUDE_CODE["context_management"]}
    assert request.raw == Raw("anthropic", CLAUDE_CODE)
    assert [m.raw.parsed for m in request.messages[1:] if m.raw] == CLAUDE_CODE["messages"]


def test_settings_are_read():
    request = read(EVERYTHING)
    assert request.settings.service_tier == "default"
    assert (request.settings.top_k, request.settings.top_p) == (5, 0.5)
    assert request.settings.reasoning == Reasoning(True, "low", adaptive=True)
    assert request.extras is not None
    assert request.extras["thinking"] == {"type": "between_tools"}
    assert request.extras["output_config"] == {"task_budget": {"type": "tokens", "total": 5}}
    assert request.extras.keys() >= {"mcp_servers", "container", "unknown_field"}
    title = read(TITLE_REQUEST).settings
    assert title.format == Format("schema", OBJECT)
    assert (title.temperature, title.reasoning) == (1, Reasoning(enabled=False))
    cline = read(CLINE)
    assert cline.settings.tool_choice == ToolChoice("auto")
    assert cline.settings.parallel_tool_calls is False
    assert cline.messages[0].parts == (Text("a string"),)
    assert (cline.tools[0].kind, cline.tools[0].hosted) == ("hosted", "web_search")
    assert cline.tools[0].extras == {"max_uses": 3}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 31999, "display": "updates"}},
         {"reasoning": Reasoning(True, budget=31999, show=True)}),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}},
         {"reasoning": Reasoning(True, budget=2000, show=True)}),
        ({"thinking": {"type": "adaptive"}}, {"reasoning": Reasoning(True, adaptive=True)}),
        ({"output_config": {"effort": "max"}}, {"reasoning": Reasoning(effort="max")}),
        ({"output_format": {"type": "json_schema", "schema": {"a": 1}}},
         {"format": Format("schema", {"a": 1})}),
        ({"stop_sequences": ["a", "b"]}, {"stop": ("a", "b")}),
        ({"speed": "fast"}, {"service_tier": "fast"}),
        ({"service_tier": "auto"}, {"service_tier": "auto"}),
        ({"cache_control": {"type": "ephemeral", "ttl": "1h"}}, {"cache": Cache("1h")}),
        ({"temperature": 0}, {"temperature": 0}),
        ({"metadata": {"user_id": "u", "more": 1}}, {"user": "u", "metadata": {"more": 1}}),
        ({"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "any"}},
         {"tool_choice": ToolChoice("required")}),
        ({"tools": [{"name": "f", "input_schema": {}}],
          "tool_choice": {"type": "tool", "name": "f"}},
         {"tool_choice": ToolChoice("named", "f")}),
        ({"tool_choice": {"type": "none"}}, {"tool_choice": ToolChoice("none")}),
    ],
)  # fmt: skip
def test_each_setting_is_read(fields: dict[str, Any], expected: dict[str, Any]):
    found = read(body(**fields)).settings
    assert {key: getattr(found, key) for key in expected} == expected


@pytest.mark.parametrize("in_result", [False, True])
@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "image", "source": {"type": "url", "url": "https://i"}},
         {"kind": "image", "url": "https://i"}),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}},
         {"kind": "image", "file_id": "f"}),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"},
          "title": "T"},
         {"kind": "document", "text": "d", "media_type": "text/plain", "name": "T"}),
        ({"type": "document", "source": {"type": "content", "content": [
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}},
         {"kind": "document", "text": "a\n\nb"}),
        ({"type": "document", "source": {"type": "content", "content": "a"}}, {"text": "a"}),
        ({"type": "document", "source": {"type": "url", "url": "https://d"}}, {"url": "https://d"}),
        ({"type": "document", "source": {"type": "file", "file_id": "f"}}, {"file_id": "f"}),
        ({"type": "search_result", "source": "https://s", "title": "T",
          "content": [{"type": "text", "text": "found"}], "cache_control": {"type": "ephemeral"}},
         {"kind": "document", "name": "T", "context": "https://s", "text": "found",
          "cache": Cache()}),
    ],
)  # fmt: skip
def test_media_are_read(block: dict[str, Any], expected: dict[str, Any], in_result: bool):
    part = part_of(block, result=in_result)
    assert {key: getattr(part, key) for key in expected} == expected
    assert part.raw == Raw("anthropic", block)


def test_results_that_only_anthropic_knows_become_text():
    assert "Grep" in part_of({"type": "tool_reference", "tool_name": "Grep"}, result=True).text
    state = {"type": "browser_state", "tabs": []}
    assert json.loads(part_of(state, result=True).text) == state
    image = {"type": "image", "source": {"type": "holographic"}}
    assert json.loads(part_of(image, result=True).text) == image
    assert part_of(image) == Opaque(Raw("anthropic", image), "image")


def test_client_tools_become_functions():
    tools = {tool.name: tool for tool in read(EVERYTHING).tools}
    assert tools["bash"].kind == "function"
    assert tools["bash"].schema is not None
    assert "command" in tools["bash"].schema["properties"]
    assert tools["left_click"].namespace == "computer"
    assert "zoom" not in tools
    assert (tools["s"].kind, tools["s"].hosted) == ("hosted", "mcp")
    editor = {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}
    computer = {"type": "computer_20251124", "name": "computer", "display_width_px": 800,
                "display_height_px": 600}  # fmt: skip
    known = read(body(tools=[editor, computer, {"type": "memory_20250818", "name": "memory"}]))
    assert all(tool.kind == "function" and tool.schema for tool in known.tools)
    assert "800 by 600" in (known.tools[1].description or "")


@pytest.mark.parametrize(
    ("type", "inputs", "off"),
    [
        ("computer_toolset_20260801", COMPUTER_INPUT_TYPES, frozenset[str]()),
        ("browser_toolset_20260801", BROWSER_INPUT_TYPES, BROWSER_DEFAULT_DISABLED_MEMBERS),
    ],
)
def test_toolsets_have_the_members_of_the_sdk(type: str, inputs: Any, off: frozenset[str]):
    assert {t.name for t in read(body(tools=[{"type": type}])).tools} == inputs.keys() - off
    configs = {name: {"enabled": True} for name in inputs}
    for tool in read(body(tools=[{"type": type, "configs": configs}])).tools:
        theirs = inputs[tool.name].model_json_schema()
        assert tool.schema is not None
        assert tool.schema["properties"].keys() == theirs["properties"].keys()
        assert sorted(tool.schema.get("required", [])) == sorted(theirs.get("required", []))


def test_a_system_message_may_only_change_the_effort():
    change = {"role": "system", "output_config": {"effort": "xhigh"}}
    request = read(body({"role": "user", "content": "hi"}, change))
    assert request.messages[1].parts == ()
    assert request.settings.reasoning == Reasoning(effort="xhigh")
    written = write_request(anew(request), TARGET).body
    assert written["messages"][1] == change
    assert written["output_config"] == {"effort": "xhigh"}


def test_tools_of_an_mcp_server_can_be_chosen():
    servers = [{"type": "url", "name": "s", "url": "https://mcp"}]
    chosen = {"type": "tool", "name": "known_there"}
    request = read(body(mcp_servers=servers, tool_choice=chosen))
    assert request.settings.tool_choice == ToolChoice("named", "known_there")


def test_counting_needs_no_max_tokens():
    value = body()
    del value["max_tokens"]
    assert read(value, "/v1/messages/count_tokens").settings.max_tokens is None


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([], "the request body"),
        (body(model=None), "model"),
        (body(model=3), "model"),
        (body(max_tokens=None), "max_tokens"),
        (body(max_tokens="64"), "max_tokens"),
        (body(max_tokens=True), "max_tokens"),
        (body(messages=[]), "messages"),
        (body(messages="hi"), "messages"),
        (body("hi"), "messages[0]"),
        (body({"content": "hi"}), "messages[0].role"),
        (body({"role": "tool", "content": "hi"}), "messages[0].role"),
        (body({"role": "user"}), "messages[0].content"),
        (body({"role": "system"}), "messages[0].content"),
        (body({"role": "user", "content": 3}), "messages[0].content"),
        (body(user("hi")), "messages[0].content[0]"),
        (body(user({"text": "hi"})), "messages[0].content[0].type"),
        (body(user({"type": "text"})), "messages[0].content[0].text"),
        (body(user({"type": "text", "text": "a", "cache_control": "x"})),
         "messages[0].content[0].cache_control"),
        (body(user({"type": "image"})), "messages[0].content[0].source"),
        (body(user({"type": "image", "source": {}})), "messages[0].content[0].source.type"),
        (body(user({"type": "image", "source": {"type": "base64", "data": "x"}})),
         "messages[0].content[0].source.media_type"),
        (body(user(tool_use())), "messages[0].content[0].type"),
        (body(assistant(tool_result())), "messages[0].content[0].type"),
        (body(assistant(tool_use(id=""))), "messages[0].content[0].id"),
        (body(assistant(tool_use(input="{}"))), "messages[0].content[0].input"),
        (body(assistant({"type": "thinking", "signature": "x"})),
         "messages[0].content[0].thinking"),
        (body(user({"type": "text", "text": "a"}, tool_result())),
         "messages[0].content[1].tool_use_id"),
        (body(assistant(tool_use("a")), user(tool_result("b"))),
         "messages[1].content[0].tool_use_id"),
        (body(assistant(tool_use()), user(tool_result(content=3))),
         "messages[1].content[0].content"),
        (body(assistant(tool_use()), user(tool_result(content=[{"type": "text"}]))),
         "messages[1].content[0].content[0].text"),
        (body(system=3), "system"),
        (body(system=[{"type": "image"}]), "system[0].type"),
        (body(system=[{"text": "Be brief."}]), "system[0].type"),
        (body(assistant(tool_use()), user(tool_result(content=[{"text": "a"}]))),
         "messages[1].content[0].content[0].type"),
        (body(tools=[{"input_schema": {}}]), "tools[0].name"),
        (body(tools=[{"name": "f"}]), "tools[0].input_schema"),
        (body(tools=[{"name": "f", "input_schema": {}, "strict": 1}]), "tools[0].strict"),
        (body(tool_choice="auto"), "tool_choice"),
        (body(tool_choice={}), "tool_choice.type"),
        (body(tool_choice={"type": "required"}), "tool_choice.type"),
        (body(tool_choice={"type": "tool", "name": "nobody"}), "tool_choice.name"),
        (body(thinking={}), "thinking.type"),
        (body(thinking={"type": "enabled"}), "thinking.budget_tokens"),
        (body(output_config={"format": {"type": "xml"}}), "output_config.format.type"),
        (body(output_format={"type": "json_schema"}), "output_format.schema"),
        (body(stop_sequences=[1]), "stop_sequences"),
        (body(metadata={"user_id": 1}), "metadata.user_id"),
        (body(stream="yes"), "stream"),
        (body(temperature="hot"), "temperature"),
    ],
)  # fmt: skip
def test_bad_requests_name_the_place(value: Any, path: str):
    with pytest.raises(BadRequest) as caught:
        read(value)
    assert caught.value.path == path


def test_broken_json_is_refused():
    for text in (b"", b"{", b"[1]", b"\xff", b'{"a":1}x', b"[" * 100_000):
        with pytest.raises(BadRequest):
            read_request(text)


# The same protocol on both sides: only necessary changes.


@pytest.mark.parametrize("name", SAMPLES)
def test_a_body_for_its_own_protocol_is_unchanged(name: str):
    request = read(SAMPLES[name])
    before = copy.deepcopy(request.raw)
    written = write_request(request, TARGET)
    assert written.path == "/v1/messages"
    assert json.dumps(written.body) == json.dumps(SAMPLES[name] | {"model": "m"})
    assert written.notices == ()
    assert request.raw == before


@pytest.mark.parametrize("name", SAMPLES)
def test_a_changed_request_keeps_the_clients_members(name: str):
    """Without the whole body, its messages, tools and unknown fields are still unchanged."""
    given = SAMPLES[name]
    written = write_request(read(given).changed(stream=True), TARGET).body
    assert written["messages"] == given["messages"]
    assert written.get("system") == given.get("system")
    assert written.get("tools", []) == given["tools"]
    effort = read(given).settings.reasoning
    config = dict(given.get("output_config", {}))
    if effort and effort.effort:
        config["effort"] = effort.effort
    assert written.get("output_config", {}) == config
    for key in given.keys() - {"messages", "system", "tools", "model", "output_config", "stream"}:
        assert written[key] == given[key], key


NAMES = st.text("abcz_é", min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
FURTHER = st.dictionaries(NAMES, VALUES, max_size=2)
CONTROL = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}])
WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
TEXTS = st.builds(lambda t, c, x: {"type": "text", "text": t, **c, **x}, WORDS, CONTROL, FURTHER)
THOUGHTS = st.builds(
    lambda t, s: {"type": "thinking", "thinking": t, "signature": s},
    WORDS,
    st.text("abc+/=", min_size=1),
)
OPAQUE = st.builds(lambda x: {"type": "compaction", **x}, FURTHER)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(WORDS | st.lists(TEXTS, min_size=1))})
        calls = [
            {"type": "tool_use", "id": f"t_{turn}_{i}", "name": "f", "input": arguments}
            for i, arguments in enumerate(draw(st.lists(FURTHER, max_size=2)))
        ]
        said = draw(st.lists(TEXTS | THOUGHTS | OPAQUE, max_size=3))
        messages.append({"role": "assistant", "content": said + calls})
        if calls:
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": c["id"],
                    "content": draw(WORDS),
                    **draw(CONTROL),
                }
                for c in calls
            ]
            messages.append({"role": "user", "content": results})
    return messages


@settings(max_examples=60, deadline=None)
@given(conversations(), FURTHER, FURTHER)
def test_any_body_for_its_own_protocol_is_unchanged(messages: Any, further: Any, schema: Any):
    tools = [{"name": "f", "input_schema": schema, **further}]
    given_body = body(*messages, tools=tools, **{f"x_{k}": v for k, v in further.items()})
    request = read(given_body)
    assert json.dumps(write_request(request, TARGET).body) == json.dumps(given_body | {"model": "m"})
    changed = write_request(anew(request), TARGET).body
    assert changed["messages"] == given_body["messages"]
    assert changed["tools"] == tools


def test_big_numbers_and_key_order_survive():
    arguments = {"z": 12345678901234567890123, "a": 0.1, "m": {"y": -0.0, "b": "\U0001f600"}}
    request = read(body(assistant(tool_use(input=arguments)), user(tool_result())))
    call = request.messages[0].parts[0]
    assert isinstance(call, ToolCall)
    expected = '{"z":12345678901234567890123,"a":0.1,"m":{"y":-0.0,"b":"\U0001f600"}}'
    assert call.arguments == expected
    foreign = _foreign(Message("assistant", (call_of(arguments=expected),)), _result_message())
    written = write_request(foreign, TARGET).body["messages"][1]["content"][0]["input"]
    assert json.dumps(written) == json.dumps(arguments)


def test_the_newer_version_gets_no_sampling():
    written = write_request(read(body(temperature=0.5, top_p=1, top_k=3)), NEW)
    assert not written.body.keys() & {"temperature", "top_p", "top_k"}
    assert {n.rule for n in written.notices} == {
        "temperature-dropped", "top-p-dropped", "top-k-dropped"
    }  # fmt: skip
    assert write_request(read(body(temperature=2)), TARGET).body["temperature"] == 2


def test_escaped_ids_are_restored_for_the_upstream():
    escaped = ids.for_client("functions.Bash:0", IDS)
    assert IDS.legal(escaped)
    given_body = body(assistant(tool_use(escaped)), user(tool_result(escaped, content="x")))
    request = read(given_body)
    for written in (
        write_request(request, TARGET),
        write_request(anew(request), TARGET),
    ):
        call, result = (m["content"][0] for m in written.body["messages"])
        assert call["id"] == result["tool_use_id"] == "functions.Bash:0"
    assert request.raw is not None
    assert request.raw.parsed == given_body
    call = request.messages[0].parts[0]
    assert isinstance(call, ToolCall)
    assert call.id == "functions.Bash:0"


# Unknown members, at every object of a request: they reach an Anthropic upstream, once and at their place.


def _conversation() -> dict[str, Any]:
    """A request with every kind of object."""
    control = {"type": "ephemeral", "ttl": "1h", "scope": "global"}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    cited = {"type": "char_location", "cited_text": "c", "document_index": 0, "document_title": "T"}
    page = {"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "c"}
    return body(
        user(
            {"type": "text", "text": "look", "cache_control": control, "citations": None},
            picture,
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
        ),
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "ZZZ"},
            {"type": "text", "text": "so", "citations": [cited, page | {"encrypted_index": "Eo8B"}]},
            {"type": "text", "text": "", "citations": []},
            {"type": "compaction", "content": "all before"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {"type": "brand_new", "of": [{"y": {}}]},
            tool_use(input={"a": {"b": [{}]}}, caller={"type": "code_execution_20250825", "tool_id": "s"}),
            tool_use("toolu_2", caller=None, cache_control=None),
        ),
        user(
            tool_result(
                content=[
                    {"type": "text", "text": "t", "cache_control": control},
                    picture,
                    {"type": "tool_reference", "tool_name": "Bash"},
                    {"type": "brand_new_too"},
                ],
                is_error=False,
            ),
            tool_result("toolu_2", content="text", cache_control=control),
            {"type": "text", "text": "go on"},
        ),
        {"role": "system", "content": "calm", "output_config": {"effort": "low"}},
        system=[{"type": "text", "text": "be good", "cache_control": control}],
        tools=[
            {"name": "Bash", "input_schema": OBJECT, "cache_control": control},
            {"type": "bash_20250124", "name": "bash"},
        ],
        thinking={"type": "enabled", "budget_tokens": 32},
        container={"id": "c", "skills": [{"type": "anthropic", "skill_id": "pdf"}]},
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
        metadata={"user_id": "u"},
        output_config={"effort": "high"},
        tool_choice={"type": "auto"},
        cache_control=control,
    )


def _spread(value: Any, count: Any) -> Any:
    """`value` with a member that nobody knows in each of its objects."""
    if isinstance(value, list):
        return [_spread(item, count) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _spread(item, count) for key, item in value.items()}
    return inner | {"x_nobody_knows": f"@{next(count)}@"}


def _with_blocks(given: dict[str, Any], change: Any) -> dict[str, Any]:
    """`given`, with what `change` makes of each block of its messages: blocks."""
    messages = [
        message | {"content": [new for block in message["content"] for new in change(block)]}
        if isinstance(message["content"], list)
        else message
        for message in given["messages"]
    ]
    return given | {"messages": messages}


def _escaped(block: dict[str, Any]) -> list[dict[str, Any]]:
    wrapped = {key: ids.for_client("dgm-" + block[key], IDS) for key in ("id", "tool_use_id") if key in block}
    return [block | wrapped if block["type"] in ("tool_use", "tool_result") else block]


def _unescaped(block: dict[str, Any]) -> list[dict[str, Any]]:
    own = {key: "dgm-" + block[key] for key in ("id", "tool_use_id") if key in block}
    return [block | own if block["type"] in ("tool_use", "tool_result") else block]


def _enveloped(block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] != "thinking":
        return [block]
    return [block | {"signature": sealed_reasoning.to_slot(Seal("anthropic", "EqQB", issuer="up"), "other")}]


def _with_others_thought(block: dict[str, Any]) -> list[dict[str, Any]]:
    return [_carrier(GEMINI, text="deep"), block] if block["type"] == "thinking" else [block]


def _with_carrier(block: dict[str, Any]) -> list[dict[str, Any]]:
    return [_carrier(GEMINI, block["id"]), block] if block["type"] == "tool_use" else [block]


def _with_foreign_citation(block: dict[str, Any]) -> list[dict[str, Any]]:
    if not block.get("citations"):
        return [block]
    foreign = {"type": "web_search_result_location", "url": "v", "title": "t", "encrypted_index": ""}
    return [block | {"citations": [foreign, *block["citations"]]}]


def _as_is(block: dict[str, Any]) -> list[dict[str, Any]]:
    return [block]


@pytest.mark.parametrize(
    ("wrap", "expect"),
    [
        (_as_is, _as_is),
        (_escaped, _unescaped),
        (_enveloped, _as_is),
        (_with_others_thought, _as_is),
        (_with_carrier, _as_is),
        (_with_foreign_citation, _as_is),
    ],
)
def test_unknown_members_reach_an_upstream_of_the_protocol(wrap: Any, expect: Any):
    count = itertools.count(100)
    known = _spread(_conversation(), count)
    target = Target(model="m", issuer="up")
    text = re.sub(r'"@(\d+)@"', r"\1.50e1", json.dumps(_with_blocks(known, wrap)))
    numbered = re.sub(r'"@(\d+)@"', r"\1.50e1", json.dumps(_with_blocks(known, expect)))
    request = read_request(text.encode())
    expected = json.loads(numbered) | {"model": "m"}
    written = write_request(request, target)
    assert json.loads(written.encoded()) == expected
    assert written.notices == ()
    prompt = {key: expected[key] for key in ("system", "messages", "tools")}
    for version in (request, anew(request)):
        sent = write_request(version, target).members
        encoded = msgspec.json.encode({key: sent[key] for key in prompt})
        assert json.loads(encoded) == prompt
        # Each number is spelled as the client wrote it.
        wanted = re.findall(r"@\d+@", json.dumps({key: known[key] for key in prompt}))
        assert all(encoded.count(f"{number[1:-1]}.50e1".encode()) == 1 for number in wanted)


@pytest.mark.parametrize("empty", [{}, {"system": "", "tools": []}, {"system": [], "tools": None}])
def test_empty_members_stay_as_they_came(empty: dict[str, Any]):
    given = body(assistant(tool_use()), user(tool_result()), **empty)
    assert write_request(read(given), TARGET).body == given | {"model": "m"}


def test_a_request_that_lost_its_tools_still_declares_those_that_were_called():
    given = body(assistant(tool_use()), user(tool_result()), tools=[{"name": "Bash", "input_schema": OBJECT}])
    request = read(given)
    for raw in (request.raw, None):
        written = write_request(msgspec.structs.replace(request, tools=(), raw=raw), TARGET).body
        assert written["tools"] == [{"name": "Bash", "input_schema": {"type": "object"}}]
        assert written["tool_choice"] == {"type": "none"}


def test_a_thought_of_a_model_that_does_not_sign_returns_with_its_members():
    blank = {"type": "thinking", "thinking": "hm", "signature": "", "x": {"y": 1.50}}
    unsigned = {"type": "thinking", "thinking": "hm", "x": 1}
    given = body(assistant(blank, unsigned, {"type": "text", "text": "a", "citations": None}))
    written = write_request(read(given), Target(model="deepseek-chat")).body
    assert written["messages"] == given["messages"]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_the_beginning_stays_the_same_bytes_when_a_later_message_is_unwrapped(separators: Any):
    escaped = ids.for_client("functions.Bash:0", IDS)
    turns = [
        user({"type": "text", "text": "hi"}),
        assistant({"type": "text", "text": "yes?"}),
        user({"type": "text", "text": "look"}),
        assistant(tool_use(escaped)),
        user(tool_result(escaped, content="ok")),
        assistant({"type": "text", "text": "done"}),
        user({"type": "text", "text": "more"}),
    ]
    before = b""
    for end in range(1, len(turns) + 1, 2):
        given = json.dumps(body(*turns[:end]), separators=separators).encode()
        messages = msgspec.json.encode(write_request(read_request(given), TARGET).members["messages"])
        assert json.loads(messages)[end - 1]["role"] == "user"
        assert messages.startswith(before.rstrip(b"]"))
        before = messages


# Seals.

GEMINI = Seal("gemini", "c2ln", issuer="google")
OWN = Seal("anthropic", "EqQB", issuer="vertex")


def _carrier(seal: Seal, call: str = "", text: str = "") -> dict[str, Any]:
    slot = sealed_reasoning.to_slot(seal, "anthropic", call)
    return {"type": "thinking", "thinking": text, "signature": slot}


def test_a_call_gets_its_seal_back_and_the_carrier_disappears():
    escaped = ids.for_client("call:1", IDS)
    for named in (escaped, "call:1"):
        blocks = [{"type": "text", "text": "hm"}, _carrier(GEMINI, named), tool_use(escaped)]
        (message,) = read(body(assistant(*blocks))).messages
        text, call = message.parts
        assert isinstance(text, Text)
        assert isinstance(call, ToolCall)
        assert (call.id, call.seal) == ("call:1", GEMINI)


def test_foreign_seals_are_read_and_never_reach_an_anthropic_upstream():
    given_body = body(
        assistant(_carrier(GEMINI, text="deep"), _carrier(GEMINI, "toolu_1"), tool_use()),
        user(tool_result()),
        thinking={"type": "enabled", "budget_tokens": 2048},
    )
    request = read(given_body)
    assert request.messages[0].parts[0] == Thinking("deep", GEMINI)
    for changed in (request, anew(request)):
        written = write_request(changed, TARGET)
        assert written.body["messages"][0]["content"] == [tool_use()]
        # Anthropic refuses to continue thinking after calls without its own thinking blocks.
        assert written.body["thinking"] == {"type": "disabled"}
        assert [n.rule for n in written.notices] == ["reasoning-dropped"]
    assert "ZHJhZ29tYW4x" not in json.dumps(write_request(request, TARGET).body)


@pytest.mark.parametrize(("issuer", "kept"), [("", True), ("vertex", True), ("bedrock", False)])
def test_wrapped_seals_go_to_their_issuer_only(issuer: str, kept: bool):
    request = read(body(assistant(_carrier(OWN, "toolu_1"), tool_use()), user(tool_result())))
    target = Target(model="m", issuer=issuer)
    blocks = write_request(request, target).body["messages"][0]["content"]
    unwrapped = {"type": "thinking", "thinking": "", "signature": "EqQB"}
    assert blocks == ([unwrapped] if kept else []) + [tool_use()]


def test_empty_blocks_of_our_encoder_do_not_reach_anthropic():
    citation = {"type": "web_search_result_location", "url": "u", "title": "t", "cited_text": "c"}
    cited = {"type": "text", "text": "a", "citations": [citation | {"encrypted_index": ""}]}
    blank = {"type": "thinking", "thinking": "hm", "signature": ""}
    request = read(body(assistant(blank, cited), user({"type": "text", "text": "b"})))
    claude = write_request(request, Target(model="claude-sonnet-5"))
    assert claude.body["messages"][0]["content"] == [{"type": "text", "text": "a"}]
    other = write_request(request, Target(model="deepseek-chat"))
    assert other.body["messages"][0]["content"][0] == blank


@pytest.mark.parametrize(
    ("seal", "issuer", "expected"),
    [
        (OWN, "vertex", {"type": "thinking", "thinking": "hm", "signature": "EqQB"}),
        (OWN, "", {"type": "thinking", "thinking": "hm", "signature": "EqQB"}),
        (msgspec.structs.replace(OWN, redacted=True), "vertex",
         {"type": "redacted_thinking", "data": "EqQB"}),
        (OWN, "bedrock", None),
        (GEMINI, "google", None),
        (None, "", None),
    ],
)  # fmt: skip
def test_neutral_reasoning_goes_to_its_issuer_only(seal: Seal | None, issuer: str, expected: Any):
    thought = Message("assistant", (Thinking("hm", seal), Text("so")))
    request = _foreign(thought, Message("user", (Text("go on"),)))
    blocks = write_request(request, Target(model="m", issuer=issuer)).body["messages"][1]["content"]
    assert blocks[:-1] == ([expected] if expected else [])
    assert blocks[-1] == {"type": "text", "text": "so"}


# Writing neutral requests: the matrix, row by row.


def call_of(id: str = "call_1", name: str = "f", **fields: Any) -> ToolCall:
    return ToolCall(id=id, name=name, **fields)


def _result_message(*call_ids: str) -> Message:
    found = (ToolResult(call_id=id, parts=(Text("ok"),)) for id in call_ids or ("call_1",))
    return Message("user", tuple(found))


HI = Message("user", (Text("hi"),))
F = Tool(name="f", description="d", parameters=OBJECT)


def _foreign(*messages: Message, **fields: Any) -> Request:
    return Request(model="x", messages=(HI, *messages), **fields)


def _with(**said: Any) -> Request:
    return _foreign(settings=Settings(**said))


def _contains(value: Any, fragment: Any) -> bool:
    """Is `fragment` in `value`? Objects may have more members. None means that a member is absent."""
    if isinstance(fragment, dict) and isinstance(value, dict):
        return all(
            (k not in value) if v is None else (k in value and _contains(value[k], v))
            for k, v in fragment.items()
        )
    return value == fragment


def _messages(*messages: Message, **fields: Any) -> Request:
    return Request(model="x", messages=messages, **fields)


def _says(*parts: Any) -> Request:
    return _messages(Message("user", parts))


def _blocks(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def _text(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **fields}


SYSTEM = Message("system", (Text("be good"),))
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
PDF = Media(kind="document", media_type="application/pdf", data="JVBERg==", name="T")
GRAMMAR = Tool(name="patch", description="Patch.", kind="custom", grammar="g: x", grammar_syntax="lark")
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
MARKED = tuple(Text(str(n), Cache("30m")) for n in range(6))

MATRIX: list[tuple[str, Request, Any, set[str]]] = [
    ("1 system", _messages(SYSTEM, HI), {"system": "be good"}, set()),
    ("1 systems", _messages(SYSTEM, Message("developer", (Text("b", Cache("1h")),)), HI),
     {"system": [_text("be good"),
                 _text("b", cache_control={"type": "ephemeral", "ttl": "1h"})]}, set()),
    ("2 system in place", _messages(HI, SYSTEM, Message("user", (Text("b"),))),
     {"system": None, "messages": [
         {"role": "user", "content": [_text("hi")]},
         {"role": "system", "content": [_text("be good")]},
         {"role": "user", "content": [_text("b")]}]}, set()),
    ("2 system between call and result",
     _foreign(Message("assistant", (call_of(),)), SYSTEM, _result_message(), tools=(F,)),
     {"messages": [
         {"role": "user", "content": [_text("hi")]},
         {"role": "assistant", "content": [tool_use("call_1", "f")]},
         {"role": "user", "content": [tool_result("call_1", content=[_text("ok")])]},
         {"role": "system", "content": [_text("be good")]}]}, {"system-moved"}),
    ("2 system only", _messages(SYSTEM),
     {"system": "be good", **_blocks(_text("Continue."))}, {"placeholder-added"}),
    ("2 system with a picture", _messages(Message("system", (Text("a"), PDF)), HI),
     {"system": "a"}, {"opaque-dropped"}),
    ("3 text", _says(Text(""), Text("a"), Text(" \n")), _blocks(_text("a")), set()),
    ("3 empty message", _messages(HI, Message("assistant", (Text(""),)), HI),
     _blocks(_text("hi"), _text("hi")), set()),
    ("4 image", _says(Media(kind="image", media_type="image/png", data=PNG, detail="high")),
     _blocks({"type": "image", "source": {
         "type": "base64", "media_type": "image/png", "data": PNG}}), set()),
    ("4 image/jpg", _says(Media(kind="image", media_type="image/jpg", data=PNG)),
     _blocks({"type": "image", "source": {
         "type": "base64", "media_type": "image/jpeg", "data": PNG}}), set()),
    ("4 image url", _says(Media(kind="image", url="https://i")),
     _blocks({"type": "image", "source": {"type": "url", "url": "https://i"}}), set()),
    ("6 pdf", _says(PDF), _blocks({"type": "document", "source": {
        "type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "title": "T"}),
     set()),
    ("6 text file", _says(Media(kind="document", media_type="text/markdown; charset=utf-8",
                                data=base64.b64encode("é".encode()).decode())),
     _blocks({"type": "document", "source": {
         "type": "text", "media_type": "text/plain", "data": "é"}}), set()),
    ("6 document by url", _says(Media(kind="document", url="https://d")),
     _blocks({"type": "document", "source": {"type": "url", "url": "https://d"}}), set()),
    ("4 a model's image", _foreign(
        Message("assistant", (Text("a"), Media(kind="image", media_type="image/png", data=PNG))),
        HI), {}, {"assistant-media-dropped"}),
    ("10 function", _foreign(tools=(F,)),
     {"tools": [{"name": "f", "description": "d", "input_schema": OBJECT}]}, set()),
    ("10 no schema", _foreign(tools=(Tool(name="f"),)),
     {"tools": [{"name": "f", "input_schema": OBJECT}]}, set()),
    ("10 strict", _foreign(tools=(Tool(name="f", parameters=CLOSED, strict=True),)),
     {"tools": [{"name": "f", "input_schema": CLOSED, "strict": True}]}, set()),
    ("10 strict but open", _foreign(tools=(Tool(name="f", parameters=OBJECT, strict=True),)),
     {"tools": [{"name": "f", "input_schema": OBJECT}]}, {"strict-dropped"}),
    ("10 combined at the top",
     _foreign(tools=(Tool(name="f", parameters={"anyOf": [CLOSED], "type": ["object", "null"]}),)),
     {"tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]},
     {"schema-keyword-dropped"}),
    ("11 freeform", _foreign(tools=(GRAMMAR,)), {"tools": [{
        "name": "patch",
        "description": "Patch.\n\nThe input must follow this grammar (lark):\ng: x",
        "input_schema": {"type": "object", "properties": {"input": {"type": "string"}},
                         "required": ["input"]}}]}, {"custom-tool-emulated"}),
    ("12 namespace", _foreign(
        Message("assistant", (call_of(name="now", namespace="clock"),)), _result_message(),
        tools=(Tool(name="now", namespace="clock", parameters=OBJECT),),
        settings=Settings(tool_choice=ToolChoice("named", "now", "clock"))),
     {"tools": [{"name": "clock__now", "input_schema": OBJECT}],
      "tool_choice": {"type": "tool", "name": "clock__now"}}, set()),
    ("13 deferred", _foreign(tools=(Tool(name="f", parameters=OBJECT, deferred=True),)),
     {"tools": [{"name": "f", "input_schema": OBJECT}]}, {"deferred-tools-flattened"}),
    ("14 no arguments", _foreign(Message("assistant", (call_of(arguments=""),)),
                                 _result_message(), tools=(F,)), {}, set()),
    ("14 null arguments", _foreign(Message("assistant", (call_of(arguments="null"),)),
                                   _result_message(), tools=(F,)), {}, set()),
    ("14 broken arguments", _foreign(Message("assistant", (call_of(arguments='{"a'),)),
                                     _result_message(), tools=(F,)), {}, {"arguments-wrapped"}),
    ("19 a call without its result", _foreign(Message("assistant", (call_of(),)), HI, tools=(F,)),
     {}, {"missing-tool-result"}),
    ("23 effort", _with(reasoning=Reasoning(effort="high")),
     {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}, set()),
    ("23 least effort", _with(reasoning=Reasoning(effort="minimal")),
     {"output_config": {"effort": "low"}}, {"effort-raised"}),
    ("23 off", _with(reasoning=Reasoning(effort="none")),
     {"thinking": {"type": "disabled"}, "output_config": None}, set()),
    ("23 off by budget", _with(reasoning=Reasoning(budget=0)),
     {"thinking": {"type": "disabled"}}, set()),
    ("23 budget", _with(reasoning=Reasoning(budget=2000), max_tokens=4000),
     {"thinking": {"type": "enabled", "budget_tokens": 2000}}, set()),
    ("23 small budget", _with(reasoning=Reasoning(budget=5), max_tokens=4000),
     {"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"effort-raised"}),
    ("23 large budget", _with(reasoning=Reasoning(budget=9000), max_tokens=4000),
     {"thinking": {"type": "enabled", "budget_tokens": 3999}}, {"effort-lowered"}),
    ("23 no room", _with(reasoning=Reasoning(budget=9000), max_tokens=1024),
     {"thinking": None}, {"reasoning-dropped"}),
    ("23 display only", _with(reasoning=Reasoning(show=True)), {"thinking": None}, set()),
    ("24 display", _with(reasoning=Reasoning(effort="low", show=False)),
     {"thinking": {"type": "adaptive", "display": "omitted"}}, set()),
    ("25 citations", _foreign(Message("assistant", (Text("a", citations=(Citation(url="u"),)),)),
                              HI), {}, {"citations-dropped"}),
    ("26 marks", _says(*MARKED), _blocks(
        *(_text(str(n)) for n in range(2)),
        *(_text(str(n), cache_control={"type": "ephemeral", "ttl": "5m"}) for n in range(2, 6))),
     {"cache-marks-truncated"}),
    ("26 mark of a tool", _foreign(tools=(msgspec.structs.replace(F, cache=Cache()),)),
     {"tools": [{"name": "f", "description": "d", "input_schema": OBJECT, **EPHEMERAL}]}, set()),
    ("27 cache key", _with(cache_key="k"), {"cache_key": None, "prompt_cache_key": None}, set()),
    ("30 hot", _with(temperature=1.5), {"temperature": 1}, {"temperature-clamped"}),
    ("30 cold", _with(temperature=0), {"temperature": 0}, set()),
    ("30 while thinking", _with(temperature=0.5, reasoning=Reasoning(effort="low")),
     {"temperature": None}, {"temperature-dropped"}),
    ("31 top", _with(top_p=0.5, top_k=4), {"top_p": 0.5, "top_k": 4}, set()),
    ("31 top while thinking", _with(top_p=0.97, top_k=4, reasoning=Reasoning(effort="low")),
     {"top_p": 0.97, "top_k": None}, {"top-k-dropped"}),
    ("32 penalties", _with(presence_penalty=1, frequency_penalty=1), {}, {"penalties-dropped"}),
    ("32 bias", _with(logit_bias={"1": 2}), {}, {"logit-bias-dropped"}),
    ("33 bound", _with(max_tokens=0), {"max_tokens": 0}, set()),
    ("33 no bound", _with(), {"max_tokens": 32_000}, set()),
    ("34 stop", _with(stop=("a", "", "\n", "b")), {"stop_sequences": ["a", "b"]}, set()),
    ("35 one", _with(n=1), {"n": None}, set()),
    ("36 logprobs", _with(logprobs=0), {}, {"logprobs-dropped"}),
    ("37 seed", _with(seed=0), {}, {"seed-dropped"}),
    ("38 json", _messages(SYSTEM, HI, settings=Settings(format=Format("json"))),
     {"output_config": None}, {"json-mode-emulated"}),
    ("39 schema", _with(format=Format("schema", CLOSED, name="n", strict=True)),
     {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}}, set()),
    ("39 looser schema", _with(format=Format("schema", {
        "type": "object", "properties": {"a": {"oneOf": [{"type": "integer", "minimum": 1}]}}})),
     {"output_config": {"format": {"type": "json_schema", "schema": {
         "type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}]}},
         "additionalProperties": False}}}}, {"schema-keyword-dropped"}),
    ("39 formats and lengths", _with(format=Format("schema", {
        "type": "array", "minItems": 2, "items": {"type": "string", "format": "regex"}})),
     {"output_config": {"format": {"type": "json_schema", "schema": {
         "type": "array", "items": {"type": "string"}}}}}, {"schema-keyword-dropped"}),
    ("40 serial", _foreign(tools=(F,), settings=Settings(parallel_tool_calls=False)),
     {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, set()),
    ("40 parallel", _foreign(tools=(F,), settings=Settings(parallel_tool_calls=True)),
     {"tool_choice": None}, set()),
    ("41 auto", _foreign(tools=(F,), settings=Settings(tool_choice=ToolChoice("auto"))),
     {"tool_choice": {"type": "auto"}}, set()),
    ("41 none", _foreign(tools=(F,), settings=Settings(tool_choice=ToolChoice("none"))),
     {"tool_choice": {"type": "none"}}, set()),
    ("41 required", _foreign(tools=(F,), settings=Settings(
        tool_choice=ToolChoice("required"), parallel_tool_calls=False)),
     {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, set()),
    ("41 named", _foreign(tools=(F,), settings=Settings(tool_choice=ToolChoice("named", "f"))),
     {"tool_choice": {"type": "tool", "name": "f"}}, set()),
    ("41 forced while thinking", _foreign(tools=(F,), settings=Settings(
        tool_choice=ToolChoice("required"), reasoning=Reasoning(budget=2000))),
     {"tool_choice": {"type": "auto"}}, {"forced-choice-downgraded"}),
    ("41 forced while adapting", _foreign(tools=(F,), settings=Settings(
        tool_choice=ToolChoice("required"), reasoning=Reasoning(effort="low"))),
     {"tool_choice": {"type": "any"}}, set()),
    ("41 required without tools", _with(tool_choice=ToolChoice("required")),
     {"tool_choice": None}, {"forced-choice-downgraded"}),
    ("42 allowed", _foreign(tools=(F, Tool(name="g")), settings=Settings(
        tool_choice=ToolChoice("auto", allowed=("g",)))),
     {"tools": [{"name": "g", "input_schema": OBJECT}]}, set()),
    ("43 user", _with(user="u", metadata={"a": "b"}), {"metadata": {"user_id": "u"}}, set()),
    ("44 tier", _with(service_tier="priority"), {"service_tier": "auto"}, set()),
    ("44 default tier", _with(service_tier="default"), {"service_tier": "standard_only"}, set()),
    ("44 fast", _with(service_tier="fast"), {"speed": "fast", "service_tier": None}, set()),
    ("44 flex", _with(service_tier="flex"), {"service_tier": None}, set()),
    ("45 search", _foreign(tools=(Tool(name="web_search", kind="hosted", hosted="web_search"),)),
     {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, set()),
    ("46 code", _foreign(tools=(Tool(name="ci", kind="hosted", hosted="code_execution"),)),
     {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, set()),
    ("46 a name taken", _foreign(tools=(
        Tool(name="web_search", parameters=OBJECT),
        Tool(name="s", kind="hosted", hosted="web_search"))),
     {"tools": [{"name": "web_search", "input_schema": OBJECT}]}, {"hosted-tool-dropped"}),
    ("46 unknown", _foreign(tools=(Tool(name="image", kind="hosted", hosted="image_generation"),)),
     {"tools": None}, {"hosted-tool-dropped"}),
    ("49 refusal", _foreign(Message("assistant", (Refusal("no"),)), HI), {}, set()),
    ("51 opaque", _says(Text("a"), Opaque(Raw("openai-responses", {}), "compaction")),
     _blocks(_text("a")), {"opaque-dropped"}),
    ("51 extras", _foreign(extras={"prediction": 1, "include": []}), {"prediction": None},
     {"opaque-dropped"}),
    ("53 store", _with(store=True), {"store": None}, set()),
    ("54 prefill", _foreign(Message("assistant", (Text("so \n"),))), {}, {"prefill"}),
    ("name", _messages(Message("user", (Text("a"),), name="bob")), {}, {"message-name-dropped"}),
    ("verbosity", _with(verbosity="low"), {}, {"verbosity-dropped"}),
    ("assistant first", _messages(Message("assistant", (Text("a"),)), HI), {},
     {"placeholder-added"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "fragment", "rules"), [row[1:] for row in MATRIX], ids=[row[0] for row in MATRIX]
)
def test_each_row_of_the_matrix(request_: Request, fragment: dict[str, Any], rules: set[str]):
    written = write_request(request_, TARGET)
    assert _contains(written.body, fragment), written.body
    assert {notice.rule for notice in written.notices} == rules
    assert write_request(request_, TARGET).body == written.body
    check_anthropic(written.body)
    if rules:
        with pytest.raises(BadRequest):
            write_request(request_, Target(model="m", strict=True))
    else:
        write_request(request_, Target(model="m", strict=True))


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (_says(Media(kind="image", media_type="image/tiff", data=PNG)), "messages[0].parts[0]"),
        (_says(Text("a"), Media(kind="image", file_id="f")), "messages[0].parts[1]"),
        (_says(Media(kind="image", url="gs://bucket/i")), "messages[0].parts[0]"),
        (_says(Media(kind="audio", media_type="audio/wav", data="x")), "messages[0].parts[0]"),
        (_says(Media(kind="video", url="https://v")), "messages[0].parts[0]"),
        (_says(Media(kind="document", media_type="application/zip", data="x")),
         "messages[0].parts[0]"),
        (_says(Media(kind="document", media_type="text/csv", data="/w==")),
         "messages[0].parts[0]"),
        (_foreign(Message("assistant", (call_of(),)), Message("user", (ToolResult(
            call_id="call_1", parts=(Media(kind="audio", data="x"),)),))),
         "messages[2].parts[0].parts[0]"),
        (_with(n=2), "settings.n"),
        (_with(audio_out=True), "settings.audio_out"),
        (_with(background=True), "settings.background"),
        (_with(previous_response_id="resp_1"), "settings.previous_response_id"),
        (_with(tool_choice=ToolChoice("named", "f")), "settings.tool_choice"),
        (_foreign(tools=(Tool(name="m", kind="hosted", hosted="mcp"),)), "tools[0]"),
    ],
)  # fmt: skip
def test_parts_that_cannot_be_carried_are_refused(request_: Request, path: str):
    with pytest.raises(BadRequest) as caught:
        write_request(request_, TARGET)
    assert caught.value.path == path


def _written(request: Request, target: Target = TARGET) -> list[dict[str, Any]]:
    written = write_request(request, target)
    check_anthropic(written.body)
    return written.body["messages"]


def test_results_come_first_and_in_the_order_of_their_calls():
    request = _foreign(
        Message("assistant", (call_of("a"),)),
        Message("assistant", (call_of("b"),)),
        Message("user", (Text("and"), ToolResult(call_id="b", parts=(Text("2"),)))),
        Message("user", (ToolResult(call_id="a", parts=(Text("no"),), is_error=True),)),
        tools=(F,),
    )
    messages = _written(request)
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[2]["content"] == [
        tool_result("a", content=[_text("no")], is_error=True),
        tool_result("b", content=[_text("2")]),
        _text("and"),
    ]


def test_results_may_hold_pictures_or_nothing():
    image = Media(kind="image", media_type="image/png", data=PNG)
    results = (
        ToolResult(call_id="a", parts=(Text("see"), image), cache=Cache()),
        ToolResult(call_id="b", parts=(Text(""),)),
        ToolResult(call_id="c", is_error=True),
    )
    calls = Message("assistant", tuple(call_of(id) for id in "abc"))
    a, b, c = _written(_foreign(calls, Message("user", results), tools=(F,)))[2]["content"]
    assert [block["type"] for block in a["content"]] == ["text", "image"]
    assert a["cache_control"] == {"type": "ephemeral"}
    assert b == tool_result("b")
    assert c["content"], "an error without a message is refused"


def test_freeform_calls_are_written_as_functions():
    call = call_of(name="patch", arguments='*** Begin\n"x"', kind="custom")
    request = _foreign(Message("assistant", (call,)), _result_message(), tools=(GRAMMAR,))
    written = write_request(request, TARGET)
    block = written.body["messages"][1]["content"][0]
    assert block["input"] == {"input": '*** Begin\n"x"'}
    called = written.names.called("patch")
    assert called is not None
    assert called.wrapped


def test_calls_in_the_history_need_declared_tools():
    request = _foreign(Message("assistant", (call_of(),)), _result_message())
    written = write_request(request, TARGET)
    assert written.body["tools"] == [{"name": "f", "input_schema": {"type": "object"}}]
    assert written.body["tool_choice"] == {"type": "none"}
    check_anthropic(written.body)


def test_an_illegal_name_has_one_replacement_everywhere():
    tool = Tool(name="mcp/files.read", parameters=OBJECT)
    request = _foreign(
        Message("assistant", (call_of(name=tool.name),)),
        _result_message(),
        tools=(tool,),
        settings=Settings(tool_choice=ToolChoice("named", tool.name)),
    )
    written = write_request(request, TARGET)
    (name,) = {
        written.body["tools"][0]["name"],
        written.body["tool_choice"]["name"],
        written.body["messages"][1]["content"][0]["name"],
    }
    called = written.names.called(name)
    assert called is not None
    assert called.tool is tool


@given(st.lists(st.text(min_size=1, max_size=600), min_size=1, max_size=5, unique=True))
def test_ids_are_legal_distinct_and_shared(call_ids: list[str]):
    request = _foreign(
        Message("assistant", tuple(call_of(id) for id in call_ids)),
        _result_message(*call_ids),
        tools=(F,),
    )
    _, calls, results = write_request(request, TARGET).body["messages"]
    given_ids = [block["id"] for block in calls["content"]]
    assert all(IDS.legal(id) for id in given_ids)
    assert len(set(given_ids)) == len(call_ids)
    assert given_ids == [block["tool_use_id"] for block in results["content"]]


def test_a_reused_id_becomes_unique():
    """Some providers number the calls of each turn from zero. Anthropic refuses repeated ids."""
    turn = (Message("assistant", (call_of("call_0"),)), _result_message("call_0"))
    messages = _written(_foreign(*turn, *turn, *turn, tools=(F,)))
    found = [m["content"][0].get("id") or m["content"][0]["tool_use_id"] for m in messages[1:]]
    assert found == ["call_0", "call_0", "call_0_2", "call_0_2", "call_0_3", "call_0_3"]


def test_the_same_prefix_gives_the_same_bytes():
    turns = (
        Message("assistant", (Text("a"), call_of(arguments='{"b":1,"a":2}'))),
        _result_message(),
        Message("assistant", (Text("done"),)),
        Message("user", (Text("more"),)),
    )
    longer = _written(_foreign(*turns, tools=(F,)))
    shorter = _written(_foreign(*turns[:2], tools=(F,)))
    assert json.dumps(longer[: len(shorter)]) == json.dumps(shorter)


@pytest.mark.parametrize(
    ("model", "reasoning", "expected"),
    [
        ("claude-sonnet-4-5", Reasoning(effort="high"),
         {"thinking": {"type": "enabled", "budget_tokens": 16_000}, "output_config": None}),
        ("claude-3-7-sonnet-20250219", Reasoning(True, adaptive=True),
         {"thinking": {"type": "enabled", "budget_tokens": 10_240}}),
        ("claude-3-5-haiku-latest", Reasoning(effort="high"), {"thinking": None}),
        ("claude-opus-4-6", Reasoning(budget=2000), {"thinking": {"type": "enabled"}}),
        ("us.anthropic.claude-opus-4-7-v1:0", Reasoning(budget=20_000),
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("claude-opus-5", Reasoning(budget=2000),
         {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("claude-fable-5", Reasoning(enabled=False), {"thinking": None}),
    ],
)  # fmt: skip
def test_thinking_is_written_in_the_form_of_the_model(
    model: str, reasoning: Reasoning, expected: dict[str, Any]
):
    request = _with(reasoning=reasoning, max_tokens=32_000)
    assert _contains(write_request(request, Target(model=model)).body, expected)


def test_newer_claudes_get_one_sampling_parameter():
    written = write_request(_with(temperature=0.5, top_p=0.9), Target(model="claude-sonnet-4-5"))
    assert "top_p" not in written.body
    assert [n.rule for n in written.notices] == ["top-p-dropped"]
    assert write_request(_with(temperature=0.5), NEW).notices[0].rule == "temperature-dropped"


def test_json_output_is_requested_in_the_prompt():
    request = _messages(SYSTEM, HI, settings=Settings(format=Format("json")))
    system = write_request(request, TARGET).body["system"]
    assert system[0] == _text("be good")
    assert "JSON" in system[1]["text"]
    schema = _with(format=Format("schema", CLOSED))
    old = write_request(schema, Target(model="claude-3-7-sonnet"))
    assert '"additionalProperties":false' in old.body["system"]
    assert "output_config" not in old.body


def test_whitespace_stop_sequences_are_emulated():
    written: Outgoing = write_request(_with(stop=("a", "\n\n", "")), TARGET)
    assert (written.body["stop_sequences"], written.stop) == (["a"], ("\n\n",))


def test_long_users_are_hashed():
    user_id = write_request(_with(user="u" * 300), TARGET).body["metadata"]["user_id"]
    assert len(user_id) == 64


def test_added_messages_are_written_beside_the_clients_own():
    request = read(EVERYTHING)
    note = Message("user", (Text("you are going round in circles"),))
    changed = request.changed(messages=(*request.messages, note))
    written = write_request(changed, TARGET)
    assert written.body["messages"][:-1] == EVERYTHING["messages"]
    assert written.body["messages"][-1] == {"role": "user", "content": [_text(note.parts[0].text)]}
    # A client's toolset stays one entry, and its members keep their names.
    assert written.body["tools"] == EVERYTHING["tools"]
    called = written.names.called("left_click")
    assert called is not None
    assert called.tool.namespace == "computer"


def test_a_rebuilt_message_keeps_its_blocks():
    """A message that was rebuilt from its parts keeps every block of the client."""
    request = read(EVERYTHING)
    rebuilt = tuple(Message(m.role, m.parts) for m in request.messages)
    written = write_request(request.changed(messages=rebuilt), TARGET).body
    assert written["messages"] == EVERYTHING["messages"]
    thoughts = read(CLAUDE_CODE)
    rebuilt = tuple(Message(m.role, m.parts) for m in thoughts.messages)
    written = write_request(thoughts.changed(messages=rebuilt), TARGET).body
    assert written["messages"][2] == CLAUDE_CODE["messages"][2]
