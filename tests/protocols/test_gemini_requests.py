"""Gemini requests: bodies of real clients are read, every row of the mapping matrix is written,
bodies for the same protocol are unchanged, and bad ones are refused."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sdk_types import check_gemini

from dragoman.model.errors import BadRequest
from dragoman.model.messages import (
    Cache,
    Citation,
    Format,
    Media,
    Message,
    Opaque,
    Part,
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
    ToolServer,
)
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.common import call_ids, sealed_reasoning
from dragoman.protocols.gemini.request.read import read_request
from dragoman.protocols.gemini.request.schemas import json_schema
from dragoman.protocols.gemini.request.write import IDS, NAMES, write_request

PATH = "/v1beta/models/gemini-2.5-pro:generateContent"
BYPASS = "skip_thought_signature_validator"
SHELL = Tool(
    name="shell",
    description="Runs a command",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}},
)


def read(body: Any, path: str = PATH) -> Request:
    return read_request(json.dumps(body).encode(), path)


def asking(*parts: Any, **fields: Any) -> dict[str, Any]:
    """A body with one user content."""
    return {"contents": [{"role": "user", "parts": list(parts) or [{"text": "hi"}]}], **fields}


def target(model: str = "gemini-3-pro", **facts: Any) -> Target:
    return Target(model=model, **facts)


def neutral(*messages: Message, **fields: Any) -> Request:
    messages = messages or (Message("user", (Text("hi"),)),)
    return Request(model="m", messages=messages, **fields)


def write(request: Request, to: Target | None = None) -> Outgoing:
    """Write a request. Google's own types check it: they forbid unknown members."""
    outgoing = write_request(request, to or target())
    check_gemini(outgoing.body)
    return outgoing


def rules(outgoing: Outgoing) -> set[str]:
    return {notice.rule for notice in outgoing.notices}


def user(*parts: Part) -> Message:
    return Message("user", parts)


def model(*parts: Part) -> Message:
    return Message("assistant", parts)


def call(id: str, name: str = "shell", arguments: str = "{}", **more: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=arguments, **more)


def result(id: str, text: str = "ok", **more: Any) -> ToolResult:
    return ToolResult(call_id=id, parts=(Text(text),), **more)


# ── reading: the path ──


@pytest.mark.parametrize(
    ("path", "name", "stream"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini-3-pro", False),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "gemini-3-pro", True),
        ("/v1/models/gemini-2.5-flash:streamGenerateContent", "gemini-2.5-flash", True),
        ("models/gemini-3-pro:generateContent", "gemini-3-pro", False),
        ("/v1beta/models/google%2Fgemini-3:generateContent", "google/gemini-3", False),
        ("/v1beta/models/llama%3A7b:streamGenerateContent?key=x:y", "llama:7b", True),
        ("/v1beta/tunedModels/mine:generateContent", "tunedModels/mine", False),
        (
            "/v1/projects/p/locations/l/publishers/google/models/gemini-3:generateContent",
            "gemini-3",
            False,
        ),
    ],
)
def test_model_and_streaming_come_from_the_path(path: str, name: str, stream: bool) -> None:
    request = read(asking(), path)
    assert (request.model, request.stream) == (name, stream)


def test_without_a_path_the_body_may_name_the_model() -> None:
    assert read(asking(model="models/gemini-3"), "").model == "gemini-3"
    assert read(asking(), "").model == ""


@pytest.mark.parametrize("path", ["/v1beta/models", "/v1/messages", "/v1/models/m:embedContent"])
def test_a_path_that_names_no_model_is_refused(path: str) -> None:
    with pytest.raises(BadRequest):
        read(asking(), path)


# ── reading: bodies of real clients ──

GEMINI_CLI: dict[str, Any] = {
    "contents": [
        {"role": "user", "parts": [{"text": "make a file"}]},
        {
            "role": "model",
            "parts": [
                {
                    "functionCall": {
                        "name": "shell",
                        "args": {"command": "touch a"},
                        "id": "shell-1",
                    },
                    "thoughtSignature": "U0lH",
                }
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "shell-1",
                        "name": "shell",
                        "response": {"output": "done"},
                    }
                }
            ],
        },
    ],
    "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
    "tools": [
        {
            "functionDeclarations": [
                {
                    "name": "shell",
                    "description": "Runs",
                    "parametersJsonSchema": {
                        "type": "object",
                        "properties": {"command": {"type": "string"}},
                        "required": ["command"],
                    },
                }
            ]
        }
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "generationConfig": {
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
    },
}


def test_gemini_cli() -> None:
    request = read(GEMINI_CLI, "/v1beta/models/gemini-3.1-pro:streamGenerateContent?alt=sse")
    system, question, calls, results = request.messages
    assert system.role == "system"
    assert system.parts == (Text("You are an agent."),)
    assert question.parts == (Text("make a file"),)
    assert calls.role == "assistant"
    assert calls.parts == (call("shell-1", arguments='{"command":"touch a"}', seal=Seal("gemini", "U0lH")),)
    (answer,) = results.parts
    assert isinstance(answer, ToolResult)
    assert (answer.call_id, answer.name, answer.parts) == ("shell-1", "shell", (Text("done"),))
    (tool,) = request.tools
    assert (tool.name, tool.description, tool.kind) == ("shell", "Runs", "function")
    assert tool.schema
    assert tool.schema["required"] == ["command"]
    settings = request.settings
    assert (settings.temperature, settings.top_p, settings.top_k) == (1, 0.95, 64)
    assert settings.reasoning == Reasoning(True, "high", show=True)
    assert settings.tool_choice == ToolChoice("auto")
    assert request.extras is None
    assert request.raw == Raw("gemini", GEMINI_CLI)


def test_both_spellings_are_read_at_every_level() -> None:
    schema = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    request = read(
        {
            "contents": [
                {
                    "role": "user",
                    "parts": [{"inline_data": {"mime_type": "image/png", "data": "QQ=="}}],
                },
                {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"a_b": 1}}}]},
                {
                    "parts": [
                        {"function_response": {"name": "f", "response": {"my_key": {"x_y": 2}}}},
                        {"file_data": {"file_uri": "https://a.example/b.pdf"}},
                    ]
                },
                {"role": "model", "parts": [{"text": "x", "thought_signature": "U0lH"}]},
            ],
            "system_instruction": {"parts": {"text": "S"}},
            "tools": {"function_declarations": [{"name": "f", "parameters_json_schema": schema}]},
            "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
            "generationConfig": {
                "max_output_tokens": 5,
                "response_json_schema": schema,
                "responseMimeType": "application/json",
                "thinkingConfig": {"include_thoughts": True, "thinking_budget": 7},
            },
            "safety_settings": [],
        }
    )
    assert request.messages[0].parts == (Text("S"),)
    assert request.messages[1].parts[0] == Media(
        kind="image",
        media_type="image/png",
        data="QQ==",
        raw=Raw("gemini", {"inline_data": {"mime_type": "image/png", "data": "QQ=="}}),
    )
    assert request.messages[2].parts == (call("call_0_f", "f", '{"a_b":1}'),)
    answer, file = request.messages[3].parts
    assert isinstance(answer, ToolResult)
    assert (answer.call_id, answer.parts) == ("call_0_f", (Text('{"my_key":{"x_y":2}}'),))
    assert isinstance(file, Media)
    assert (file.kind, file.media_type, file.url) == (
        "document",
        "application/pdf",
        "https://a.example/b.pdf",
    )
    assert request.messages[4].parts == (Text("x"), Thinking("", Seal("gemini", "U0lH")))
    assert request.tools[0].schema == schema
    settings = request.settings
    assert settings.tool_choice == ToolChoice("named", "f")
    assert settings.max_tokens == 5
    assert settings.format == Format("schema", schema)
    assert settings.reasoning == Reasoning(True, None, 7, show=True)
    assert request.extras == {"safety_settings": []}


def test_one_object_in_place_of_a_list_is_read() -> None:
    request = read({"contents": {"parts": {"text": "hi"}}, "tools": {"googleSearch": {}}})
    assert request.messages[0].role == "user"
    assert request.messages[0].parts == (Text("hi"),)
    assert [(t.kind, t.hosted) for t in request.tools] == [("hosted", "web_search")]


@pytest.mark.parametrize(
    ("instruction", "parts"),
    [
        ("be kind", (Text("be kind"),)),
        ({"parts": [{"text": "a"}, {"text": "b"}], "role": "user"}, (Text("a"), Text("b"))),
        ({"text": "bare"}, (Text("bare"),)),
        ("", ()),
        ({"parts": []}, ()),
    ],
)
def test_system_instruction(instruction: Any, parts: tuple[Part, ...]) -> None:
    messages = read(asking(systemInstruction=instruction)).messages
    assert [m.parts for m in messages if m.role == "system"] == ([parts] if parts else [])


