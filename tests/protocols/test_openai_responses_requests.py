"""Requests of the Responses protocol, read from clients and written for upstreams."""

from __future__ import annotations

import base64
import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter
from support.anew import anew
from support.sdk_types import check_responses

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
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.common import call_ids, sealed_reasoning
from dragoman.protocols.model_facts import ModelFacts
from dragoman.protocols.openai_responses import builtins
from dragoman.protocols.openai_responses.request.read import read_request
from dragoman.protocols.openai_responses.request.write import IDS, NAMES, write_request
from dragoman.protocols.registry import protocol

NAME = "openai-responses"
TARGET = Target(model="gpt-6", issuer="openai")
ITEM_ID = Extras(NAME, {"id": "fc_1"})
Obj = dict[str, Any]


def read(body: Obj) -> Request:
    return read_request(json.dumps(body).encode(), "/v1/responses")


def read_items(*items: Obj, **fields: Any) -> Request:
    return read({"model": "gpt-6", "input": list(items), **fields})


def parts_of(*items: Obj) -> list[Any]:
    return [part for message in read_items(*items).messages for part in message.parts]


def write(request: Request, **target: Any) -> Outgoing:
    return write_request(request, Target(**{"model": "gpt-6", "issuer": "openai", **target}))


def asked(*messages: Message, tools: tuple[Tool, ...] = (), **settings: Any) -> Request:
    messages = messages or (Message("user", (Text("Hi"),)),)
    return Request(model="m", messages=messages, tools=tools, settings=Settings(**settings))


def written_items(*messages: Message, **target: Any) -> list[Obj]:
    return write(asked(*messages), **target).body["input"]


def rules(outgoing: Outgoing) -> list[tuple[str, str]]:
    return [(notice.rule, notice.path) for notice in outgoing.notices]


def user(*parts: Any) -> Message:
    return Message("user", parts)


def model(*parts: Any) -> Message:
    return Message("assistant", parts)


CALL = {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": '{"a" : 1.0}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
SHELL = {"type": "function", "name": "shell", "parameters": {"type": "object"}, "strict": False}
APPLY_PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
}

# Bodies of real clients, reduced to their differences.
CODEX: Obj = {
    "model": "gpt-5.5",
    "input": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "developer",
            "content": [{"type": "input_text", "text": "You are Codex."}],
        },
        {
            "type": "message",
            "id": "msg_2",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {
                    "type": "input_image",
                    "image_url": "data:image/png;base64,iVBO",
                    "detail": "high",
                },
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "content": None,
            "encrypted_content": "gAAA",
        },
        {
            "type": "message",
            "role": "assistant",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "Patching."}],
        },
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "call_p",
            "name": "apply_patch",
            "input": "*** Begin Patch\n",
        },
        {
            "type": "custom_tool_call_output",
            "id": "ctco_1",
            "call_id": "call_p",
            "output": [{"type": "input_text", "text": "done"}],
        },
        CALL,
        OUTPUT,
    ],
    "tools": [
        SHELL,
        APPLY_PATCH,
        {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
        {"type": "web_search", "external_web_access": True},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "high", "summary": "detailed", "context": "all_turns"},
    "text": {
        "verbosity": "low",
        "format": {
            "type": "json_schema",
            "name": "codex_output_schema",
            "strict": True,
            "schema": {"type": "object", "properties": {"b": {}, "a": {}}},
        },
    },
    "service_tier": "priority",
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "session",
    "client_metadata": {"x": "y"},
}
CODE_MODE: Obj = {
    "model": "gpt-6.1-sol",
    "input": [
        {
            "type": "additional_tools",
            "id": "at_1",
            "role": "developer",
            "tools": [
                {
                    "type": "namespace",
                    "name": "functions",
                    "description": "Yours.",
                    "tools": [{**APPLY_PATCH, "name": "exec"}, {**SHELL, "name": "wait"}],
                },
                {
                    "type": "namespace",
                    "name": "clock",
                    "description": "Time.",
                    "tools": [{**SHELL, "name": "now"}],
                },
            ],
        },
        {"role": "user", "content": "Go"},
        {
            "type": "custom_tool_call",
            "call_id": "c1",
            "name": "exec",
            "namespace": "functions",
            "input": "text('hi')",
        },
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "hi"},
    ],
    "store": False,
}
AI_SDK: Obj = {
    "model": "gpt-5",
    "input": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "List"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        CALL,
        OUTPUT,
    ],
    "tools": [SHELL],
}
CURSOR: Obj = {
    "model": "gpt-5.5",
    "user": "u",
    "input": [{"role": "user", "content": "Fix it"}],
    "tools": [APPLY_PATCH],
    "stream": True,
    "stream_options": {"include_usage": True, "include_obfuscation": False},
    "truncation": "disabled",
    "prompt_cache_retention": "24h",
}
SAMPLES = {"codex": CODEX, "code mode": CODE_MODE, "ai sdk": AI_SDK}


class TestReadingRealClients:
    def test_codex(self) -> None:
        request = read(CODEX)
        assert [m.role for m in request.messages] == [
            *("developer", "user", "assistant", "assistant", "assistant", "user"),
            *("assistant", "user"),
        ]
        image = request.messages[1].parts[1]
        assert isinstance(image, Media)
        assert (image.media_type, image.data, image.detail) == ("image/png", "iVBO", "high")
        assert request.messages[2].parts == (Thinking("Hm.", Seal(NAME, "gAAA", "rs_1")),)
        patch = request.messages[4].parts[0]
        assert isinstance(patch, ToolCall)
        assert (patch.kind, patch.arguments) == ("custom", "*** Begin Patch\n")
        assert request.messages[5].parts == (
            ToolResult(call_id="call_p", parts=(Text("done"),), kind="custom"),
        )
        call = request.messages[6].parts[0]
        assert isinstance(call, ToolCall)
        assert call.arguments == '{"a" : 1.0}'
        assert [(t.name, t.kind, t.hosted) for t in request.tools] == [
            ("shell", "function", None),
            ("apply_patch", "custom", None),
            ("tool_search", "function", None),  # the client runs this tool
            ("web_search", "hosted", "web_search"),
        ]
        assert request.tools[1].grammar == "start: /.+/"
        settings = request.settings
        assert settings.reasoning == Reasoning(effort="high", show=True)
        assert settings.format is not None
        assert (settings.format.name, settings.format.strict) == ("codex_output_schema", True)
        assert (settings.verbosity, settings.service_tier) == ("low", "priority")
        assert (settings.cache_key, settings.store) == ("session", False)
        assert request.extras == {
            "include": ["reasoning.encrypted_content"],
            "client_metadata": {"x": "y"},
            "reasoning": {"summary": "detailed", "context": "all_turns"},
        }
        assert request.stream

    def test_code_mode_has_its_tools_in_the_input(self) -> None:
        request = read(CODE_MODE)
        assert [(t.namespace, t.name, t.kind) for t in request.tools] == [
            ("functions", "exec", "custom"),
            ("functions", "wait", "function"),
            ("clock", "now", "function"),
        ]
        assert [m.role for m in request.messages] == ["user", "assistant", "user"]
        call = request.messages[1].parts[0]
        assert isinstance(call, ToolCall)
        assert (call.namespace, call.name) == ("functions", "exec")

    def test_items_without_type_and_reasoning_without_id(self) -> None:
        request = read(AI_SDK)
        assert [m.role for m in request.messages[:2]] == ["system", "user"]
        assert request.messages[2].parts == (Thinking("", Seal(NAME, "gAAA")),)

    def test_cursor(self) -> None:
        request = read(CURSOR)
        assert request.settings.user == "u"
        assert write(request).body["stream_options"] == {"include_obfuscation": False}
        alone = {**CURSOR, "stream_options": {"include_usage": True}}
        assert "stream_options" not in write(read(alone)).body

    def test_instructions_and_a_string(self) -> None:
        request = read({"model": "m", "instructions": "Be kind.", "input": "Hi"})
        assert request.messages[0] == Message("system", (Text("Be kind."),))
        assert request.messages[1].parts == (Text("Hi"),)

    def test_tools_found_by_a_search_are_tools(self) -> None:
        found = {"type": "tool_search_output", "call_id": "s", "tools": [SHELL]}
        assert [t.name for t in read_items(found).tools] == ["shell"]
        declared = read_items(found, tools=[{**SHELL, "defer_loading": True}])
        assert [(t.name, t.deferred) for t in declared.tools] == [("shell", True)]


class TestReadingItems:
    @pytest.mark.parametrize(
        ("kind", "role"),
        [
            *[(kind, "assistant") for kind in ("web_search_call", "mcp_call", "program", "news")],
            *[(kind, "assistant") for kind in ("compaction", "local_shell_call", "computer_call")],
            *[(kind, "user") for kind in ("shell_call_output", "mcp_approval_response")],
        ],
    )
    def test_responses_only_items_are_kept(self, kind: str, role: str) -> None:
        item = {"type": kind, "id": "x_1", "anything": [1]}
        message = read_items(item).messages[0]
        assert message == Message(role, (Opaque(Raw(NAME, item), kind),), raw=Raw(NAME, item))  # type: ignore[arg-type]

    def test_a_reference_may_be_a_bare_id(self) -> None:
        part = parts_of({"id": "msg_9"})[0]
        assert part == Opaque(Raw(NAME, {"id": "msg_9"}), "item_reference")

    def test_content(self) -> None:
        item = {
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "See",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url": "https://a.example",
                            "title": "A",
                            "start_index": 0,
                            "end_index": 3,
                        },
                        {"type": "file_path", "file_id": "f", "index": 0},
                    ],
                },
                {"type": "refusal", "refusal": "No."},
                {"type": "hologram"},
            ],
        }
        text, refusal, unknown = parts_of(item)
        assert (text.citations[0].url, text.citations[0].end) == ("https://a.example", 3)
        assert text.citations[1].raw.value["file_id"] == "f"
        assert refusal == Refusal("No.")
        assert unknown == Opaque(Raw(NAME, {"type": "hologram"}), "hologram")

    def test_files_sounds_and_cache_marks(self) -> None:
        mark = {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}
        content = [
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:text/csv;base64,QQ=="},
            {"type": "input_file", "file_url": "https://a.example/b.pdf"},
            {"type": "input_file", "file_data": "QQ=="},
            {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            {"type": "input_image", "file_id": "file-1", **mark},
            {"type": "input_text", "text": "x", **mark},
        ]
        table, page, bare, sound, image, text = parts_of({"role": "user", "content": content})
        assert (table.media_type, table.data, table.name) == ("text/csv", "QQ==", "a.pdf")
        assert page.url == "https://a.example/b.pdf"
        assert (bare.media_type, bare.data) == ("application/pdf", "QQ==")
        assert (sound.kind, sound.media_type) == ("audio", "audio/wav")
        assert (image.file_id, image.cache, text.cache) == ("file-1", Cache("12h"), Cache("12h"))

    def test_results_with_images_and_unknown_parts(self) -> None:
        output = [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "https://a.example/p.png"},
            {"type": "hologram", "x": 1},
        ]
        result = parts_of(CALL, {**OUTPUT, "output": output})[1]
        assert result.parts[0] == Text("see")
        assert result.parts[1].url == "https://a.example/p.png"
        assert json.loads(result.parts[2].text) == output[2]

    def test_incomplete_and_rare_shapes(self) -> None:
        assert parts_of({"role": "assistant", "content": None}) == []
        assert parts_of({"type": "reasoning", "id": "rs_1"}) == [Thinking("", Seal(NAME, "", "rs_1"))]
        svg = "data:image/svg+xml,<svg/>"
        assert (
            parts_of({"role": "user", "content": [{"type": "input_image", "image_url": svg}]})[0].url == svg
        )
        nameless = {"type": "function_call_output", "output": "x"}
        assert parts_of(nameless) == [Opaque(Raw(NAME, nameless), "function_call_output")]
        choice = {"type": "function", "name": "kept"}
        kept = read({"model": "m", "previous_response_id": "r", "tool_choice": choice})
        assert kept.settings.tool_choice == ToolChoice("named", "kept")

    def test_history_stored_by_the_server(self) -> None:
        previous = read_items(OUTPUT, previous_response_id="resp_1")
        assert previous.settings.previous_response_id == "resp_1"
        conversation = read_items(OUTPUT, conversation={"id": "conv_1"})
        assert conversation.settings.previous_response_id == "conv_1"
        assert read_items({"type": "item_reference", "id": "fc_1"}, OUTPUT).messages
        assert read({"model": "m", "previous_response_id": "resp_1"}).messages == ()

    def test_settings(self) -> None:
        settings = read_items(
            max_output_tokens=9,
            temperature=0,
            top_p=0.5,
            top_logprobs=2,
            reasoning={"effort": "none"},
            text={"format": {"type": "json_object"}},
            safety_identifier="s",
            user="u",
            metadata={"a": "b"},
            background=True,
        ).settings
        assert (settings.max_tokens, settings.temperature, settings.top_p) == (9, 0, 0.5)
        assert (settings.logprobs, settings.user, settings.metadata) == (2, "s", {"a": "b"})
        assert settings.reasoning == Reasoning(enabled=False, effort="none")
        assert (settings.format, settings.background) == (Format("json"), True)
        logprobs = read_items(include=["message.output_text.logprobs"]).settings.logprobs
        assert logprobs == 0