def test_parts_of_every_kind() -> None:
    code = {"executableCode": {"code": "1", "language": "PYTHON"}}
    video = {
        "fileData": {"fileUri": "https://youtu.be/x"},
        "videoMetadata": {"startOffset": "1s"},
    }
    body = {
        "contents": [
            {
                "role": "user",
                "parts": [
                    video,
                    {"inlineData": {"mimeType": "audio/wav", "data": "QQ=="}},
                    {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "thinking", "thought": True, "thoughtSignature": "QQ=="},
                    {"text": "", "thought": True},
                    code | {"thoughtSignature": "Qg=="},
                    {"text": "", "thoughtSignature": "Qw=="},
                    {"thoughtSignature": "RA=="},
                    {},
                ],
            },
        ]
    }
    asked, answered = read(body).messages
    assert asked.parts[0] == Media(
        kind="video", media_type="video/mp4", url="https://youtu.be/x", raw=Raw("gemini", video)
    )
    kinds = [(p.kind, p.file_id) for p in asked.parts[1:] if isinstance(p, Media)]
    assert kinds == [("audio", None), ("image", "gs://bucket/a.png")]
    assert answered.parts == (
        Thinking("thinking", Seal("gemini", "QQ==")),
        Thinking(""),
        Opaque(Raw("gemini", code), "executableCode"),
        Thinking("", Seal("gemini", "Qg==")),
        Text(""),
        Thinking("", Seal("gemini", "Qw==")),
        Thinking("", Seal("gemini", "RA==")),
    )


@pytest.mark.parametrize(
    ("response", "text", "is_error"),
    [
        ({"output": "x"}, "x", False),
        ({"result": "x"}, "x", False),
        ({"return_value": 3}, "3", False),
        ({"name": "f", "content": "x"}, "x", False),
        ({"name": "other", "content": "x"}, '{"name":"other","content":"x"}', False),
        ({"output": {"b": 1, "a": [2.0]}}, '{"b":1,"a":[2.0]}', False),
        ({"output": "x", "error": None}, "x", False),
        ({"error": "boom"}, "boom", True),
        ({"error": {"code": 1}}, '{"code":1}', True),
        ({"error": "boom", "output": ""}, '{"error":"boom","output":""}', True),
        ({"output": "x", "exit_code": 0}, '{"output":"x","exit_code":0}', False),
        ({"big": 123456789012345678901234567890}, '{"big":123456789012345678901234567890}', False),
        ({}, "{}", False),
    ],
)
def test_shapes_of_responses(response: Any, text: str, is_error: bool) -> None:
    body = {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
            {
                "role": "function",
                "parts": [{"functionResponse": {"name": "f", "response": response}}],
            },
        ]
    }
    called, answered = read(body).messages
    assert called.parts == (call("call_0_f", "f"),)
    (answer,) = answered.parts
    assert isinstance(answer, ToolResult)
    assert (answer.parts, answer.is_error) == ((Text(text),), is_error)


def test_media_in_a_response() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "QQ=="}}
    response = {"name": "f", "response": {"output": "see"}, "parts": [part]}
    body = {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "id": "1"}}]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ]
    }
    (answer,) = read(body).messages[1].parts
    assert isinstance(answer, ToolResult)
    assert answer.call_id == "1"
    assert [type(p) for p in answer.parts] == [Text, Media]


def test_the_numbers_of_arguments_keep_their_spelling() -> None:
    part = b'{"functionCall": {"name": "f", "args": {"a": 1.50, "b": [1E5, 12345678901234567890123]}}}'
    body = b'{"contents": [{"role": "model", "parts": [%b]}]}' % part
    (called,) = read_request(body, PATH).messages[0].parts
    assert isinstance(called, ToolCall)
    assert called.arguments == '{"a":1.50,"b":[1E5,12345678901234567890123]}'


def test_null_members_are_ignored() -> None:
    body = asking(
        {"text": None, "functionCall": None, "inlineData": None}, {"text": "x", "function_call": None}
    )
    assert read(body).messages[0].parts == (Text("x"),)


# ── reading: which response answers which call ──