@pytest.mark.parametrize(
    ("said", "read_as"),
    [
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "function", "name": "shell"}, ToolChoice("named", "shell")),
        ({"type": "custom", "name": "apply_patch"}, ToolChoice("named", "apply_patch")),
        ({"type": "web_search_preview"}, ToolChoice("named", "web_search")),
        ({"type": "mcp", "server_label": "wiki"}, ToolChoice("named", "wiki")),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "shell"}, {"type": "code_interpreter"}],
            },
            ToolChoice("required", allowed=("shell", "code_interpreter")),
        ),
    ],
)
def test_tool_choices(said: Any, read_as: ToolChoice) -> None:
    tools = [
        *(SHELL, APPLY_PATCH, {"type": "web_search"}, {"type": "code_interpreter"}),
        {"type": "mcp", "server_label": "wiki", "server_url": "https://a.example"},
    ]
    request = read_items({"role": "user", "content": "x"}, tools=tools, tool_choice=said)
    assert request.settings.tool_choice == read_as


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"input": "x"}, "model"),
        ({"model": "m"}, "input"),
        ({"model": "m", "input": 1}, "input"),
        ({"model": "m", "input": ["x"]}, "input[0]"),
        ({"model": "m", "input": [{}]}, "input[0].type"),
        ({"model": "m", "input": [{"type": 1}]}, "input[0].type"),
        ({"model": "m", "input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"model": "m", "input": [{"role": "user", "content": None}]}, "input[0].content"),
        (
            {"model": "m", "input": [{"role": "user", "content": [{}]}]},
            "input[0].content[0].type",
        ),
        (
            {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "input[0].content[0].text",
        ),
        (
            {"model": "m", "input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0]",
        ),
        ({"model": "m", "input": [OUTPUT]}, "input[0].call_id"),
        ({"model": "m", "input": [OUTPUT, CALL]}, "input[0].call_id"),
        ({"model": "m", "input": [CALL, {**OUTPUT, "output": {}}]}, "input[1].output"),
        ({"model": "m", "input": [{**CALL, "name": None}]}, "input[0].name"),
        ({"model": "m", "input": [{**CALL, "arguments": {}}]}, "input[0].arguments"),
        ({"model": "m", "input": [{"type": "reasoning", "summary": "x"}]}, "input[0].summary"),
        ({"model": "m", "input": "x", "instructions": ["x"]}, "instructions"),
        ({"model": "m", "input": "x", "tools": {}}, "tools"),
        ({"model": "m", "input": "x", "tools": [{"name": "x"}]}, "tools[0].type"),
        ({"model": "m", "input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
        (
            {
                "model": "m",
                "input": "x",
                "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "custom"}]}],
            },
            "tools[0].tools[0].name",
        ),
        (
            {
                "model": "m",
                "input": [{"type": "additional_tools", "tools": [{"type": "function"}]}],
            },
            "input[0].tools[0].name",
        ),
        ({"model": "m", "input": "x", "tool_choice": "maybe"}, "tool_choice"),
        ({"model": "m", "input": "x", "tool_choice": 1}, "tool_choice"),
        (
            {"model": "m", "input": "x", "tool_choice": {"type": "function", "name": "gone"}},
            "tool_choice.name",
        ),
        ({"model": "m", "input": "x", "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        (
            {
                "model": "m",
                "input": "x",
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "gone"}],
                },
            },
            "tool_choice.tools[0].name",
        ),
        ({"model": "m", "input": "x", "temperature": "hot"}, "temperature"),
        ({"model": "m", "input": "x", "stream": "yes"}, "stream"),
        ({"model": "m", "input": "x", "max_output_tokens": 1.5}, "max_output_tokens"),
        ({"model": "m", "input": "x", "reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"model": "m", "input": "x", "text": {"format": {"type": "xml"}}}, "text.format.type"),
        (
            {"model": "m", "input": "x", "text": {"format": {"type": "json_schema"}}},
            "text.format.schema",
        ),
        (
            {"model": "m", "input": "x", "previous_response_id": "r", "conversation": "c"},
            "conversation",
        ),
    ],
)
def test_bad_requests_name_the_field(body: Obj, path: str) -> None:
    with pytest.raises(BadRequest) as error:
        read(body)
    assert error.value.path == path


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 5000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_request(body)


def spoilt(value: Any, path: list[int], by: Any) -> Any:
    """`value` with the value at `path` replaced."""
    if not path or not isinstance(value, dict | list) or not value:
        return by
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = keys[path[0] % len(keys)]
    changed = value.copy()
    changed[key] = spoilt(value[key], path[1:], by)
    return changed


@given(
    st.sampled_from([*SAMPLES.values(), CURSOR]),
    st.lists(st.integers(0, 20), min_size=1, max_size=6),
    st.sampled_from([None, True, 1, 0.5, "x", "", [], {}, [[]], [{}], {"type": "x"}, {"type": []}]),
)
def test_any_value_in_a_body_is_read_or_refused(sample: Obj, path: list[int], by: Any) -> None:
    try:
        request = read(spoilt(sample, path, by))
    except BadRequest:
        return
    write(request)
    write(anew(request))


# --- the same protocol ----------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
UNKNOWN = st.dictionaries(st.text(max_size=8).map(lambda key: f"x_{key}"), JSON, max_size=3)


@st.composite
def items(draw: st.DrawFn) -> list[Obj]:
    result: list[Obj] = []
    for number in range(draw(st.integers(0, 4))):
        text = draw(st.text(max_size=10))
        id = draw(st.sampled_from([f"call_{number}", f"functions.Bash:{number}", "é" * 70]))
        pair = [
            {"type": "function_call", "call_id": id, "name": "f", "arguments": text},
            {"type": "function_call_output", "call_id": id, "output": text},
        ]
        kinds: list[list[Obj]] = [
            [{"role": "user", "content": text}],
            [{"type": "message", "role": "assistant", "phase": "final_answer", "content": []}],
            [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": text}],
            [{"type": f"new_{number}"}],
            pair,
        ]
        result += [{**item, **draw(UNKNOWN)} for item in draw(st.sampled_from(kinds))]
    return result


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_samples_for_their_own_protocol_are_unchanged(sample: Obj) -> None:
    out = write(read(sample), model=sample["model"])
    assert json.dumps(out.body) == json.dumps(sample)  # including the order of keys
    assert (out.path, out.notices, out.stop) == ("/v1/responses", (), ())


@given(items(), UNKNOWN)
def test_any_body_for_its_own_protocol_is_unchanged(given_items: list[Obj], unknown: Obj) -> None:
    body = {"input": given_items, **unknown, "model": "m"}
    before = json.dumps(body)
    request = read(body)
    assert json.dumps(write(request, model="m").body) == before
    assert request.raw is not None
    write(request, model="other")
    assert json.dumps(request.raw.parsed) == before


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_a_changed_request_keeps_its_other_members(sample: Obj) -> None:
    sample = json.loads(json.dumps(sample))
    body = write(read(sample).changed(stream=False), model=sample["model"]).body
    sample.pop("stream", None)
    assert body == sample


def rebuilt(body: Obj) -> Request:
    """A request whose settings are not those of its body any more."""
    request = read(body)
    return anew(request)


def test_a_changed_request_keeps_instructions_state_and_conversation() -> None:
    fields = {"instructions": "A", "conversation": "conv_1", "store": True, "background": True}
    sample = {"model": "m", **fields, "input": [{"role": "user", "content": "x"}]}
    assert write(rebuilt(sample), model="m").body == sample
    previous = {"model": "m", "previous_response_id": "r", "instructions": "A", "input": []}
    assert write(rebuilt(previous), model="m").body == previous


def test_escaped_ids_are_restored_for_the_upstream() -> None:
    own = "functions.Bash:0"
    escaped = call_ids.for_client(own, call_ids.WORDS)
    assert escaped != own
    request = read_items({**CALL, "call_id": escaped, "status": "completed"}, {**OUTPUT, "call_id": escaped})
    expected = [{**CALL, "call_id": own, "status": "completed"}, {**OUTPUT, "call_id": own}]
    assert write(request).body["input"] == expected
    assert write(anew(request)).body["input"] == expected


def test_items_go_back_in_the_clients_own_spelling() -> None:
    spelled = b'[{"role" : "user", "content":"\\u0041", "odd": 1.50e2}]'
    request = read_request(b'{"model": "m", "input": %b}' % spelled, "/v1/responses")
    assert bytes(write(request).members["input"]) == spelled
    assert bytes(write(anew(request)).members["input"]) == spelled
    longer = request.changed(messages=(*request.messages, user(Text("y"))))
    assert bytes(write(longer).members["input"]).startswith(spelled[:-1])


def test_only_items_with_wrapped_values_are_rewritten() -> None:
    escaped = json.dumps({**OUTPUT, "call_id": call_ids.for_client("a:b", call_ids.WORDS)}).encode()
    spelled = b'{"role" : "user", "content":"\\u0041"}'
    body = b'{"model": "m", "previous_response_id": "r", "input": [%b, %b]}' % (spelled, escaped)
    written = bytes(write(read_request(body, "/v1/responses")).members["input"])
    assert written.startswith(b"[%b, {" % spelled)
    assert json.loads(written)[1] == {**OUTPUT, "call_id": "a:b"}


def test_a_tool_server_reaches_gemini_by_its_address() -> None:
    server = {
        "type": "mcp",
        "server_label": "docs",
        "server_url": "https://docs.example/mcp",
        "require_approval": "never",
    }
    outgoing = protocol("gemini").write_request(read_items(tools=[server], input="Hi"), TARGET)
    (declared,) = outgoing.body["tools"]
    (reached,) = declared["mcpServers"]
    assert reached["streamableHttpTransport"]["url"] == server["server_url"]


# --- seals ----------------------------------------------------------------------------------------

FOREIGN = Seal("anthropic", "sig", issuer="claude")
OWN = Seal(NAME, "gAAA", "rs_7", issuer="openai")


def carrier(seal: Seal, call: str = "") -> Obj:
    data = base64.b64encode(
        b"dragoman1:" + sealed_reasoning._encode(sealed_reasoning.Envelope(seal, call))
    ).decode()
    summary = [{"type": "summary_text", "text": "Hm."}]
    return {"type": "reasoning", "id": "rs_0", "summary": summary, "encrypted_content": data}


class TestSeals:
    def test_a_foreign_seal_is_unwrapped_and_never_sent_here(self) -> None:
        request = read_items(carrier(FOREIGN), CALL, OUTPUT)
        assert request.messages[0].parts == (Thinking("Hm.", FOREIGN),)
        for version in (request, anew(request)):
            assert write(version).body["input"] == [CALL, OUTPUT]

    def test_the_seal_of_a_call_is_attached_and_its_carrier_removed(self) -> None:
        seal = Seal("gemini", "c2ln", issuer="google")
        request = read_items(carrier(seal, "call_1"), CALL, OUTPUT)
        call = request.messages[0].parts[0]
        assert isinstance(call, ToolCall)
        assert (len(request.messages), call.seal) == (2, seal)
        for version in (request, anew(request)):
            assert write(version).body["input"] == [CALL, OUTPUT]

    def test_the_carrier_may_have_the_clients_call_id(self) -> None:
        escaped = call_ids.for_client("a:b", call_ids.WORDS)
        request = read_items(carrier(FOREIGN, escaped), {**CALL, "call_id": escaped})
        call = request.messages[0].parts[0]
        assert isinstance(call, ToolCall)
        assert (call.id, call.seal) == ("a:b", FOREIGN)

    def test_an_envelope_around_a_seal_of_this_protocol(self) -> None:
        request = read_items(carrier(OWN, "call_1"), CALL, OUTPUT)
        reasoning = write(request).body["input"][0]
        assert (reasoning["id"], reasoning["encrypted_content"]) == ("rs_7", "gAAA")
        rebuilt = write(anew(request)).body["input"]
        assert rebuilt[0] == {
            "type": "reasoning",
            "id": "rs_7",
            "summary": [],
            "encrypted_content": "gAAA",
        }
        assert write(request, issuer="azure").body["input"] == [CALL, OUTPUT]

    def test_reasoning_goes_back_to_its_issuer_directly_before_its_item(self) -> None:
        call = ToolCall(id="c", name="f", arguments="{}")
        result = user(ToolResult(call_id="c", parts=(Text("ok"),)))
        turn = model(Thinking("Hm.", OWN), Text("So."), Thinking("", OWN), call)
        items = written_items(user(Text("x")), turn, result)
        assert [i["type"] for i in items] == [
            *("message", "reasoning", "message", "reasoning", "function_call"),
            "function_call_output",
        ]
        assert items[1] == {
            "type": "reasoning",
            "id": "rs_7",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "gAAA",
        }
        assert items[3]["summary"] == []
        for elsewhere in ("azure", "other"):
            kept = written_items(user(Text("x")), turn, result, issuer=elsewhere)
            assert "reasoning" not in [i["type"] for i in kept]

    @pytest.mark.parametrize("seal", [None, FOREIGN])
    def test_reasoning_without_a_seal_of_ours_is_dropped_and_never_text(self, seal: Any) -> None:
        out = write(asked(user(Text("x")), model(Thinking("secret", seal), Text("a"))))
        assert "secret" not in json.dumps(out.body)

    def test_empty_reasoning_is_dropped(self) -> None:
        items = written_items(user(Text("x")), model(Thinking("", OWN)), user(Text("y")))
        assert [i["type"] for i in items] == ["message", "message"]

    def test_an_id_of_another_kind_is_omitted(self) -> None:
        seal = Seal(NAME, "gAAA", "thought_1")
        assert "id" not in written_items(user(Text("x")), model(Thinking("", seal), Text("a")))[1]


# --- other protocols: the mapping matrix ----------------------------------------------------------


def image(**source: Any) -> Media:
    return Media(kind="image", **source)


def document(**source: Any) -> Media:
    return Media(kind="document", **source)


FUNCTION = Tool(name="f", description="F.", parameters={"type": "object", "properties": {}})
FREEFORM = Tool(name="p", kind="custom", grammar="start: x", grammar_syntax="lark")
CALLED = model(ToolCall(id="c", name="f", arguments="{}"))
FILE_PATH = {"type": "file_path", "file_id": "f", "index": 0}
COMPACTION = {"type": "compaction", "encrypted_content": "x"}
BRANCHING = {"$schema": "x", "type": "object", "properties": {"a": {"enum": [1]}}, "anyOf": [{}]}


def answered(*parts: Any, **fields: Any) -> tuple[Message, ...]:
    return user(Text("x")), CALLED, user(ToolResult(call_id="c", parts=parts, **fields))


# row of the matrix, request, part of the body that must come out (the last item, for lists)
MAPPED: list[tuple[str, Request, Obj]] = [
    (
        "1 system",
        asked(
            Message("system", (Text("A"), Text("B"))),
            Message("developer", (Text("C"),)),
            user(Text("x")),
        ),
        {"instructions": "A\n\nB\n\nC"},
    ),
    (
        "2 system in the middle",
        asked(user(Text("x")), Message("system", (Text("Now."),))),
        {
            "input": {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_text", "text": "Now."}],
            }
        },
    ),
    (
        "3 text",
        asked(user(Text("x")), model(Text("a"), Text(""), Text("b")), user(Text("y"), Text(""))),
        {
            "input": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "y"}],
            }
        },
    ),
    (
        "4 image",
        asked(user(image(media_type="image/gif", data="QQ=="))),
        {
            "input": {
                "type": "message",
                "role": "user",
                "content": [
                    {
                        "type": "input_image",
                        "detail": "auto",
                        "image_url": "data:image/gif;base64,QQ==",
                    }
                ],
            }
        },
    ),
    (
        "4 image url",
        asked(user(image(url="https://a.example/p", detail="low"))),
        {
            "input": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_image", "detail": "low", "image_url": "https://a.example/p"}],
            }
        },
    ),
    (
        "6 document",
        asked(user(document(media_type="application/pdf", data="QQ==", name="a.pdf"))),
        {
            "input": {
                "type": "message",
                "role": "user",
                "content": [
                    {
                        "type": "input_file",
                        "filename": "a.pdf",
                        "file_data": "data:application/pdf;base64,QQ==",
                    }
                ],
            }
        },
    ),
    (
        "6 document url and text",
        asked(user(document(url="https://a.example/p"), document(text="words", name="T"))),
        {
            "input": {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_file", "file_url": "https://a.example/p"},
                    {"type": "input_text", "text": "T\n\nwords"},
                ],
            }
        },
    ),
    (
        "10 function",
        asked(tools=(FUNCTION,)),
        {
            "tools": {
                "type": "function",
                "name": "f",
                "description": "F.",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            }
        },
    ),
    (
        "11 freeform",
        asked(tools=(FREEFORM,)),
        {
            "tools": {
                "type": "custom",
                "name": "p",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
            }
        },
    ),
    (
        "12 namespace",
        asked(tools=(FUNCTION, Tool(name="g", kind="custom", namespace="n"))),
        {
            "tools": {
                "type": "namespace",
                "name": "n",
                "description": "The tools of n.",
                "tools": [{"type": "custom", "name": "g"}],
            }
        },
    ),
    (
        "14 call",
        asked(user(Text("x")), model(ToolCall(id="c", name="f", arguments='{"a": 1.0}'))),
        {
            "input": {
                "type": "function_call",
                "call_id": "c",
                "name": "f",
                "arguments": '{"a": 1.0}',
            }
        },
    ),
    (
        "14 call without arguments, namespaced, with its item id",
        asked(
            user(Text("x")),
            model(ToolCall(id="c", name="f", namespace="n", extras=ITEM_ID)),
        ),
        {
            "input": {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c",
                "namespace": "n",
                "name": "f",
                "arguments": "{}",
            }
        },
    ),
    (
        "14 freeform call; an item id of another kind is left out",
        asked(
            user(Text("x")),
            model(
                ToolCall(
                    id="c",
                    name="p",
                    kind="custom",
                    arguments="",
                    extras=ITEM_ID,
                )
            ),
        ),
        {"input": {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": ""}},
    ),
    (
        "16 result",
        asked(*answered(Text("a"), Text("b"))),
        {"input": {"type": "function_call_output", "call_id": "c", "output": "a\n\nb"}},
    ),
    (
        "16 result of a freeform call, though nobody said so",
        asked(
            user(Text("x")),
            model(ToolCall(id="c", name="p", kind="custom")),
            user(ToolResult(call_id="c", parts=(Text("a"),))),
        ),
        {"input": {"type": "custom_tool_call_output", "call_id": "c", "output": "a"}},
    ),
    (
        "17 error",
        asked(*answered(Text("boom"), is_error=True)),
        {"input": {"type": "function_call_output", "call_id": "c", "output": "[error] boom"}},
    ),
    (
        "17 error without words",
        asked(*answered(is_error=True)),
        {
            "input": {
                "type": "function_call_output",
                "call_id": "c",
                "output": "[error] The tool failed without saying why.",
            }
        },
    ),
    (
        "18 result with an image",
        asked(*answered(Text("see"), image(url="https://a.example/p"))),
        {
            "input": {
                "type": "function_call_output",
                "call_id": "c",
                "output": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "detail": "auto", "image_url": "https://a.example/p"},
                ],
            }
        },
    ),
    ("23 effort", asked(reasoning=Reasoning(effort="xhigh")), {"reasoning": {"effort": "xhigh"}}),
    ("23 off", asked(reasoning=Reasoning(enabled=False)), {"reasoning": {"effort": "none"}}),
    ("23 budget", asked(reasoning=Reasoning(budget=2048)), {"reasoning": {"effort": "low"}}),
    ("23 more", asked(reasoning=Reasoning(budget=31_999)), {"reasoning": {"effort": "high"}}),
    ("24 shown", asked(reasoning=Reasoning(show=True)), {"reasoning": {"summary": "auto"}}),
    (
        "25 citations",
        asked(user(Text("x")), model(Text("abc", citations=(Citation(url="u", title="t"),)))),
        {
            "input": {
                "type": "message",
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": "abc",
                        "annotations": [
                            {
                                "type": "url_citation",
                                "start_index": 0,
                                "end_index": 3,
                                "url": "u",
                                "title": "t",
                            }
                        ],
                    }
                ],
            }
        },
    ),
    (
        "26 cache",
        asked(user(Text("x", Cache("5m")), Text("y", Cache("1h")))),
        {
            "input": {
                "type": "message",
                "role": "user",
                "content": [
                    {
                        "type": "input_text",
                        "text": "x",
                        "prompt_cache_breakpoint": {"mode": "explicit"},
                    },
                    {
                        "type": "input_text",
                        "text": "y",
                        "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"},
                    },
                ],
            }
        },
    ),
    (
        "25 citations of this protocol",
        asked(user(Text("x")), model(Text("a", citations=(Citation(raw=Raw(NAME, FILE_PATH)),)))),
        {
            "input": {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a", "annotations": [FILE_PATH]}],
            }
        },
    ),
    (
        "51 opaque of this protocol",
        asked(user(Text("x")), model(Opaque(Raw(NAME, COMPACTION), "compaction"))),
        {"input": COMPACTION},
    ),
    ("27 cache key", asked(cache_key="k"), {"prompt_cache_key": "k"}),
    ("30 temperature", asked(temperature=0.0, top_p=0.5), {"temperature": 0.0, "top_p": 0.5}),
    ("33 max tokens", asked(max_tokens=100), {"max_output_tokens": 100}),
    (
        "36 logprobs",
        asked(logprobs=3),
        {
            "top_logprobs": 3,
            "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        },
    ),
    (
        "38 json",
        asked(user(Text("JSON?")), format=Format("json")),
        {"text": {"format": {"type": "json_object"}}},
    ),
    (
        "39 schema",
        asked(format=Format("schema", {"$schema": "x", "type": "object"}, "my name"), verbosity="low"),
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "my_name",
                    "schema": {"type": "object"},
                    "strict": False,
                },
                "verbosity": "low",
            }
        },
    ),
    (
        "40 parallel",
        asked(tools=(FUNCTION,), parallel_tool_calls=False),
        {"parallel_tool_calls": False},
    ),
    (
        "41 choice",
        asked(tools=(FUNCTION,), tool_choice=ToolChoice("required")),
        {"tool_choice": "required"},
    ),
    (
        "41 named",
        asked(tools=(FREEFORM,), tool_choice=ToolChoice("named", "p")),
        {"tool_choice": {"type": "custom", "name": "p"}},
    ),
    (
        "42 allowed",
        asked(tools=(FUNCTION, FREEFORM), tool_choice=ToolChoice("auto", allowed=("f", "p"))),
        {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "p"}],
            }
        },
    ),
    (
        "43 user",
        asked(user="u", metadata={"a": "b", "c": 1}),
        {"safety_identifier": "u", "metadata": {"a": "b"}},
    ),
    ("44 tier", asked(service_tier="standard_only"), {"service_tier": "default"}),
    (
        "45 web search",
        asked(
            tools=(Tool(name="w", kind="hosted", hosted="web_search"),),
            tool_choice=ToolChoice("named", "w"),
        ),
        {
            "tools": {"type": "web_search"},
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "web_search"}],
            },
        },
    ),
    (
        "46 code",
        asked(tools=(Tool(name="c", kind="hosted", hosted="code_execution"),)),
        {"tools": {"type": "code_interpreter", "container": {"type": "auto"}}},
    ),
    (
        "49 refusal",
        asked(user(Text("x")), model(Refusal("No.")), user(Refusal("Me?"))),
        {
            "input": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Me?"}],
            }
        },
    ),
    ("53 stateless", asked(store=True), {"store": False}),
]
PREFILLED = {row for row, *_ in MAPPED if row.startswith(("25", "51"))}


@pytest.mark.parametrize(("row", "request_", "expected"), MAPPED, ids=[m[0] for m in MAPPED])
def test_matrix_maps(row: str, request_: Request, expected: Obj) -> None:
    out = write(request_, facts=ModelFacts())
    for key, value in expected.items():
        found = out.body[key]
        assert (found[-1] if key in ("input", "tools") else found) == value
    assert rules(out) == ([("prefill", "messages[1]")] if row in PREFILLED else [])


FULL = "messages[0]"
DROPPED: list[tuple[str, Request, tuple[str, str]]] = [
    ("6 context", asked(user(document(text="a", context="c"))), ("document-details-dropped", FULL)),
    (
        "10 schema",
        asked(tools=(Tool(name="f", parameters=BRANCHING),)),
        ("schema-keyword-dropped", "tools[0].parameters"),
    ),
    (
        "10 strict",
        asked(tools=(Tool(name="f", strict=True, parameters={"properties": {"a": {}}}),)),
        ("strict-dropped", "tools[0].strict"),
    ),
    ("13", asked(tools=(Tool(name="f", deferred=True),)), ("deferred-tools-flattened", "tools")),
    (
        "12 of law 12",
        asked(user(Text("x")), CALLED, user(Text("y"))),
        ("missing-tool-result", "c"),
    ),
    ("25", asked(user(Text("a", citations=(Citation(url="u"),)))), ("citations-dropped", FULL)),
    ("26", asked(user(*[Text("a", Cache())] * 5)), ("cache-marks-truncated", "messages")),
    ("31", asked(top_k=3), ("top-k-dropped", "settings.top_k")),
    ("32", asked(presence_penalty=0.0), ("penalties-dropped", "settings.presence_penalty")),
    ("32 bias", asked(logit_bias={"1": 2}), ("logit-bias-dropped", "settings.logit_bias")),
    ("33", asked(max_tokens=1), ("max-tokens-raised", "settings.max_tokens")),
    ("37", asked(seed=1), ("seed-dropped", "settings.seed")),
    (
        "41",
        asked(
            tools=(FUNCTION, Tool(name="m", kind="hosted", hosted="maps")),
            tool_choice=ToolChoice("named", "m"),
        ),
        ("forced-choice-downgraded", "settings.tool_choice"),
    ),
    (
        "45 others",
        asked(tools=(Tool(name="m", kind="hosted", hosted="maps"),)),
        ("hosted-tool-dropped", "tools[0]"),
    ),
    (
        "51",
        asked(user(Text("x"), Opaque(Raw("anthropic", {}), "compaction"))),
        ("opaque-dropped", FULL),
    ),
    ("54", asked(user(Text("x")), model(Text("{"))), ("prefill", "messages[1]")),
    ("name", asked(Message("user", (Text("x"),), name="Ann")), ("message-name-dropped", FULL)),
    (
        "4 by the model",
        asked(user(Text("x")), model(image(data="QQ==")), user(Text("y"))),
        ("assistant-media-dropped", "messages[1]"),
    ),
]