def conversation(*turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Contents with calls (`{"call": name, "id": …}`) and results (`{"answer": name, "id": …}`)."""
    contents: list[Any] = []
    for turn in turns:
        parts: list[Any] = []
        for item in turn:
            kind = "functionCall" if "call" in item else "functionResponse"
            inner = {"name": item.get("call") or item.get("answer")}
            if kind == "functionResponse":
                inner["response"] = {"output": "x"}
            parts.append({kind: inner | ({"id": item["id"]} if "id" in item else {})})
        role = "model" if "call" in turn[0] else "user"
        contents.append({"role": role, "parts": parts})
    return {"contents": contents}


def answered(request: Request) -> list[str]:
    return [p.call_id for m in request.messages for p in m.parts if isinstance(p, ToolResult)]


@pytest.mark.parametrize(
    ("turns", "pairs"),
    [
        # without ids: by name, then in order
        (
            [
                [{"call": "a"}, {"call": "b"}, {"call": "a"}],
                [{"answer": "b"}, {"answer": "a"}, {"answer": "a"}],
            ],
            ["call_1_b", "call_0_a", "call_2_a"],
        ),
        # parallel calls and their answers split over contents
        (
            [[{"call": "a"}], [{"call": "b"}], [{"answer": "a"}], [{"answer": "b"}]],
            ["call_0_a", "call_1_b"],
        ),
        # ids on the calls only, on the answers only, the same id on every turn
        ([[{"call": "a", "id": "x"}], [{"answer": "a"}]], ["x"]),
        ([[{"call": "a"}], [{"answer": "a", "id": "made-up"}]], ["call_0_a"]),
        (
            [
                [{"call": "a", "id": "0"}],
                [{"answer": "a", "id": "0"}],
                [{"call": "b", "id": "0"}],
                [{"answer": "b", "id": "0"}],
            ],
            ["0", "0"],
        ),
        # an earlier call that was never answered does not take a later one's answer
        (
            [[{"call": "a"}], [{"answer": "a"}], [{"call": "a"}], [{"answer": "a"}]],
            ["call_0_a", "call_1_a"],
        ),
        # the same call answered twice
        (
            [
                [{"call": "a", "id": "x"}],
                [{"answer": "a", "id": "x"}],
                [{"answer": "a", "id": "x"}],
            ],
            ["x", "x"],
        ),
        # a client's own id that looks like ours
        (
            [[{"call": "a"}, {"call": "b", "id": "call_0_a"}], [{"answer": "a"}, {"answer": "b"}]],
            ["call_1_a", "call_0_a"],
        ),
    ],
)
def test_results_find_their_calls(turns: list[Any], pairs: list[str]) -> None:
    assert answered(read(conversation(*turns))) == pairs


def test_generated_ids_are_legal_and_stable_as_the_conversation_grows() -> None:
    name = "mcp.server:" + "x" * 60
    first = read(conversation([{"call": name}], [{"answer": name}]))
    more = read(conversation([{"call": name}], [{"answer": name}], [{"call": name}]))
    assert first.messages == more.messages[:2]
    (id,) = answered(first)
    assert call_ids.WORDS.legal(id)
    assert len(id) <= 40


def test_a_result_whose_call_is_in_cached_content() -> None:
    body = conversation([{"answer": "a", "id": "x"}, {"answer": "a"}]) | {"cachedContent": "c/1"}
    request = read(body)
    assert answered(request) == ["x", "call_1_a"]
    assert request.extras == {"cachedContent": "c/1"}


def test_escaped_ids_are_restored_for_the_upstream() -> None:
    shown = call_ids.for_client("functions.Bash:0", call_ids.WORDS)
    request = read(conversation([{"call": "a", "id": shown}], [{"answer": "a", "id": shown}]))
    assert answered(request) == ["functions.Bash:0"]


def test_a_wrapped_seal_is_unwrapped_and_the_bypass_is_no_seal() -> None:
    foreign = Seal("anthropic", "sig", issuer="claude")
    slot = sealed_reasoning.to_slot(foreign, "gemini")
    body = {
        "contents": [
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "a"}, "thoughtSignature": slot},
                    {"functionCall": {"name": "b"}, "thoughtSignature": BYPASS},
                ],
            }
        ]
    }
    first, second = read(body).messages[0].parts
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert (first.seal, second.seal) == (foreign, None)


# ── reading: tools, choice, settings ──


def test_tools_of_all_kinds_keep_their_order() -> None:
    declaration = {
        "name": "f",
        "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}},
        "behavior": "BLOCKING",
    }
    body = asking(tools=[{"functionDeclarations": [declaration]}, {"codeExecution": {}}, {"new": {}}])
    function, code, new = read(body).tools
    assert function.schema == {"type": "object", "properties": {"n": {"type": "integer"}}}
    assert function.extras == {"behavior": "BLOCKING"}
    assert (code.hosted, new.hosted) == ("code_execution", "new")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "STRING", "format": "enum", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "INTEGER", "enum": ["1", "2"]}, {"type": "integer", "enum": [1, 2]}),
        (
            {"type": "STRING", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"anyOf": [{"type": "STRING"}], "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"type": "TYPE_UNSPECIFIED", "nullable": False}, {}),
        ({"type": ["STRING", "NULL"], "enum": ["1"]}, {"type": ["string", "null"], "enum": ["1"]}),
        ({"type": "INTEGER", "enum": ["one", 2]}, {"type": "integer", "enum": ["one", 2]}),
        ({"nullable": True}, {}),
        (
            {"defs": {"P": {"type": "OBJECT"}}, "items": {"ref": "#/defs/P"}},
            {"$defs": {"P": {"type": "object"}}, "items": {"$ref": "#/$defs/P"}},
        ),
        ({"type": "STRING", "example": "x"}, {"type": "string", "examples": ["x"]}),
        ({"any_of": [{"min_length": "3"}]}, {"anyOf": [{"minLength": 3}]}),
        # the names of members are the client's own
        (
            {"properties": {"type": {"type": "STRING"}, "any_of": {"type": "ARRAY"}}},
            {"properties": {"type": {"type": "string"}, "any_of": {"type": "array"}}},
        ),
    ],
)
def test_gemini_schemas_become_json_schema(schema: Any, expected: Any) -> None:
    assert json_schema(schema) == expected


@pytest.mark.parametrize("key", ["parameters", "parametersJsonSchema", "parameters_json_schema"])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "minLength": 1}}},
        {"type": "object", "properties": {"nullable": {"type": "integer", "enum": [1]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["1"]}}},
        {"type": "object", "properties": {"a": {"type": "integer", "enum": ["1"]}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "STRING"}], "nullable": True}}},
        {"type": "object", "properties": {"a": {"items": {"min_items": "1"}}}},
        {"type": "object", "properties": {"a": {"minItems": "1"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/defs/b"}}, "defs": {"b": {"format": "enum"}}},
        {"type": "object", "properties": {"a": {"type": None, "example": 1}}},
    ],
)
def test_a_declaration_has_its_schema_as_json_schema(key: str, schema: Any) -> None:
    (tool,) = read(asking(tools=[{"functionDeclarations": [{"name": "f", key: schema}]}])).tools
    assert tool.schema == json_schema(schema)


JSON_SCHEMAS = st.deferred(
    lambda: st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "object", "array"])},
        optional={
            "properties": st.dictionaries(st.text(max_size=8), JSON_SCHEMAS, max_size=3),
            "items": JSON_SCHEMAS,
            "anyOf": st.lists(JSON_SCHEMAS, max_size=2),
            "description": st.text(max_size=8),
            "const": st.integers() | st.text(max_size=4),
            "minItems": st.integers(0, 9),
        },
    )
)


@given(JSON_SCHEMAS)
def test_plain_json_schema_is_unchanged(schema: Any) -> None:
    assert json_schema(schema) == schema


@pytest.mark.parametrize(
    ("calling", "expected"),
    [
        ({"mode": "AUTO"}, ToolChoice("auto")),
        ({"mode": "auto"}, ToolChoice("auto")),
        ({"mode": "NONE"}, ToolChoice("none")),
        ({"mode": "ANY"}, ToolChoice("required")),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ToolChoice("named", "f")),
        (
            {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
            ToolChoice("required", allowed=("f", "g")),
        ),
        (
            {"mode": "VALIDATED", "allowedFunctionNames": ["g"]},
            ToolChoice("auto", allowed=("g",)),
        ),
        ({"mode": "MODE_UNSPECIFIED"}, None),
        ({}, None),
    ],
)
def test_tool_choice(calling: Any, expected: ToolChoice | None) -> None:
    tools = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]
    body = asking(tools=tools, toolConfig={"functionCallingConfig": calling})
    assert read(body).settings.tool_choice == expected


def test_all_of_the_settings() -> None:
    config = {
        "temperature": 0.0,
        "topP": 1,
        "topK": 40.0,
        "candidateCount": 2,
        "maxOutputTokens": 100,
        "stopSequences": ["a", "b"],
        "responseLogprobs": True,
        "logprobs": 3,
        "presencePenalty": 0.5,
        "frequencyPenalty": -0.5,
        "seed": 7,
        "responseModalities": ["TEXT", "AUDIO"],
        "speechConfig": {"x": 1},
    }
    body = asking(
        generationConfig=config,
        serviceTier="flex",
        labels={"a": "b"},
        store=False,
        safetySettings=[{"category": "c"}],
        toolConfig={
            "functionCallingConfig": {"mode": "VALIDATED"},
            "includeServerSideToolInvocations": True,
        },
    )
    request = read(body)
    assert request.settings == Settings(
        temperature=0.0,
        top_p=1,
        top_k=40,
        n=2,
        max_tokens=100,
        stop=("a", "b"),
        logprobs=3,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        seed=7,
        audio_out=True,
        service_tier="flex",
        metadata={"a": "b"},
        store=False,
        tool_choice=ToolChoice("auto"),
    )
    assert request.extras == {
        "safetySettings": [{"category": "c"}],
        "generationConfig": {"responseModalities": ["TEXT", "AUDIO"], "speechConfig": {"x": 1}},
        "toolConfig": {
            "functionCallingConfig": {"mode": "VALIDATED"},
            "includeServerSideToolInvocations": True,
        },
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"thinkingBudget": 0}, Reasoning(enabled=False)),
        ({"thinkingBudget": -1}, Reasoning(True, adaptive=True)),
        ({"thinkingBudget": 5}, Reasoning(True, budget=5)),
        ({"thinkingLevel": "minimal"}, Reasoning(True, "minimal")),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, None),
        ({"includeThoughts": True}, Reasoning(show=True)),
        ({}, None),
    ],
)
def test_thinking_config(config: Any, expected: Reasoning | None) -> None:
    body = asking(generationConfig={"thinkingConfig": config})
    assert read(body).settings.reasoning == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"responseMimeType": "application/json"}, Format("json")),
        ({"responseMimeType": "text/plain"}, None),
        ({"responseMimeType": "text/x.enum", "responseSchema": {"enum": ["a"]}}, None),
        (
            {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}},
            Format("schema", {"type": "object"}),
        ),
        (
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "OBJECT"}},
            Format("schema", {"type": "object"}),
        ),
        (
            {"responseFormat": [{"text": {"mimeType": "application/json", "schema": {"a": 1}}}]},
            Format("schema", {"a": 1}),
        ),
        ({}, None),
    ],
)
def test_structured_output(config: Any, expected: Format | None) -> None:
    assert read(asking(generationConfig=config)).settings.format == expected


# ── reading: refusals with their place ──

F = [{"functionDeclarations": [{"name": "f"}]}]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "contents"),
        ({"contents": []}, "contents"),
        ({"contents": "hi"}, "contents"),
        ({"contents": ["hi"]}, "contents[0]"),
        ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, "contents[0].role"),
        ({"contents": [{"role": 1}]}, "contents[0].role"),
        ({"contents": [{"parts": ["x"]}]}, "contents[0].parts[0]"),
        (asking({"text": 1}), "contents[0].parts[0].text"),
        (asking({"functionCall": {"name": "f"}}), "contents[0].role"),
        (
            asking({"functionResponse": {"name": "f", "id": "x"}}),
            "contents[0].parts[0].functionResponse.id",
        ),
        (
            asking({"text": "a"}, {"function_response": {"name": "f"}}),
            "contents[0].parts[1].function_response.name",
        ),
        (asking({"inlineData": {"data": "QQ=="}}), "contents[0].parts[0].inlineData.mimeType"),
        (
            asking({"inline_data": {"mime_type": "image/png"}}),
            "contents[0].parts[0].inline_data.data",
        ),
        (asking({"fileData": {}}), "contents[0].parts[0].fileData.fileUri"),
        (asking({"text": "x", "thoughtSignature": 1}), "contents[0].parts[0].thoughtSignature"),
        (conversation([{"call": ""}]), "contents[0].parts[0].functionCall.name"),
        (
            {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": "{}"}}]}]},
            "contents[0].parts[0].functionCall.args",
        ),
        (
            {"contents": [{"role": "model", "parts": [{"functionResponse": {"name": "f"}}]}]},
            "contents[0].role",
        ),
        (
            conversation([{"call": "f"}], [{"answer": "f"}, {"answer": "f"}]),
            "contents[1].parts[1].functionResponse.name",
        ),
        (asking(systemInstruction=1), "systemInstruction"),
        (asking(system_instruction={"parts": [{"text": 1}]}), "system_instruction.parts[0].text"),
        (asking(tools=1), "tools"),
        (asking(tools=[{"functionDeclarations": [{}]}]), "tools[0].functionDeclarations[0].name"),
        (
            asking(tools={"function_declarations": [{"name": "f", "parameters": []}]}),
            "tools.function_declarations[0].parameters",
        ),
        (
            asking(tools=F, toolConfig={"functionCallingConfig": {"mode": "SOME"}}),
            "toolConfig.functionCallingConfig.mode",
        ),
        (
            asking(
                tools=F,
                toolConfig={"functionCallingConfig": {"allowedFunctionNames": ["f", "g"]}},
            ),
            "toolConfig.functionCallingConfig.allowedFunctionNames[1]",
        ),
        (asking(generationConfig=[]), "generationConfig"),
        (asking(generationConfig={"temperature": "hot"}), "generationConfig.temperature"),
        (asking(generation_config={"top_k": 1.5}), "generation_config.top_k"),
        (asking(generationConfig={"maxOutputTokens": True}), "generationConfig.maxOutputTokens"),
        (asking(generationConfig={"stopSequences": [1]}), "generationConfig.stopSequences"),
        (
            asking(generationConfig={"thinkingConfig": {"thinking_level": "HUGE"}}),
            "generationConfig.thinkingConfig.thinking_level",
        ),
    ],
)
def test_a_bad_request_is_refused_with_its_place(body: Any, path: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read(body)
    assert refused.value.path == path


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_request(body, PATH)


# ── identity on the same wire (law 5) ──

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(st.text(min_size=1).map(lambda key: f"x-{key}"), JSON, max_size=2)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)
PARTS = st.one_of(
    st.builds(lambda t, u: {"text": t, **u}, st.text(), UNKNOWN),
    st.builds(lambda d: {"inlineData": {"mimeType": "image/png", "data": d}}, st.just("QQ==")),
    st.builds(lambda v: {"codeExecutionResult": v}, OBJECTS),
    st.builds(lambda t: {"text": t, "thought": True, "thought_signature": "U0lH"}, st.text()),
)
BODIES = st.builds(
    lambda said, args, response, schema, config, unknown: {
        "contents": [
            {"role": "user", "parts": said},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": args}}]},
            {"parts": [{"functionResponse": {"response": response, "name": "f"}}]},
        ],
        "tools": {"functionDeclarations": [{"parameters": schema, "name": "f"}]},
        "generationConfig": config,
        **unknown,
    },
    st.lists(PARTS, min_size=1, max_size=3),
    OBJECTS,
    OBJECTS,
    JSON_SCHEMAS,
    UNKNOWN,
    UNKNOWN,
)


@given(BODIES)
def test_a_body_for_its_own_protocol_is_unchanged(body: Any) -> None:
    request = read(body)
    sent = write_request(request, target("gemini-2.5-flash")).body
    assert json.dumps(sent) == json.dumps(body)


def test_identity_of_a_clients_body_and_its_address() -> None:
    before = copy.deepcopy(GEMINI_CLI)
    request = read(GEMINI_CLI, "/v1beta/models/x:streamGenerateContent?alt=sse")
    outgoing = write(request, target("gemini-3-flash"))
    assert json.dumps(outgoing.body) == json.dumps(before)
    assert outgoing.path == "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"
    assert outgoing.notices == ()
    called = outgoing.names.called("shell")
    assert called is not None
    assert called.tool.name == "shell"


def test_a_model_named_in_the_body_is_replaced() -> None:
    request = read(asking(model="models/a"))
    assert write_request(request, target("b")).body["model"] == "models/b"
    assert request.raw is not None
    assert request.raw.value["model"] == "models/a"


def test_values_that_dragoman_wrapped_do_not_reach_the_upstream() -> None:
    foreign = sealed_reasoning.to_slot(Seal("anthropic", "sig"), "gemini")
    own = sealed_reasoning.to_slot(Seal("gemini", "U0lH", issuer="g"), "gemini", call="x")
    escaped = call_ids.for_client("functions.Bash:0", call_ids.WORDS)
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [{"text": "hm", "thought": True, "thoughtSignature": foreign}],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "I look", "thoughtSignature": foreign, "x": 1},
                    {"text": "", "thoughtSignature": foreign},
                    {"functionCall": {"name": "a", "id": escaped, "args": {"k": 1}}},
                    {"functionCall": {"name": "b", "id": "i"}, "thoughtSignature": own},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "a", "id": escaped, "response": {"z": 1}}},
                    {"functionResponse": {"name": "b", "id": "i", "response": {}}},
                ],
            },
        ]
    }
    before = copy.deepcopy(body)
    request = read(body)
    for sent in (request, request.changed(model="other")):
        outgoing = write_request(sent, target("gemini-3-pro", issuer="g"))
        assert outgoing.body["contents"] == [
            {"role": "user", "parts": [{"text": "go"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look", "x": 1},
                    {
                        "functionCall": {"name": "a", "id": "functions.Bash:0", "args": {"k": 1}},
                        "thoughtSignature": BYPASS,
                    },
                    {"functionCall": {"name": "b", "id": "i"}, "thoughtSignature": "U0lH"},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "a",
                            "id": "functions.Bash:0",
                            "response": {"z": 1},
                        }
                    },
                    {"functionResponse": {"name": "b", "id": "i", "response": {}}},
                ],
            },
        ]
    assert body == before


def test_one_content_in_place_of_the_list_is_cleaned_too() -> None:
    escaped = call_ids.for_client("functions.Bash:0", call_ids.WORDS)
    call = {"functionCall": {"name": "a", "id": escaped}}
    request = read({"contents": {"role": "model", "parts": call}})
    (content,) = write_request(request, target("gemini-2.5-pro")).body["contents"]
    assert content["parts"] == [{"functionCall": {"name": "a", "id": "functions.Bash:0"}}]


def test_a_changed_request_keeps_gemini_only_members() -> None:
    long = "f" * 100
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "hi", "x": 1}]},
            {"role": "model", "parts": [{"functionCall": {"name": long, "args": {}}}]},
        ],
        "systemInstruction": {"role": "user", "parts": [{"text": "S"}]},
        "tools": [{"functionDeclarations": [{"name": long, "behavior": "BLOCKING"}]}, {"new": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}, "retrievalConfig": {}},
        "generationConfig": {"temperature": 0.5, "candidateCount": 2, "speechConfig": {"a": 1}},
        "serviceTier": "flex",
        "labels": {"a": "b"},
        "store": True,
        "safetySettings": [],
    }
    request = read(body)
    added = (*request.messages, Message("user", (result("call_0_" + "f" * 24, "done"),)))
    sent = write_request(request.changed(messages=added), target("gemini-2.5-pro"))
    response = {
        "id": "call_0_" + "f" * 24,
        "name": long,
        "response": {"output": "done"},
    }
    answer = {"role": "user", "parts": [{"functionResponse": response}]}
    assert sent.body == body | {"contents": [*body["contents"], answer]}
    assert sent.notices == ()


# ── unknown members (law 5) ──

ESCAPED = call_ids.for_client("functions.Bash:0", call_ids.WORDS)
# The id of the call, the signature of its part, and what an upstream gets for both.
WRAPPED = {
    "nothing": ("id-1", "U0lH", "id-1", "U0lH"),
    "an escaped id": (ESCAPED, "U0lH", "functions.Bash:0", "U0lH"),
    "an escaped id and no signature": (ESCAPED, None, "functions.Bash:0", None),
    "a seal of this issuer": (
        "id-1",
        sealed_reasoning.to_slot(Seal("gemini", "U0lH", issuer="g"), "", call="x"),
        "id-1",
        "U0lH",
    ),
    "a seal of another issuer": (
        ESCAPED,
        sealed_reasoning.to_slot(Seal("gemini", "U0lH", issuer="other"), "", call="x"),
        "functions.Bash:0",
        None,
    ),
    "a seal of another protocol": (
        "id-1",
        sealed_reasoning.to_slot(Seal("anthropic", "sig"), "gemini"),
        "id-1",
        None,
    ),
}


def full_body(id: str, signature: str | None) -> dict[str, Any]:
    """A body with every kind of object. The signature is on a call, on text and on a thought."""
    signed = {} if signature is None else {"thoughtSignature": signature}
    picture = {"inlineData": {"mimeType": "image/png", "data": "QQ=="}, "videoMetadata": {"fps": 1}}
    file = {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}}
    call = {"functionCall": {"name": "f", "id": id, "args": {"a": 1.5}}, **signed}
    response = {"name": "f", "id": id, "response": {"z": {"y": 1}}, "parts": [picture]}
    model_parts = [
        {"text": "look", "mediaResolution": {"level": "LOW"}, **signed},
        call,
        {"functionCall": {"name": "f", "id": "plain"}},
        {"executableCode": {"code": "1", "language": "PYTHON"}},
        {"partMetadata": {"a": 1}},
        {"text": ""},
        {"text": "loose", "thought": True},
    ]
    answer = {"functionResponse": {"name": "f", "id": "plain", "response": {"output": "x"}}}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "go"}, picture, file]},
            {"role": "model", "parts": model_parts},
            {"role": "function", "parts": [{"functionResponse": response}, answer]},
            {"parts": [{"text": "and now?"}]},
        ],
        "systemInstruction": {"role": "user", "parts": [{"text": "S"}, picture]},
        "tools": [
            {"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}], "googleSearch": {}},
            {"functionDeclarations": []},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}, "retrievalConfig": {"a": 1}},
        "generationConfig": {"temperature": 0.5, "thinkingConfig": {"includeThoughts": True}},
        "safetySettings": [{"category": "c"}],
        "labels": {"a": "b"},
    }


def with_unknown(value: Any, number: list[int]) -> Any:
    """`value` with an unknown member in every object, each with a value of its own."""
    if isinstance(value, list):
        return [with_unknown(item, number) for item in value]
    if not isinstance(value, dict):
        return value
    number[0] += 1
    at = number[0]
    return {key: with_unknown(inner, number) for key, inner in value.items()} | {"xNew": {"at": at}}


def snake_case(value: Any) -> Any:
    if isinstance(value, list):
        return [snake_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("[A-Z]", lambda c: "_" + c[0].lower(), key): snake_case(inner) for key, inner in value.items()
    }


@pytest.mark.parametrize("spelled", [lambda body: body, snake_case], ids=["camelCase", "snake_case"])
@pytest.mark.parametrize("wrapped", WRAPPED)
def test_unknown_members_at_every_object_survive(wrapped: str, spelled: Any) -> None:
    id, signature, own_id, own_signature = WRAPPED[wrapped]
    body, expected = (
        spelled(with_unknown(full_body(*values), [0]))
        for values in ((id, signature), (own_id, own_signature))
    )
    before = copy.deepcopy(body)
    outgoing = write_request(read(body), target("gemini-2.5-pro", issuer="g"))
    assert outgoing.body == expected
    assert outgoing.notices == ()
    assert body == before


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_unknown_members_of_contents_survive_a_change_elsewhere(wrapped: str) -> None:
    id, signature, own_id, own_signature = WRAPPED[wrapped]
    body = with_unknown(full_body(id, signature), [0])
    expected = with_unknown(full_body(own_id, own_signature), [0])["contents"]
    request = read(body)
    changed = request.changed(messages=(*request.messages, user(Text("more"))))
    outgoing = write_request(changed, target("gemini-2.5-pro", issuer="g"))
    assert outgoing.body["contents"] == [*expected, {"role": "user", "parts": [{"text": "more"}]}]


def test_a_thought_of_another_issuer_goes_with_all_its_members() -> None:
    foreign = sealed_reasoning.to_slot(Seal("anthropic", "sig"), "gemini")
    parts = [
        {"text": "hm", "thought": True, "thoughtSignature": foreign, "x": 1},
        {"text": "", "thoughtSignature": foreign, "x": 2},
        {"text": "so", "x": 3},
    ]
    outgoing = write_request(read(asking(*parts)), target("gemini-2.5-pro"))
    assert outgoing.body["contents"] == [{"role": "user", "parts": [{"text": "so", "x": 3}]}]


@pytest.mark.parametrize("spelled", [lambda body: body, snake_case], ids=["camelCase", "snake_case"])
def test_a_call_with_another_id_keeps_its_unknown_members(spelled: Any) -> None:
    """The store puts back an id that was too long for the client."""
    hashed = call_ids.for_client("x" * 99, call_ids.WORDS)
    long = "x" * 99
    request = read(spelled(with_unknown(full_body(hashed, "U0lH"), [0])))

    def renamed(part: Part) -> Part:
        match part:
            case ToolCall(id=id) if id == hashed:
                return msgspec.structs.replace(part, id=long, raw=None)
            case ToolResult(call_id=id) if id == hashed:
                return msgspec.structs.replace(part, call_id=long, parts=(Text("new"),), raw=None)
            case _:
                return part

    messages = [msgspec.structs.replace(m, parts=tuple(map(renamed, m.parts))) for m in request.messages]
    outgoing = write_request(request.changed(messages=tuple(messages)), target("gemini-2.5-pro"))
    expected = spelled(with_unknown(full_body(long, "U0lH"), [0])["contents"])
    expected[1]["parts"][1] = dict(expected[1]["parts"][1])
    (name,) = spelled({"functionResponse": 0})
    old = expected[2]["parts"][0][name]
    del old["parts"]
    old["response"] = {"output": "new"}
    assert outgoing.body["contents"] == expected


def test_numbers_and_text_keep_their_spelling_beside_an_escaped_id() -> None:
    part = b'{"functionCall":{"id":"%b","name":"f","args":{"a": 1.50, "b": [1E5, 12345678901234567890123]}}}'
    body = b'{"contents":[{"role":"model","parts":[%b,{"x": 1.0,"text":"\\u00e9"}]}]}' % (
        part % ESCAPED.encode()
    )
    sent = write_request(read_request(body, PATH), target("gemini-2.5-pro")).encoded()
    assert b'"args":{"a": 1.50, "b": [1E5, 12345678901234567890123]}' in sent
    assert b'"x":1.0' in sent
    assert sent == write_request(read_request(body, PATH), target("gemini-2.5-pro")).encoded()


@pytest.mark.parametrize("indent", [None, 1])
def test_the_prompt_keeps_its_bytes_when_a_later_content_is_unwrapped(indent: int | None) -> None:
    foreign = sealed_reasoning.to_slot(Seal("anthropic", "sig"), "gemini")
    turns: list[Any] = [{"role": "user", "parts": [{"text": "go"}]}]
    for number in range(6):
        id = ESCAPED if number % 3 == 2 else f"c{number}"
        call = {"functionCall": {"name": "f", "id": id, "args": {"n": number}}, "x": number}
        if number == 4:
            call["thoughtSignature"] = foreign
        turns += [
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "id": id, "response": {}}}]},
        ]
    before = b""
    for end in range(1, len(turns) + 1, 2):
        body = json.dumps({"contents": turns[:end]}, indent=indent).encode()
        members = write_request(read_request(body, PATH), target()).encoded()
        contents = bytes(msgspec.json.decode(members, type=dict[str, msgspec.Raw])["contents"])
        assert json.loads(contents)
        assert contents.startswith(before)
        before = contents.removesuffix(b"]").rstrip()


@pytest.mark.parametrize(
    "member",
    [
        {"tools": []},
        {"tools": None},
        {"tools": [{"functionDeclarations": []}]},
        {"systemInstruction": ""},
        {"system_instruction": {"parts": [], "x": 1}},
        {"systemInstruction": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "QQ=="}}]}},
        {"contents": {"parts": {"text": "hi", "x": 1}}},
        {"contents": [{"role": "user", "parts": []}, {"role": "user"}, {"parts": [{"text": "x"}, {}]}]},
    ],
)
def test_odd_members_of_a_clients_own_body_stay(member: Any) -> None:
    body = asking() | member
    outgoing = write_request(read(body), target())
    assert outgoing.body == body
    assert outgoing.notices == ()


def test_a_removed_tool_is_not_sent() -> None:
    request = read(asking(tools=[{"googleSearch": {}}, {"functionDeclarations": [{"name": "f", "x": 1}]}]))
    for left, expected in (
        (request.tools[1:], [{"functionDeclarations": [{"name": "f", "x": 1}]}]),
        ((), None),
    ):
        # With and without the client's own body.
        for sent in (request.changed(tools=left), msgspec.structs.replace(request, tools=left)):
            assert write_request(sent, target()).body.get("tools") == expected


def test_a_request_that_keeps_its_body_is_written_from_its_messages_and_tools() -> None:
    request = read(GEMINI_CLI)
    changed = msgspec.structs.replace(
        request, messages=(*request.messages, user(Text("more"))), tools=(*request.tools, Tool(name="new"))
    )
    outgoing = write_request(changed, target())
    functions = GEMINI_CLI["tools"][0]["functionDeclarations"]
    (group,) = outgoing.body["tools"]
    assert group["functionDeclarations"][:-1] == functions
    assert group["functionDeclarations"][-1]["name"] == "new"
    more = {"role": "user", "parts": [{"text": "more"}]}
    assert outgoing.body["contents"] == [*GEMINI_CLI["contents"], more]
    assert {**outgoing.body, "contents": 0, "tools": 0} == {**GEMINI_CLI, "contents": 0, "tools": 0}


# ── writing: the conversation ──


def contents(*messages: Message, to: Target | None = None) -> list[Any]:
    return write(neutral(*messages), to).body["contents"]


def test_a_conversation_with_tools() -> None:
    old = target("gemini-2.5-pro")
    assert contents(
        user(Text("go")),
        model(Text("I look"), call("1", arguments='{"command":"ls"}'), call("2", "read")),
        user(result("2", "two")),
        user(result("1", "one", is_error=True), Text("and now?")),
        model(Text("done")),
        user(Text("thanks")),
        to=old,
    ) == [
        {"role": "user", "parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I look"},
                {"functionCall": {"id": "1", "name": "shell", "args": {"command": "ls"}}},
                {"functionCall": {"id": "2", "name": "read", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "1", "name": "shell", "response": {"error": "one"}}},
                {"functionResponse": {"id": "2", "name": "read", "response": {"output": "two"}}},
                {"text": "and now?"},
            ],
        },
        {"role": "model", "parts": [{"text": "done"}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]


def test_names_in_the_history_are_legal_without_any_tool() -> None:
    sent = contents(user(Text("go")), model(call("1", "a b")), user(result("1")))
    name = sent[1]["parts"][0]["functionCall"]["name"]
    assert name == sent[2]["parts"][0]["functionResponse"]["name"]
    assert re.fullmatch(NAMES.pattern, name)


def test_a_call_without_a_result_gets_a_placeholder_result() -> None:
    outgoing = write(neutral(user(Text("go")), model(call("1")), user(Text("well?"))))
    parts = outgoing.body["contents"][2]["parts"]
    assert "error" in parts[0]["functionResponse"]["response"]
    assert parts[1] == {"text": "well?"}
    assert rules(outgoing) == {"missing-tool-result"}


def signatures(*messages: Message, to: Target) -> list[str | None]:
    """The signature of each functionCall part."""
    return [
        part.get("thoughtSignature")
        for content in contents(*messages, to=to)
        for part in content["parts"]
        if "functionCall" in part
    ]


def own(data: str, issuer: str = "") -> Seal:
    return Seal("gemini", data, issuer=issuer)


@pytest.mark.parametrize(
    ("model_name", "parts", "expected"),
    [
        ("gemini-3-pro", [call("1", seal=own("QQ=="))], ["QQ=="]),
        ("gemini-3-pro", [call("1")], [BYPASS]),
        ("models/gemini-3.1-flash", [call("1")], [BYPASS]),
        ("gemini-flash-latest", [call("1")], [BYPASS]),
        ("gemini-2.5-pro", [call("1")], [None]),
        ("claude-on-vertex", [call("1")], [None]),
        # parallel siblings get none made up, and keep their own
        ("gemini-3-pro", [call("1"), call("2")], [BYPASS, None]),
        ("gemini-3-pro", [call("1"), call("2", seal=own("QQ=="))], [BYPASS, "QQ=="]),
        # another issuer's, another protocol's
        ("gemini-3-pro", [call("1", seal=own("QQ==", "other"))], [BYPASS]),
        ("gemini-3-pro", [call("1", seal=own("QQ==", "g"))], ["QQ=="]),
        ("gemini-2.5-pro", [call("1", seal=Seal("anthropic", "x"))], [None]),
        # a late one, after the calls or on an empty text
        ("gemini-3-pro", [call("1"), Thinking("", own("QQ=="))], ["QQ=="]),
        (
            "gemini-3-pro",
            [call("1"), call("2"), Text(""), Thinking("", own("QQ=="))],
            ["QQ==", None],
        ),
    ],
)
def test_signatures_of_calls(model_name: str, parts: list[Part], expected: list[str | None]) -> None:
    results = [result(p.id) for p in parts if isinstance(p, ToolCall)]
    messages = (user(Text("go")), model(*parts), user(*results))
    assert signatures(*messages, to=target(model_name, issuer="g")) == expected


def test_each_step_is_signed_and_stays_so() -> None:
    steps = (
        user(Text("go")),
        model(call("1")),
        user(result("1")),
        model(call("2")),
        user(result("2")),
    )
    assert signatures(*steps, to=target()) == [BYPASS, BYPASS]
    before = contents(*steps)
    after = contents(*steps, model(Text("done")), user(Text("more")))
    assert after[: len(before)] == before


def test_reasoning_goes_back_to_its_issuer_only() -> None:
    parts = (
        Thinking("mine", own("QQ==")),
        Thinking("foreign", Seal("anthropic", "x")),
        Thinking("", Seal("anthropic", "x", redacted=True)),
        Thinking("unsigned"),
        Text("so"),
        Thinking("", own("Qg==")),
        Thinking("", own("Qw==")),
    )
    sent = contents(user(Text("go")), model(*parts), user(Text("on")))[1]["parts"]
    assert sent == [
        {"text": "mine", "thought": True, "thoughtSignature": "QQ=="},
        {"text": "so", "thoughtSignature": "Qg=="},
        {"text": "", "thoughtSignature": "Qw=="},
    ]


def test_system_prompts() -> None:
    outgoing = write(
        neutral(
            Message("system", (Text("a"), Text("b", cache=Cache()))),
            Message("developer", (Text("c"),)),
            user(Text("hi")),
            model(call("1")),
            Message("system", (Text("now be brief"),)),
            user(result("1")),
        )
    )
    assert outgoing.body["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}
    first, second = outgoing.body["contents"][2]["parts"]
    assert "functionResponse" in first
    assert second == {"text": "<system>\nnow be brief\n</system>"}
    assert [(n.rule, n.path) for n in outgoing.notices] == [("system-moved", "messages[4]")]


def test_system_prompts_alone_get_a_user_message() -> None:
    outgoing = write(neutral(Message("system", (Text("a"),)), Message("system", (Text("b"),))))
    assert outgoing.body["systemInstruction"] == {"parts": [{"text": "a"}]}
    assert outgoing.body["contents"][0]["parts"] == [{"text": "<system>\nb\n</system>"}]


@pytest.mark.parametrize(
    ("part", "written", "expected_rules"),
    [
        (Text("x", citations=(Citation(url="u"),)), {"text": "x"}, {"citations-dropped"}),
        (Refusal("no"), {"text": "no"}, set[str]()),
        (
            Media(kind="image", media_type="image/png", data="QQ==", detail="high"),
            {"inlineData": {"mimeType": "image/png", "data": "QQ=="}},
            set[str](),
        ),
        (
            Media(kind="image", url="https://a.example/b.webp?x=1"),
            {"fileData": {"mimeType": "image/webp", "fileUri": "https://a.example/b.webp?x=1"}},
            set[str](),
        ),
        (
            Media(kind="document", media_type="application/pdf", data="QQ==", name="a.pdf"),
            {"inlineData": {"mimeType": "application/pdf", "data": "QQ=="}},
            {"document-details-dropped"},
        ),
        (
            Media(kind="document", text="A"),
            {"inlineData": {"mimeType": "text/plain", "data": "QQ=="}},
            set[str](),
        ),
        (
            Media(kind="audio", media_type="audio/wav", data="QQ=="),
            {"inlineData": {"mimeType": "audio/wav", "data": "QQ=="}},
            set[str](),
        ),
        (
            Media(kind="image", file_id="f", raw=Raw("gemini", {"fileData": {"fileUri": "f"}})),
            {"fileData": {"fileUri": "f"}},
            set[str](),
        ),
        (
            Opaque(Raw("gemini", {"executableCode": {"code": "1"}})),
            {"executableCode": {"code": "1"}},
            set[str](),
        ),
        (Opaque(Raw("anthropic", {}), "compaction"), None, {"opaque-dropped"}),
        (Text(""), None, set[str]()),
    ],
)
def test_parts(part: Part, written: Any, expected_rules: set[str]) -> None:
    outgoing = write(neutral(user(Text("a"), part)))
    expected = [{"text": "a"}] + ([written] if written else [])
    assert outgoing.body["contents"][0]["parts"] == expected
    assert rules(outgoing) == expected_rules


def test_media_in_results() -> None:
    picture = Media(kind="image", media_type="image/png", data="QQ==")
    results = ToolResult(call_id="1", parts=(Text("a"), Text("b"), picture))
    sent = contents(user(Text("go")), model(call("1")), user(results))[2]["parts"]
    assert sent == [
        {
            "functionResponse": {
                "id": "1",
                "name": "shell",
                "response": {"output": "a\n\nb"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "QQ=="}}],
            }
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "kind", "args", "expected_rules"),
    [
        ('{"a": 1.0, "b": 123456789012345678901234567890}', "function", None, set[str]()),
        ("", "function", {}, set[str]()),
        ("null", "function", {}, set[str]()),
        ('{"a": ', "function", {"arguments": '{"a": '}, {"arguments-wrapped"}),
        ("[1]", "function", {"arguments": "[1]"}, {"arguments-wrapped"}),
        ("*** Begin Patch", "custom", {"input": "*** Begin Patch"}, set[str]()),
    ],
)
def test_arguments(arguments: str, kind: Any, args: Any, expected_rules: set[str]) -> None:
    messages = (
        user(Text("go")),
        model(call("1", arguments=arguments, kind=kind)),
        user(result("1")),
    )
    outgoing = write(neutral(*messages))
    sent = outgoing.body["contents"][1]["parts"][0]["functionCall"]["args"]
    assert sent == (json.loads(arguments) if args is None else args)
    assert rules(outgoing) == expected_rules


def test_a_conversation_that_ends_with_the_model() -> None:
    outgoing = write(neutral(user(Text("go")), Message("assistant", (Text("Sure"),), name="Ann")))
    assert outgoing.body["contents"][-1] == {"role": "model", "parts": [{"text": "Sure"}]}
    assert rules(outgoing) == {"prefill", "message-name-dropped"}


# ── writing: tools ──


def test_tools() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"n": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2}},
        "required": ["n"],
        "additionalProperties": False,
    }
    tools = (
        Tool(name="a", description="A", parameters=schema, cache=Cache()),
        Tool(name="now", namespace="clock", deferred=True, strict=True),
        Tool(name="patch", description="P", kind="custom", grammar="start: x", grammar_syntax="lark"),
        Tool(name="1 bad/name"),
        Tool(name="web_search", kind="hosted", hosted="web_search"),
        Tool(name="code", kind="hosted", hosted="code_execution"),
        Tool(name="image_generation", kind="hosted", hosted="image_generation"),
    )
    outgoing = write(neutral(tools=tools))
    functions, *hosted = outgoing.body["tools"]
    declared = functions["functionDeclarations"]
    assert declared[0] == {
        "name": "a",
        "description": "A",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": False,
        },
    }
    assert declared[1]["name"] == "clock__now"
    assert declared[1]["parametersJsonSchema"] == {"type": "object", "properties": {}}
    assert declared[2] == {
        "name": "patch",
        "description": "P\n\nThe input must follow this grammar (lark):\nstart: x",
        "parametersJsonSchema": {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        },
    }
    for declaration, tool in zip(declared, tools, strict=False):
        assert NAMES.max_length >= len(declaration["name"])
        called = outgoing.names.called(declaration["name"])
        assert called is not None
        assert called.tool is tool
    assert hosted == [{"googleSearch": {}}, {"codeExecution": {}}]
    assert outgoing.body["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert {(n.rule, n.path) for n in outgoing.notices} == {
        ("schema-keyword-dropped", "tools[0].parameters"),
        ("deferred-tools-flattened", "tools"),
        ("strict-dropped", "tools[1].strict"),
        ("custom-tool-emulated", "tools[2]"),
        ("hosted-tool-dropped", "tools[6]"),
    }
    (lost,) = [n.message for n in outgoing.notices if n.rule == "schema-keyword-dropped"]
    assert "exclusiveMinimum, multipleOf" in lost


def test_before_gemini_3_functions_and_hosted_tools_exclude_each_other() -> None:
    search = Tool(name="web_search", kind="hosted", hosted="web_search_20250305")
    outgoing = write(neutral(tools=(SHELL, search)), target("gemini-2.5-pro"))
    assert len(outgoing.body["tools"]) == 1
    assert rules(outgoing) == {"hosted-tool-dropped"}
    alone = write(neutral(tools=(search,)), target("gemini-2.5-pro"))
    assert alone.body["tools"] == [{"googleSearch": {}}]
    assert "toolConfig" not in alone.body


def test_tool_servers() -> None:
    server = ToolServer(name="m", url="https://m", token="t")
    tool = Tool(name="m", kind="hosted", hosted="mcp", server=server)
    assert write(neutral(tools=(tool,))).body["tools"] == [
        {
            "mcpServers": [
                {
                    "name": "m",
                    "streamableHttpTransport": {
                        "url": "https://m",
                        "headers": {"Authorization": "Bearer t"},
                    },
                }
            ]
        }
    ]


def test_names_are_the_same_in_tools_choice_and_history() -> None:
    tool = Tool(name="do it!", namespace="space")
    history = (
        user(Text("go")),
        model(call("1", "do it!", namespace="space")),
        user(result("1")),
    )
    choice = ToolChoice("named", "do it!", "space")
    outgoing = write(neutral(*history, tools=(tool,), settings=Settings(tool_choice=choice)))
    name = outgoing.body["tools"][0]["functionDeclarations"][0]["name"]
    calling = outgoing.body["toolConfig"]["functionCallingConfig"]
    assert calling == {"mode": "ANY", "allowedFunctionNames": [name]}
    _, called, answer = outgoing.body["contents"]
    assert called["parts"][0]["functionCall"]["name"] == name
    assert answer["parts"][0]["functionResponse"]["name"] == name


@pytest.mark.parametrize(
    ("choice", "calling", "expected_rules"),
    [
        (None, None, set[str]()),
        (ToolChoice("auto"), {"mode": "AUTO"}, set[str]()),
        (ToolChoice("none"), {"mode": "NONE"}, set[str]()),
        (ToolChoice("required"), {"mode": "ANY"}, set[str]()),
        (
            ToolChoice("named", "shell"),
            {"mode": "ANY", "allowedFunctionNames": ["shell"]},
            set[str](),
        ),
        (
            ToolChoice("required", allowed=("shell", "now")),
            {"mode": "ANY", "allowedFunctionNames": ["shell", "clock__now"]},
            set[str](),
        ),
        (
            ToolChoice("auto", allowed=("clock__now", "web_search")),
            {"mode": "VALIDATED", "allowedFunctionNames": ["clock__now"]},
            set[str](),
        ),
        (ToolChoice("auto", allowed=("web_search",)), {"mode": "NONE"}, set[str]()),
        (ToolChoice("named", "web_search"), None, {"forced-choice-downgraded"}),
    ],
)
def test_choices(choice: ToolChoice | None, calling: Any, expected_rules: set[str]) -> None:
    tools = (
        SHELL,
        Tool(name="now", namespace="clock"),
        Tool(name="web_search", kind="hosted", hosted="web_search"),
    )
    outgoing = write(neutral(tools=tools, settings=Settings(tool_choice=choice)))
    assert outgoing.body["toolConfig"].get("functionCallingConfig") == calling
    assert rules(outgoing) == expected_rules


def test_a_choice_without_functions_is_not_sent() -> None:
    assert "toolConfig" not in write(neutral(settings=Settings(tool_choice=ToolChoice("auto")))).body
    forced = write(neutral(settings=Settings(tool_choice=ToolChoice("required"))))
    assert rules(forced) == {"forced-choice-downgraded"}


# ── writing: settings ──


@pytest.mark.parametrize(
    ("settings", "config", "expected_rules"),
    [
        (Settings(temperature=0.0), {"temperature": 0.0}, set[str]()),
        (Settings(top_p=0.5, top_k=3), {"topP": 0.5, "topK": 3}, set[str]()),
        (
            Settings(presence_penalty=1, frequency_penalty=-1),
            {"presencePenalty": 1, "frequencyPenalty": -1},
            set[str](),
        ),
        (Settings(logit_bias={"1": 2}), None, {"logit-bias-dropped"}),
        (Settings(max_tokens=9), {"maxOutputTokens": 9}, set[str]()),
        (Settings(max_tokens=128_000), {"maxOutputTokens": 65_536}, {"max-tokens-lowered"}),
        (Settings(stop=("a", "")), {"stopSequences": ["a"]}, set[str]()),
        (Settings(n=1), {"candidateCount": 1}, set[str]()),
        (Settings(logprobs=0), {"responseLogprobs": True}, set[str]()),
        (Settings(logprobs=4), {"responseLogprobs": True, "logprobs": 4}, set[str]()),
        (Settings(seed=7), {"seed": 7}, set[str]()),
        (Settings(seed=1 << 40), None, {"seed-dropped"}),
        (Settings(format=Format("json")), {"responseMimeType": "application/json"}, set[str]()),
        (
            Settings(format=Format("schema", {"type": "object", "not": {}}, "n", True)),
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
            {"schema-keyword-dropped"},
        ),
        (Settings(parallel_tool_calls=False), None, {"parallel-dropped"}),
        (Settings(parallel_tool_calls=True), None, set[str]()),
        (Settings(verbosity="low"), None, {"verbosity-dropped"}),
        (
            Settings(user="u", metadata={"a": 1}, cache_key="k", cache=Cache(), store=True),
            None,
            set[str](),
        ),
    ],
)
def test_settings(settings: Settings, config: Any, expected_rules: set[str]) -> None:
    outgoing = write(neutral(settings=settings))
    assert outgoing.body.get("generationConfig") == config
    assert outgoing.body.keys() <= {"contents", "generationConfig"}
    assert rules(outgoing) == expected_rules


def test_stop_sequences_beyond_five_are_emulated() -> None:
    outgoing = write(neutral(settings=Settings(stop=tuple("abcdefg"))))
    assert outgoing.body["generationConfig"]["stopSequences"] == list("abcde")
    assert outgoing.stop == ("f", "g")
    assert rules(outgoing) == {"stop-truncated"}


@pytest.mark.parametrize(
    ("model_name", "reasoning", "config", "expected_rules"),
    [
        ("gemini-3-pro", Reasoning(effort="minimal"), {"thinkingLevel": "LOW"}, set[str]()),
        ("gemini-3-flash", Reasoning(effort="minimal"), {"thinkingLevel": "MINIMAL"}, set[str]()),
        ("gemini-3-flash", Reasoning(effort="low"), {"thinkingLevel": "LOW"}, set[str]()),
        ("gemini-3-flash", Reasoning(effort="medium"), {"thinkingLevel": "MEDIUM"}, set[str]()),
        ("gemini-3-flash", Reasoning(effort="high"), {"thinkingLevel": "HIGH"}, set[str]()),
        ("gemini-3-pro", Reasoning(effort="xhigh"), {"thinkingLevel": "HIGH"}, {"effort-lowered"}),
        ("gemini-3-pro", Reasoning(effort="max"), {"thinkingLevel": "HIGH"}, {"effort-lowered"}),
        ("gemini-3-flash", Reasoning(False), {"thinkingLevel": "MINIMAL"}, {"effort-raised"}),
        ("gemini-3-pro", Reasoning(effort="none"), {"thinkingLevel": "LOW"}, {"effort-raised"}),
        ("gemini-3-pro", Reasoning(True, budget=2000), {"thinkingLevel": "LOW"}, set[str]()),
        ("gemini-3-pro", Reasoning(True, budget=9000), {"thinkingLevel": "MEDIUM"}, set[str]()),
        (
            "gemini-3-pro",
            Reasoning(True, budget=31_999, show=True),
            {"thinkingLevel": "HIGH", "includeThoughts": True},
            set[str](),
        ),
        ("gemini-3-pro", Reasoning(True, adaptive=True), None, set[str]()),
        ("gemini-3-pro", Reasoning(show=True), {"includeThoughts": True}, set[str]()),
        (
            "gemini-2.5-flash",
            Reasoning(False, show=True),
            {"thinkingBudget": 0, "includeThoughts": False},
            set[str](),
        ),
        ("gemini-2.5-pro", Reasoning(False), {"thinkingBudget": 128}, {"effort-raised"}),
        ("gemini-2.5-flash", Reasoning(True, adaptive=True), {"thinkingBudget": -1}, set[str]()),
        ("gemini-2.5-flash", Reasoning(effort="low"), {"thinkingBudget": 4096}, set[str]()),
        (
            "gemini-2.5-flash",
            Reasoning(effort="max"),
            {"thinkingBudget": 24_576},
            {"effort-lowered"},
        ),
        ("gemini-2.5-pro", Reasoning(True, budget=31_999), {"thinkingBudget": 31_999}, set[str]()),
        (
            "gemini-2.5-flash",
            Reasoning(True, budget=31_999),
            {"thinkingBudget": 24_576},
            {"effort-lowered"},
        ),
        ("gemini-2.0-flash", Reasoning(effort="high"), None, {"reasoning-dropped"}),
        ("gemini-2.0-flash", Reasoning(False), None, set[str]()),
    ],
)
def test_reasoning(model_name: str, reasoning: Reasoning, config: Any, expected_rules: set[str]) -> None:
    outgoing = write(neutral(settings=Settings(reasoning=reasoning)), target(model_name))
    assert outgoing.body.get("generationConfig", {}).get("thinkingConfig") == config
    assert rules(outgoing) == expected_rules


def test_before_gemini_3_functions_and_json_exclude_each_other() -> None:
    settings = Settings(format=Format("schema", {"type": "array"}))
    asked = neutral(Message("system", (Text("S"),)), user(Text("hi")), tools=(SHELL,), settings=settings)
    outgoing = write(asked, target("gemini-2.5-pro"))
    assert "generationConfig" not in outgoing.body
    first, second = outgoing.body["systemInstruction"]["parts"]
    assert first == {"text": "S"}
    assert '{"type":"array"}' in second["text"]
    assert rules(outgoing) == {"json-mode-emulated"}
    assert "generationConfig" in write(asked).body


@pytest.mark.parametrize(
    ("tier", "sent"),
    [
        ("flex", "flex"),
        ("priority", "priority"),
        ("fast", "priority"),
        ("standard_only", "standard"),
        ("default", "standard"),
        ("auto", None),
        ("scale", None),
    ],
)
def test_service_tiers(tier: str, sent: str | None) -> None:
    outgoing = write(neutral(settings=Settings(service_tier=tier)))
    assert outgoing.body.get("serviceTier") == sent
    assert outgoing.notices == ()


@pytest.mark.parametrize(
    ("request_", "path"),
    [
        (neutral(settings=Settings(n=2)), "settings.n"),
        (neutral(settings=Settings(audio_out=True)), "settings.audio_out"),
        (neutral(settings=Settings(background=True)), "settings.background"),
        (
            neutral(settings=Settings(previous_response_id="r")),
            "settings.previous_response_id",
        ),
        (
            neutral(tools=(SHELL,), settings=Settings(tool_choice=ToolChoice("named", "x"))),
            "settings.tool_choice",
        ),
        (
            neutral(user(Text("a")), user(Text("b"), Media(kind="image", file_id="file-1"))),
            "messages[1].parts[1].file_id",
        ),
        (
            neutral(user(Media(kind="image", data="AAAA"))),
            "messages[0].parts[0].media_type",
        ),
        (
            neutral(tools=(Tool(name="m", kind="hosted", hosted="mcp"),)),
            "tools[0]",
        ),
        (Request(model="m", messages=()), "messages"),
        (neutral(user(Opaque(Raw("anthropic", {})))), "messages"),
    ],
)
def test_parts_that_cannot_be_sent_are_refused(request_: Request, path: str) -> None:
    with pytest.raises(BadRequest) as refused:
        write_request(request_, target())
    assert refused.value.path == path


def test_strict_refuses_what_would_be_dropped() -> None:
    with pytest.raises(BadRequest) as refused:
        write_request(neutral(settings=Settings(logit_bias={"1": 1})), target(strict=True))
    assert refused.value.path == "settings.logit_bias"


@pytest.mark.parametrize(
    ("name", "stream", "path"),
    [
        ("gemini-3-pro", False, "/v1beta/models/gemini-3-pro:generateContent"),
        ("models/gemini-3", True, "/v1beta/models/gemini-3:streamGenerateContent?alt=sse"),
        ("tunedModels/a b", False, "/v1beta/tunedModels/a%20b:generateContent"),
        ("a?b#c", False, "/v1beta/models/a%3Fb%23c:generateContent"),
        ("a%2e%2e\\b\t", False, "/v1beta/models/a%252e%252e%5Cb%09:generateContent"),
        ("publishers/google/models/x", False, "/v1beta/models/publishers/google/models/x:generateContent"),
        ("x.y/..z/...", False, "/v1beta/models/x.y/..z/...:generateContent"),
    ],
)
def test_the_address(name: str, stream: bool, path: str) -> None:
    outgoing = write(neutral(stream=stream), target(name))
    assert outgoing.path == path
    again = read_request(json.dumps(outgoing.body).encode(), path)
    assert (again.model, again.stream) == (name.removeprefix("models/"), stream)


@pytest.mark.parametrize(
    "name",
    ["x/../../admin", "..", ".", "a/./b", "a//b", "/a", "a/", "models/..", "tunedModels/../x"],
)
def test_a_model_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(BadRequest) as refused:
        write_request(neutral(), target(name))
    assert refused.value.path == "model"


# ── laws ──

NAMED = st.text(min_size=1, max_size=80)
IDENTIFIED = st.text(min_size=1, max_size=80)


@given(st.lists(st.tuples(IDENTIFIED, NAMED), min_size=1, max_size=4, unique_by=lambda c: c[0]))
def test_calls_survive_a_round_trip(calls: list[tuple[str, str]]) -> None:
    tools = tuple(Tool(name=name) for _, name in calls)
    history = (
        user(Text("go")),
        model(*[call(id, name, '{"a":[1,{"b":null}]}') for id, name in calls]),
        user(*[result(id, "out") for id, _ in reversed(calls)]),
    )
    outgoing = write_request(neutral(*history, tools=tools), target("gemini-2.5-pro"))
    again = read_request(json.dumps(outgoing.body).encode(), outgoing.path)
    sent = [p for p in again.messages[1].parts if isinstance(p, ToolCall)]
    names = [outgoing.names.called(p.name) for p in sent]
    assert [c.tool.name for c in names if c] == [name for _, name in calls]
    assert all(p.arguments == '{"a":[1,{"b":null}]}' for p in sent)
    # The upstream sees the client's ids, unless they look like ids we escaped ourselves.
    raw = [p["functionCall"]["id"] for p in outgoing.body["contents"][1]["parts"]]
    assert raw == [id for id, _ in calls]
    assert all(IDS.legal(id) for id in raw)


@given(st.lists(st.sampled_from(["text", "step", "system", "thought"]), max_size=6))
def test_the_same_prefix_gives_the_same_bytes(kinds: list[str]) -> None:
    messages: list[Message] = [user(Text("start"))]
    cuts = [1]
    for number, kind in enumerate(kinds):
        if kind == "step":
            id = f"c{number}"
            messages += [model(call(id), call(f"{id}b")), user(result(f"{id}b"), result(id))]
        elif kind == "system":
            messages += [model(Text("a")), Message("system", (Text("s"),))]
        elif kind == "thought":
            messages += [model(Thinking("t", Seal("anthropic", "x")), Text("a")), user(Text("u"))]
        else:
            messages += [model(Text("a")), user(Text("u"))]
        cuts.append(len(messages))
    whole = json.dumps(write_request(neutral(*messages), target()).body["contents"])
    for cut in cuts:
        part = json.dumps(write_request(neutral(*messages[:cut]), target()).body["contents"])
        assert whole.startswith(part[:-1])


@given(BODIES)
def test_writing_for_another_protocol_and_reading_again_keeps_the_conversation(body: Any) -> None:
    request = read(body)
    stripped = [
        Message(m.role, tuple(p for p in m.parts if isinstance(p, ToolCall | ToolResult)))
        for m in request.messages
    ]
    foreign = neutral(user(Text("go")), *[m for m in stripped if m.parts], tools=(Tool(name="f"),))
    outgoing = write(foreign, target("gemini-2.5-pro"))
    again = read_request(json.dumps(outgoing.body).encode(), outgoing.path)
    expected = [p for m in stripped for p in m.parts if isinstance(p, ToolCall)]
    got = [p for m in again.messages for p in m.parts if isinstance(p, ToolCall)]
    assert [(p.id, p.arguments) for p in got] == [(p.id, p.arguments) for p in expected]
    texts = [p.parts for m in stripped for p in m.parts if isinstance(p, ToolResult)]
    results = [p.parts for m in again.messages for p in m.parts if isinstance(p, ToolResult)]
    assert results == texts