@pytest.mark.parametrize(("row", "request_", "rule"), DROPPED, ids=[d[0] for d in DROPPED])
def test_matrix_drops_with_one_notice(row: str, request_: Request, rule: tuple[str, str]) -> None:
    assert rule in rules(write(request_))
    with pytest.raises(BadRequest):
        write(request_, strict=True)


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (asked(user(image(file_id="f"))), "messages[0]"),
        (asked(user(document(file_id="f"))), "messages[0]"),
        (asked(user(image())), "messages[0]"),
        (asked(user(document())), "messages[0]"),
        (asked(user(Media(kind="audio", media_type="audio/mpeg", data="QQ=="))), "messages[0]"),
        (asked(user(Media(kind="video", url="https://a.example"))), "messages[0]"),
        (asked(audio_out=True), "settings.audio_out"),
        (asked(n=2), "settings.n"),
        (asked(background=True), "settings.background"),
        (asked(tools=(Tool(name="m", kind="hosted", hosted="mcp"),)), "tools[0]"),
    ],
)
def test_matrix_refuses(request_: Request, path: str) -> None:
    with pytest.raises(BadRequest) as error:
        write(request_)
    assert error.value.path == path


def test_file_ids_of_chat_are_kept() -> None:
    file = {"type": "file", "file": {"file_id": "file-1"}}
    body = {"model": "m", "messages": [{"role": "user", "content": [file]}]}
    request = protocol("openai-chat").read_request(json.dumps(body).encode(), "")
    assert write(request).body["input"][0]["content"] == [{"type": "input_file", "file_id": "file-1"}]


def test_stop_sequences_are_left_to_the_exchange() -> None:
    out = write(asked(stop=("END",)))
    assert out.stop == ("END",)
    assert "stop" not in out.body


def test_a_request_of_another_protocol_is_stateless() -> None:
    body = write(asked(), model="gpt-6").body
    assert list(body) == ["model", "input", "include", "store"]
    assert body["include"] == ["reasoning.encrypted_content"]


def test_system_prompts_alone_get_a_user_message() -> None:
    body = write(asked(Message("system", (Text("A"),)))).body
    assert "instructions" not in body
    assert body["input"][0]["role"] == "system"


def test_no_choice_without_tools() -> None:
    body = write(asked(tool_choice=ToolChoice("auto"), parallel_tool_calls=True)).body
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


def test_allowed_tools_without_a_sendable_tool_allow_none() -> None:
    tools = (FUNCTION, Tool(name="m", kind="hosted", hosted="maps"))
    request = asked(tools=tools, tool_choice=ToolChoice("auto", allowed=("m",)))
    assert write(request).body["tool_choice"] == "none"


def test_the_last_four_cache_marks_stay() -> None:
    request = asked(user(*[Text(str(n), Cache()) for n in range(6)]))
    content = write(request).body["input"][0]["content"]
    marked = [part["text"] for part in content if "prompt_cache_breakpoint" in part]
    assert marked == ["2", "3", "4", "5"]


def test_a_placeholder_result_comes_before_the_others() -> None:
    calls = model(ToolCall(id="a", name="f"), ToolCall(id="b", name="f"))
    items = written_items(calls, user(ToolResult(call_id="b", parts=(Text("ok"),)), Text("y")))
    assert [i.get("call_id") for i in items] == ["a", "b", "a", "b", None]
    assert items[2]["output"].startswith("[error] ")


def test_the_strict_flag_stays_if_the_server_accepts_it() -> None:
    inner = {"type": "object", "properties": {}, "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [inner, {"type": "array", "items": inner}]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    request = asked(tools=(Tool(name="f", strict=True, parameters=schema),))
    assert write(request).body["tools"][0]["strict"] is True
    inner["additionalProperties"] = True
    assert write(request).body["tools"][0]["strict"] is False


def test_a_long_user_is_hashed() -> None:
    sent = write(asked(user="x" * 200)).body["safety_identifier"]
    assert len(sent) == 64


@given(st.text(min_size=1, max_size=90), st.text(min_size=1, max_size=90))
def test_names_and_ids_are_legal_and_come_back(name: str, id: str) -> None:
    request = asked(
        user(Text("x")),
        model(ToolCall(id=id, name=name)),
        user(ToolResult(call_id=id)),
        tools=(Tool(name=name),),
        tool_choice=ToolChoice("named", name),
    )
    out = write(request)
    sent = out.body["tools"][0]["name"]
    _, call, result = out.body["input"]
    assert sent == call["name"] == out.body["tool_choice"]["name"]
    assert len(sent) <= NAMES.max_length
    assert IDS.legal(call["call_id"])
    assert call["call_id"] == result["call_id"]
    called = out.names.called(sent)
    assert called is not None
    assert (called.tool.name, called.wrapped) == (name, False)


# --- the SDK's own types --------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [m[1] for m in MAPPED], ids=[m[0] for m in MAPPED])
def test_the_sdk_agrees(request_: Request) -> None:
    check_responses(write(request_).body)


def test_a_longer_conversation_has_the_same_prefix() -> None:
    shorter = answered(Text("a"))
    longer = (*shorter, model(Text("b")), user(Text("c")))
    before, after = written_items(*shorter), written_items(*longer)
    assert after[: len(before)] == before


# --- tools of this protocol that the client runs --------------------------------------------------

SHELL_CALL = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_1",
    "action": {"commands": ["ls"], "timeout_ms": 10, "max_output_length": None},
    "status": "completed",
}
LOCAL_SHELL_CALL = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "call_1",
    "action": {"type": "exec", "command": ["ls"], "env": {}, "working_directory": "/w"},
    "status": "completed",
}
PATCH_CALL = {
    "type": "apply_patch_call",
    "id": "apc_1",
    "call_id": "call_1",
    "operation": {"type": "delete_file", "path": "a.py"},
    "status": "completed",
}


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        (SHELL_CALL, "shell", {"commands": ["ls"], "timeout_ms": 10}),
        (LOCAL_SHELL_CALL, "local_shell", {"command": ["ls"], "working_directory": "/w"}),
        (PATCH_CALL, "apply_patch", {"type": "delete_file", "path": "a.py"}),
    ],
)
def test_a_builtin_is_a_function_elsewhere_and_its_call_an_item_again(
    item: Obj, name: str, arguments: Obj
) -> None:
    request = read_items(item, tools=[{"type": name}])
    (tool,) = request.tools
    (call,) = parts_of(item)
    assert (tool.kind, tool.name, tool.builtin) == ("function", name, name)
    assert jsonschema_rs.is_valid(tool.schema, arguments)
    assert (call.name, json.loads(call.arguments), call.builtin) == (name, arguments, name)
    again = builtins.call_item(name, call, item["id"])
    assert again is not None
    expected = {key: value for key, value in item.items() if value is not None}
    held = expected.get("action")
    assert {**again, "action": held} == {**expected, "action": held}
    if held:
        assert again["action"] == {k: v for k, v in held.items() if v is not None}
    assert TypeAdapter(ResponseOutputItem).validate_python(again).type == item["type"]


def test_a_call_of_a_builtin_that_is_no_object_is_no_item() -> None:
    for arguments in ("", "[1]", "{"):
        call = ToolCall(id="c", name="shell", arguments=arguments)
        assert (builtins.call_item("shell", call, "sh_1") is None) == (arguments != "")


@pytest.mark.parametrize(
    ("call", "output", "text", "failed"),
    [
        (
            SHELL_CALL,
            {
                "type": "shell_call_output",
                "call_id": "call_1",
                "output": [
                    {"stdout": "a\n", "stderr": "w\n", "outcome": {"type": "exit", "exit_code": 1}},
                    {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
                ],
            },
            "a\nw\n[exit code 1]\n[timed out]",
            False,
        ),
        (
            LOCAL_SHELL_CALL,
            {"type": "local_shell_call_output", "id": "call_1", "output": '{"output":"a"}'},
            '{"output":"a"}',
            False,
        ),
        (
            PATCH_CALL,
            {"type": "apply_patch_call_output", "call_id": "call_1", "status": "failed", "output": "no"},
            "no",
            True,
        ),
        (
            PATCH_CALL,
            {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed"},
            "Done.",
            False,
        ),
    ],
)
def test_results_of_builtin_calls(call: Obj, output: Obj, text: str, failed: bool) -> None:
    _, result = parts_of(call, output)
    assert (result.call_id, result.parts, result.is_error) == ("call_1", (Text(text),), failed)
    request = read_items(call, output)
    assert write(request).body["input"] == [call, output]
    assert write(anew(request)).body["input"] == [call, output]


def test_a_shell_in_a_container_is_left_to_the_provider() -> None:
    container = {"type": "container_reference", "container_id": "c"}
    call = {**SHELL_CALL, "environment": container}
    output = {"type": "shell_call_output", "call_id": "call_1", "output": []}
    request = read_items(call, output, tools=[{"type": "shell", "environment": {"type": "container_auto"}}])
    assert [type(part) for message in request.messages for part in message.parts] == [Opaque, Opaque]
    assert (request.tools[0].kind, request.tools[0].hosted) == ("hosted", "shell")


@pytest.mark.parametrize("name", ["shell", "apply_patch"])
def test_a_builtin_can_be_chosen(name: str) -> None:
    request = read_items({"role": "user", "content": "x"}, tools=[{"type": name}], tool_choice={"type": name})
    assert request.settings.tool_choice == ToolChoice("named", name)
    assert write(anew(request)).body["tool_choice"] == {"type": name}


def test_escaped_ids_of_builtins_are_restored() -> None:
    escaped = call_ids.for_client("functions.shell:0", call_ids.WORDS)
    call = {**LOCAL_SHELL_CALL, "call_id": escaped}
    output = {"type": "local_shell_call_output", "id": escaped, "output": "x"}
    written = write(read_items(call, output)).body["input"]
    assert (written[0]["call_id"], written[1]["id"]) == ("functions.shell:0",) * 2


def test_reasoning_ids_of_our_encoder_never_reach_the_upstream() -> None:
    """Reasoning of a model without seals has a generated id, which OpenAI would look up."""
    made_up = {"type": "reasoning", "id": "rs_x1_0", "summary": [{"type": "summary_text", "text": "Hm."}]}
    kept = {**made_up, "id": "rs_68e0c1a2"}
    said = {"role": "user", "content": "x"}
    request = read_items(said, made_up, kept, CALL, OUTPUT)
    for version in (request, anew(request)):
        assert write(version).body["input"] == [said, kept, CALL, OUTPUT]


# --- members that nobody knows --------------------------------------------------------------------


def marked(given: Any, path: str = "") -> Any:
    """A copy with an unknown member, unlike any other, in every object."""
    if isinstance(given, list):
        return [marked(value, f"{path}.{at}") for at, value in enumerate(given)]
    if not isinstance(given, dict):
        return given
    inner = {key: marked(value, f"{path}.{key}") for key, value in given.items()}
    return inner | {"x_nobody": {"at": path, "n": [1.5e300, None, {}]}}


ESCAPED = call_ids.for_client("functions.f:0", call_ids.WORDS)
TEXTS = [{"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": ""}]
LISTED_OUTPUT: list[Any] = [
    {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
    {"type": "output_text", "text": "b", "annotations": []},
    {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"},
    {"type": "new", "text": "c"},
    {"type": "new"},
]
# What a client sends with the id `ESCAPED`, besides the unknown members.
HOLDING_AN_ID: dict[str, Obj] = {
    "call": {**CALL, "id": "fc_1", "status": "completed", "namespace": "n"},
    "call with null": {**CALL, "id": "item_1", "namespace": None, "arguments": ""},
    "freeform call": {"type": "custom_tool_call", "id": "ctc_1", "name": "p", "input": "*** Begin"},
    "shell": {**SHELL_CALL, "environment": {"type": "local"}},
    "local shell": LOCAL_SHELL_CALL,
    "opaque call": {"type": "computer_call", "id": "cu_1", "actions": [{"type": "wait"}]},
}
RESULTS: dict[str, Obj] = {
    "text": {"type": "function_call_output", "id": "fco_1", "output": "ok", "status": "completed"},
    "nothing": {"type": "function_call_output", "output": ""},
    "null": {"type": "function_call_output", "output": None},
    "list": {"type": "function_call_output", "output": LISTED_OUTPUT},
    "texts": {"type": "custom_tool_call_output", "output": LISTED_OUTPUT[:1], "name": "p"},
    "local shell": {"type": "local_shell_call_output", "output": "{}"},
    "shell": {"type": "shell_call_output", "output": [{"stdout": "a", "outcome": {"type": "timeout"}}]},
    "opaque": {"type": "computer_call_output", "output": {"type": "computer_screenshot"}},
}
CALLED_BY = {
    "texts": "freeform call",
    "local shell": "local shell",
    "shell": "shell",
    "opaque": "opaque call",
}


def with_id(item: Obj, id: str) -> Obj:
    key = "id" if item["type"] == "local_shell_call_output" else "call_id"
    return {**item, key: id}


def versions(request: Request) -> list[Request]:
    """The request as it is, and changed in ways that leave its own messages as they are."""
    longer = (*request.messages, user(Text("More")))
    with_body = msgspec.structs.replace(request, messages=longer)
    return [request, anew(request), request.changed(messages=longer), with_body]


MORE = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "More"}]}
SAID = {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "new", "a": 1}]}
ANSWERED = {"type": "message", "id": "msg_1", "role": "assistant", "content": "y", "phase": "commentary"}


def check_input(request: Request, expected: list[Obj]) -> None:
    as_is, changed, *longer = versions(request)
    for version in (as_is, changed):
        assert write(version).body["input"] == expected
    for version in longer:
        assert write(version).body["input"] == [*expected, MORE]


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_unknown_members_survive_in_every_object(sample: Obj) -> None:
    sample = marked({**sample, "text": {**sample.get("text", {}), "format": {"type": "text"}}})
    assert write(read(sample), model=sample["model"]).body == sample
    sample.pop("tool_choice", None)
    for version in versions(read(sample)):
        body = write(version, model=sample["model"]).body
        if body["input"] != sample["input"]:
            assert body["input"].pop() == MORE
        assert body == sample


@pytest.mark.parametrize("format", [{"type": "json_object"}, {"type": "json_schema", "name": "a"}])
def test_unknown_members_of_settings_survive(format: Obj) -> None:
    if format["type"] == "json_schema":
        format = {**format, "schema": {"type": "object"}, "strict": True, "description": "A."}
    settings = {"text": {"format": format, "verbosity": "low"}, "reasoning": {"effort": "low"}}
    body = marked({"model": "m", "input": [SAID], **settings})
    for version in versions(read(body))[:2]:
        assert write(version, model="m").body == body


@pytest.mark.parametrize("name", HOLDING_AN_ID)
def test_an_item_with_an_escaped_id_keeps_its_other_members(name: str) -> None:
    item = marked(HOLDING_AN_ID[name])
    own, *around = with_id(item, "functions.f:0"), marked(SAID), marked(ANSWERED)
    given = [around[0], with_id(item, ESCAPED), around[1]]
    request = read_items(*given)
    assert request.messages[1].raw is None
    check_input(request, [around[0], own, around[1]])


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_with_an_escaped_id_keeps_its_other_members(name: str) -> None:
    call, result = marked(HOLDING_AN_ID[CALLED_BY.get(name, "call")]), marked(RESULTS[name])
    request = read_items(marked(SAID), with_id(call, ESCAPED), with_id(result, ESCAPED), marked(ANSWERED))
    own = [with_id(item, "functions.f:0") for item in (call, result)]
    check_input(request, [marked(SAID), *own, marked(ANSWERED)])


@pytest.mark.parametrize(
    "beside",
    [
        {},
        {"status": None, "content": None},
        {"summary": TEXTS, "content": [{"type": "reasoning_text", "text": "B"}]},
        {"summary": TEXTS[:1] * 2},
        {"summary": [], "content": [{"type": "reasoning_text", "text": "B"}]},
    ],
)
def test_reasoning_in_an_envelope_keeps_its_other_members(beside: Obj) -> None:
    for members in (beside, marked(beside)):
        item = {**carrier(OWN), **members}
        request = read_items(marked(SAID), item, marked(ANSWERED))
        own = {**item, "id": "rs_7", "encrypted_content": "gAAA"}
        check_input(request, [marked(SAID), own, marked(ANSWERED)])
        assert write(request, issuer="azure").body["input"] == [marked(SAID), marked(ANSWERED)]
        elsewhere = read_items(marked(SAID), {**carrier(FOREIGN), **members}, marked(ANSWERED))
        check_input(elsewhere, [marked(SAID), marked(ANSWERED)])


def test_a_call_with_a_seal_of_another_protocol_keeps_its_other_members() -> None:
    call = marked({**CALL, "id": "fc_1", "namespace": "n"})
    request = read_items(carrier(FOREIGN, ESCAPED), with_id(call, ESCAPED), marked(ANSWERED))
    (called,) = request.messages[0].parts
    assert isinstance(called, ToolCall)
    assert called.seal == FOREIGN
    check_input(request, [with_id(call, "functions.f:0"), marked(ANSWERED)])


def test_an_id_that_only_the_store_knows_keeps_the_other_members() -> None:
    """The store replaces the hash of an id by the id, so the item is written from its parts."""
    hashed = call_ids.for_client("x" * 100, call_ids.WORDS)
    item = marked(with_id(HOLDING_AN_ID["call"], hashed))
    request = read_items(marked(SAID), item)
    check_input(request, [marked(SAID), item])
    said, called = request.messages
    (call,) = called.parts
    assert isinstance(call, ToolCall)
    renamed = Message("assistant", (msgspec.structs.replace(call, id="x" * 100),))
    written = write(request.changed(messages=(said, renamed))).body["input"]
    assert written == [marked(SAID), with_id(item, "x" * 100)]


def test_a_conversation_that_holds_only_values_of_dragoman_is_still_a_responses_clients() -> None:
    request = read_items(with_id(CALL, ESCAPED), truncation="auto")
    request = anew(request)
    body = write(request).body
    assert (body["truncation"], "include" in body) == ("auto", False)


def test_later_items_do_not_change_the_bytes_of_earlier_ones() -> None:
    turns = [
        [marked(SAID), {**carrier(OWN), "status": None}],
        [with_id(marked(HOLDING_AN_ID["call"]), ESCAPED)],
        [with_id(marked(RESULTS["list"]), ESCAPED)],
        [carrier(FOREIGN), marked(ANSWERED), marked(SAID)],
    ]
    for separators in ((", ", ": "), (",", ":"), (" ,\n ", " : ")):
        given: list[Obj] = []
        before = b"["
        for turn in turns:
            given += turn
            body = json.dumps({"model": "m", "input": given}, separators=separators).encode()
            written = bytes(write(read_request(body, "/v1/responses")).members["input"])
            assert written.startswith(before)
            before = written[:-1]


# --- tools in the input ---------------------------------------------------------------------------

MORE_TOOLS = {"type": "namespace", "name": "n", "description": "N.", "tools": [APPLY_PATCH, SHELL]}


def declaring(*tools: Obj, id: str) -> Obj:
    return marked({"type": "additional_tools", "id": id, "role": "developer", "tools": list(tools)})


def test_items_that_declare_tools_stay_in_their_places() -> None:
    """Also if a later definition replaces an earlier one: a changed beginning would miss the prompt cache."""
    search = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}
    given = [
        declaring(SHELL, MORE_TOOLS, id="at_1"),
        marked(SAID),
        with_id(marked(CALL), ESCAPED),
        declaring(MORE_TOOLS, search, id="at_2"),
        declaring(id="at_3"),
        marked(ANSWERED),
        declaring({**SHELL, "description": "Newer."}, id="at_4"),
    ]
    tools = marked([APPLY_PATCH, SHELL, {"type": "namespace", "name": "empty", "tools": []}])
    request = read_items(*given, tools=tools)
    names = [(tool.namespace, tool.name) for tool in request.tools if tool.kind != "hosted"]
    assert len(names) == len({*names}) == 4
    expected = [*given[:2], with_id(marked(CALL), "functions.f:0"), *given[3:]]
    check_input(request, expected)
    for version in versions(request):
        assert write(version).body["tools"] == tools
    # One tool less: its item is written anew, the others stay.
    fewer = request.changed(tools=tuple(tool for tool in request.tools if tool.hosted != "web_search"))
    del expected[3]["tools"][1]
    assert write(fewer).body["input"] == expected


def test_a_tool_that_was_taken_out_leaves_no_choice() -> None:
    request = read_items(SAID, tools=[{"type": "web_search"}], tool_choice="auto")
    without = msgspec.structs.replace(request, tools=())
    assert write(without).body == {"model": "gpt-6", "input": [SAID]}
