"""OpenAI Chat requests: bodies of real clients are read, every row of the mapping matrix is written."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.anew import anew
from support.sdk_types import check_chat

from dragoman.model.errors import BadRequest
from dragoman.model.messages import (
    Cache,
    Citation,
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
from dragoman.protocols.openai_chat.request.read import read_request
from dragoman.protocols.openai_chat.request.write import IDS, NAMES, write_request

CHAT = "openai-chat"
TARGET = Target(model="up", issuer="me")
SEARCHES = Target(model="gpt-4o-search-preview", issuer="me")
COMPATIBLE = Target(model="up", chat_compatible=True, max_tokens_field="max_tokens")
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**OPEN, "required": ["a"], "additionalProperties": False}
READ = Tool(name="read", description="Reads", parameters=OPEN)
PATCH = Tool(name="patch", kind="custom", grammar="start: X", grammar_syntax="lark")
PNG = Media(kind="image", media_type="image/png", data="aGk=")


def read(**fields: Any) -> Request:
    body = {"model": "m", "messages": [message("user", "hi")], **fields}
    return read_request(json.dumps(body).encode())


def read_all(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return read(messages=list(messages)).messages


def bare(messages: tuple[Message, ...]) -> list[Message]:
    return [msgspec.structs.replace(message, raw=None) for message in messages]


def message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def image(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **more}}


def custom(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name, **more}}


def allowed(mode: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


def schema_format(**described: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": described}


def talk(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


def wants(**settings: Any) -> dict[str, Any]:
    return {"settings": Settings(**settings)}


def calls(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(given), **more}


def call(id: str = "c1", name: str = "read", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": id, "type": "function", "function": function, **more}


def answer(id: str = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def asked(*parts: Any) -> Message:
    return Message("user", parts)


def said(*parts: Any) -> Message:
    return Message("assistant", parts)


def write(*messages: Message, target: Target = TARGET, **fields: Any) -> Outgoing:
    """Write a neutral request. The SDK's types must know every written member."""
    fields.setdefault("settings", Settings())
    out = write_request(Request(model="m", messages=messages or (asked(Text("hi")),), **fields), target)
    if target.reasoning_field is None and "reasoning_details" not in json.dumps(out.body):
        check_chat(out.body)
    return out


def rules(out: Outgoing) -> list[tuple[str, str]]:
    return [(notice.rule, notice.path) for notice in out.notices]


# ---------------------------------------------------------------- bodies of clients

PI = {
    "model": "gpt-5",
    "messages": [
        message("developer", "You are pi."),
        message("user", [text("list")]),
        calls(call(name="bash", arguments='{"command":  "ls"}')),
        answer(content="a\nb"),
    ],
    "stream": True,
    "stream_options": {"include_usage": True},
    "store": False,
    "max_completion_tokens": 16384,
    "tools": [function("bash", description="", parameters=OPEN, strict=False)],
    "reasoning_effort": "medium",
}
QWEN = {
    "model": "qwen3",
    "max_tokens": 8000,
    "messages": [
        message("system", "You are Qwen Code."),
        message("user", [text("a"), text("b")]),
        calls(call("call_1", "shell", '{"command":"ls","n":1.0}'), content=""),
        answer("call_1", [text("done")]),
    ],
    "tools": [function("shell", parameters=OPEN)],
    "vl_high_resolution_images": True,
    "metadata": {"sessionId": "s"},
}
AIDER = {
    "model": "m",
    "messages": [
        message("system", "Act as an expert."),
        message("user", "example"),
        {"role": "assistant", "content": "example answer"},
        message("user", "real"),
    ],
    "temperature": 0,
    "stream": True,
}
CURSOR = {
    "user": "u",
    "model": "x",
    "messages": [message("user", "q"), calls(call(), content=[]), answer()],
    "tools": [
        custom(
            "ApplyPatch",
            format={"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}},
        ),
        {"type": "web_search", "web_search": {"enable": True}},
    ],
    "tool_choice": "auto",
}
LEGACY = {
    "model": "m",
    "messages": [
        message("user", "q"),
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
        {"role": "function", "name": "f", "content": None},
    ],
    "functions": [{"name": "f", "parameters": OPEN}],
    "function_call": {"name": "f"},
}
OPENROUTER = {
    "model": "m",
    "messages": [
        message("user", [text("q", cache_control={"ttl": "1h"})]),
        calls(
            call(extra_content={"google": {"thought_signature": "c2ln"}}),
            reasoning="hm",
            reasoning_details=[
                {
                    "type": "reasoning.text",
                    "text": "hm",
                    "signature": "s",
                    "format": "a",
                    "index": 0,
                }
            ],
        ),
        answer(),
    ],
    "reasoning": {"effort": "high"},
    "provider": {"order": ["x"]},
}
SAMPLES = [PI, QWEN, AIDER, CURSOR, LEGACY, OPENROUTER]


def test_reads_pi() -> None:
    request = read_request(json.dumps(PI).encode())
    assert bare(request.messages) == [
        Message("developer", (Text("You are pi."),)),
        asked(Text("list")),
        said(ToolCall(id="c1", name="bash", arguments='{"command":  "ls"}')),
        asked(ToolResult(call_id="c1", parts=(Text("a\nb"),))),
    ]
    tool = request.tools[0]
    assert (tool.name, tool.description, tool.schema, tool.strict) == ("bash", "", OPEN, False)
    assert request.settings == Settings(
        max_tokens=16384, store=False, reasoning=Reasoning(enabled=True, effort="medium")
    )
    assert (request.stream, request.include_usage, request.extras) == (True, True, None)
    assert request.raw == Raw(CHAT, PI)
    assert request.messages[0].raw == Raw(CHAT, PI["messages"][0])
    assert tool.raw == Raw(CHAT, PI["tools"][0])


def test_reads_qwen() -> None:
    request = read_request(json.dumps(QWEN).encode())
    assert bare(request.messages)[1:] == [
        asked(Text("a"), Text("b")),
        said(ToolCall(id="call_1", name="shell", arguments='{"command":"ls","n":1.0}')),
        asked(ToolResult(call_id="call_1", parts=(Text("done"),))),
    ]
    assert request.settings.max_tokens == 8000
    assert request.settings.metadata == {"sessionId": "s"}
    assert request.extras == {"vl_high_resolution_images": True}
    assert request.include_usage  # an unstreamed answer has its usage


def test_a_stream_has_usage_only_if_asked_for() -> None:
    request = read_request(json.dumps(AIDER).encode())
    assert (request.stream, request.include_usage) == (True, False)
    assert request.settings.temperature == 0
    assert write_request(request, TARGET).body["stream_options"] == {"include_usage": True}


def test_reads_cursor() -> None:
    request = read_request(json.dumps(CURSOR).encode())
    custom, hosted = request.tools
    assert (custom.kind, custom.grammar, custom.grammar_syntax) == ("custom", "x", "lark")
    assert (hosted.kind, hosted.hosted) == ("hosted", "web_search")
    assert request.messages[1].parts == (ToolCall(id="c1", name="read", arguments="{}"),)
    assert request.settings.user == "u"


def test_reads_the_deprecated_functions() -> None:
    request = read_request(json.dumps(LEGACY).encode())
    parts = [message.parts[0] for message in request.messages[1:]]
    assert parts == [
        ToolCall(id="call_function_1", name="f", arguments="{}"),
        ToolResult(call_id="call_function_1", parts=(Text("1"),), name="f"),
        ToolCall(id="call_function_2", name="f", arguments=""),
        ToolResult(call_id="call_function_2", name="f"),
    ]
    assert request.tools == (Tool(name="f", parameters=OPEN),)
    assert request.settings.tool_choice == ToolChoice("named", "f")
    body = write_request(anew(request), TARGET).body
    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"]
    assert [tool["type"] for tool in body["tools"]] == ["function"]


def test_reads_an_answer_echoed_by_a_naive_loop() -> None:
    """`message.model_dump()` of the SDK's stream helper: nulls, an index, parsed arguments."""
    echoed = calls(
        call(index=0),
        refusal=None,
        audio=None,
        function_call=None,
        parsed=None,
        annotations=[{"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0}}],
        content="see",
    )
    echoed["tool_calls"][0]["function"]["parsed_arguments"] = {}
    request = read(messages=[echoed, answer()])
    text, tool_call = request.messages[0].parts
    assert text == Text("see", citations=(Citation("u", "t", "", 0),))
    assert tool_call == ToolCall(id="c1", name="read", arguments="{}")
    out = write_request(request, TARGET)
    assert out.body["messages"][0] == {**echoed, "tool_calls": [call()]}
    assert list(out.body["messages"][0]) == list(echoed)
    assert rules(out) == [("echoed-fields-dropped", "messages[0].tool_calls")]
    assert request.raw is not None
    assert request.raw.parsed["messages"][0]["tool_calls"][0]["index"] == 0  # not changed in place


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (text(""), Text("")),
        (
            text("x", prompt_cache_breakpoint={"mode": "explicit", "ttl": "12h"}),
            Text("x", Cache("12h")),
        ),
        (image("data:image/png;base64,aGk="), PNG),
        (
            image("https://x/y.png", detail="low"),
            Media(kind="image", url="https://x/y.png", detail="low"),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
            Media(kind="audio", media_type="audio/mpeg", data="aGk="),
        ),
        (
            {"type": "file", "file": {"file_data": "aGk=", "filename": "a.pdf"}},
            Media(kind="document", media_type="application/pdf", data="aGk=", name="a.pdf"),
        ),
        (
            {"type": "file", "file": {"file_data": "data:text/csv;base64,aGk="}},
            Media(kind="document", media_type="text/csv", data="aGk="),
        ),
        (
            part := {"type": "file", "file": {"file_id": "file_1"}},
            Media(kind="document", file_id="file_1", file_provider="openai", raw=Raw(CHAT, part)),
        ),
        (
            part := {"type": "video_url", "video_url": {"url": "https://x/v.mp4"}},
            Media(kind="video", url="https://x/v.mp4", raw=Raw(CHAT, part)),
        ),
        (part := {"type": "hologram", "depth": 3}, Opaque(Raw(CHAT, part), "hologram")),
    ],
)
def test_reads_parts(part: dict[str, Any], expected: Any) -> None:
    assert read_all(message("user", [part]))[0].parts == (expected,)


def test_reads_all_an_assistant_can_say() -> None:
    message = {
        "role": "assistant",
        "content": [text("a"), {"type": "refusal", "refusal": "no"}],
        "refusal": "never",
        "name": "bob",
        "audio": {"id": "au"},
        "images": [image("data:image/png;base64,aGk=")],
        "tool_calls": [
            {"id": "k", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
            call(arguments={"b": 1, "a": [1.0]}),
            call("c2", arguments=None),
        ],
    }
    read_message, *results = read_all(message, answer("k"), answer("c1"), answer("c2", ""))
    assert read_message.name == "bob"
    assert read_message.parts == (
        Text("a"),
        Refusal("no"),
        Refusal("never"),
        Opaque(Raw(CHAT, {"id": "au"}), "audio"),
        PNG,
        ToolCall(id="k", name="patch", arguments="*** Begin", kind="custom"),
        ToolCall(id="c1", name="read", arguments='{"b":1,"a":[1.0]}'),
        ToolCall(id="c2", name="read", arguments=""),
    )
    kinds = [part.kind for result in results for part in result.parts if isinstance(part, ToolResult)]
    assert kinds == ["custom", "function", "function"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5, "max_completion_tokens": 6}, {"max_tokens": 6}),
        (
            {"top_p": 0.5, "top_k": 3, "seed": 7, "n": 2},
            {"top_p": 0.5, "top_k": 3, "seed": 7, "n": 2},
        ),
        (
            {"presence_penalty": 1, "frequency_penalty": -1},
            {"presence_penalty": 1, "frequency_penalty": -1},
        ),
        ({"logit_bias": {"5": -1}}, {"logit_bias": {"5": -1}}),
        ({"logprobs": True}, {"logprobs": 0}),
        ({"logprobs": True, "top_logprobs": 4}, {"logprobs": 4}),
        ({"logprobs": False, "temperature": None}, {}),
        ({"stop": "x"}, {"stop": ("x",)}),
        ({"stop": ["x", "y"]}, {"stop": ("x", "y")}),
        ({"reasoning_effort": "none"}, {"reasoning": Reasoning(enabled=False, effort="none")}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"format": Format("json")}),
        (
            {"response_format": schema_format(name="n", schema=OPEN)},
            {"format": Format("schema", OPEN, "n")},
        ),
        (
            {"verbosity": "low", "service_tier": "flex"},
            {"verbosity": "low", "service_tier": "flex"},
        ),
        ({"safety_identifier": "s"}, {"user": "s"}),
        ({"prompt_cache_key": "k", "store": True}, {"cache_key": "k", "store": True}),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({"modalities": ["text", "audio"]}, {"audio_out": True}),
    ],
)
def test_reads_settings(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert read(**fields).settings == Settings(**expected)


def test_keeps_unknown_members() -> None:
    fields = {
        "reasoning_effort": "default",
        "response_format": {"type": "grammar", "grammar": "g"},
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "prediction": {"type": "content", "content": "x"},
        "user": "u",
        "safety_identifier": "s",
    }
    request = read(**fields, stream=True)
    kept = {key: fields[key] for key in ("prediction", "reasoning_effort", "safety_identifier")}
    assert request.extras == kept | {
        "response_format": fields["response_format"],
        "stream_options": {"include_obfuscation": False},
    }
    assert request.settings == Settings(user="u")
    body = write_request(anew(request), TARGET).body
    assert body["stream_options"] == {"include_obfuscation": False, "include_usage": True}
    assert {key: body[key] for key in kept} == kept


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("none", ToolChoice("none")),
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        (function("read"), ToolChoice("named", "read")),
        (custom("patch"), ToolChoice("named", "patch")),
        ({"type": "browser"}, ToolChoice("named", "browser")),
        (allowed("required", function("read")), ToolChoice("required", allowed=("read",))),
        (allowed("auto", {"type": "browser"}), ToolChoice("auto", allowed=("browser",))),
    ],
)
def test_reads_choices(choice: Any, expected: ToolChoice) -> None:
    tools = [function("read"), custom("patch"), {"type": "browser"}]
    request = read(tools=tools, tool_choice=choice)
    assert request.settings.tool_choice == expected
    assert write_request(anew(request), TARGET).body["tool_choice"] == choice


# ---------------------------------------------------------------- bad input

BAD = [
    ({"model": None}, "model"),
    ({"messages": None}, "messages"),
    ({"messages": []}, "messages"),
    ({"messages": {}}, "messages"),
    (talk("hi"), "messages[0]"),
    (talk({"content": "x"}), "messages[0].role"),
    (talk({"role": "wizard", "content": "x"}), "messages[0].role"),
    (talk({"role": "user"}), "messages[0].content"),
    (talk(message("user", 3)), "messages[0].content"),
    (talk(message("user", ["x"])), "messages[0].content[0]"),
    (talk(message("user", [{"text": "x"}])), "messages[0].content[0].type"),
    (talk(message("user", [{"type": "text"}])), "messages[0].content[0].text"),
    (
        talk(message("user", [{"type": "image_url", "image_url": 3}])),
        "messages[0].content[0].image_url",
    ),
    (talk(message("user", [image("data:x")])), "messages[0].content[0].image_url.url"),
    (talk(message("user", [{"type": "file", "file": {}}])), "messages[0].content[0].file"),
    (talk(calls({"type": "function"})), "messages[0].tool_calls[0].id"),
    (talk(calls({"id": "1", "type": "magic"})), "messages[0].tool_calls[0].type"),
    (talk(calls({"id": "1", "type": "function"})), "messages[0].tool_calls[0].function"),
    (talk(calls(call(arguments=3))), "messages[0].tool_calls[0].function.arguments"),
    (talk({"role": "tool", "content": "x"}), "messages[0].tool_call_id"),
    (talk(answer("nobody")), "messages[0].tool_call_id"),
    (talk(calls(call()), answer("c2")), "messages[1].tool_call_id"),
    (talk(calls(call()), answer(content=None)), "messages[1].content"),
    (
        talk(calls(call()), answer(content=[{"type": "refusal", "refusal": "x"}])),
        "messages[1].content[0].type",
    ),
    (talk({"role": "function", "name": "f", "content": ""}), "messages[0].name"),
    ({"tools": {}}, "tools"),
    ({"tools": [{"name": "f"}]}, "tools[0].type"),
    ({"tools": [{"function": {}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "name": "f"}]}, "tools[0].function"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
    ({"tools": [function("f", parameters=[])]}, "tools[0].function.parameters"),
    ({"tools": [custom("f", format={"type": "xml"})]}, "tools[0].custom.format.type"),
    ({"tool_choice": "maybe"}, "tool_choice"),
    ({"tool_choice": 1}, "tool_choice"),
    ({"tool_choice": function("f")}, "tool_choice.function.name"),
    ({"tool_choice": {"type": "web"}}, "tool_choice.type"),
    (
        {"tool_choice": allowed("auto", function("f"))},
        "tool_choice.allowed_tools.tools[0].function.name",
    ),
    ({"function_call": {"name": "f"}}, "function_call.name"),
    ({"temperature": "hot"}, "temperature"),
    ({"max_tokens": True}, "max_tokens"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": []}, "stream_options"),
    ({"stop": [1]}, "stop"),
    ({"response_format": {}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
]


@pytest.mark.parametrize(("fields", "path"), BAD, ids=[path for _, path in BAD])
def test_bad_input_is_refused_with_its_path(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(**fields)
    assert caught.value.path == path
    assert caught.value.status == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read_request(body)


# ---------------------------------------------------------------- the same protocol

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(st.text(max_size=5).map("x_".__add__), JSON, max_size=2)
CONTENT = st.text(max_size=8) | st.lists(
    st.builds(lambda words, more: text(words, **more), st.text(max_size=5), UNKNOWN)
    | st.builds(lambda more: {**more, "type": "x_part"}, UNKNOWN),
    max_size=3,
)
ARGUMENTS = st.sampled_from(["", "{}", '{"a" :1, "a":2}', '{"p":"\\u0041"}', "nope", '{"n":1e400}'])


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 3))):
        role = draw(st.sampled_from(["system", "developer", "user"]))
        messages.append({"role": role, "content": draw(CONTENT), **draw(UNKNOWN)})
        if draw(st.booleans()):
            named = call(f"id.{number}:x", "any.name", draw(ARGUMENTS), **draw(UNKNOWN))
            messages.append({**calls(named), **draw(UNKNOWN), "content": draw(CONTENT | st.none())})
            messages.append({**draw(UNKNOWN), **answer(f"id.{number}:x", draw(st.text(max_size=5)))})
    fields = {"model": "up", "messages": messages, **draw(UNKNOWN)}
    return {key: fields[key] for key in draw(st.permutations(list(fields)))}


def same(written: Any, original: Any) -> None:
    assert json.dumps(written) == json.dumps(original)  # the order of keys counts


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["model"])
def test_samples_go_through_unchanged(sample: dict[str, Any]) -> None:
    request = read_request(json.dumps(sample).encode())
    before = deepcopy(request)
    out = write_request(request, Target(model=sample["model"]))
    expected = deepcopy(sample)
    if sample.get("stream"):
        expected["stream_options"] = {"include_usage": True}
    same(out.body, expected)
    assert (out.path, out.notices, out.stop) == ("/v1/chat/completions", (), ())
    assert request == before


@given(bodies())
def test_requests_go_through_unchanged(body: dict[str, Any]) -> None:
    request = read_request(json.dumps(body).encode())
    same(write_request(request, TARGET).body, body)


@given(bodies())
def test_requests_with_wrapped_ids_go_through_unchanged(body: dict[str, Any]) -> None:
    wrapped = deepcopy(body)
    escaped(wrapped["messages"])
    request = read_request(json.dumps(wrapped).encode())
    assert write_request(request, TARGET).body == body
    assert write_request(anew(request), TARGET).body["messages"] == body["messages"]


@given(bodies())
def test_a_changed_request_keeps_its_messages_and_extras(body: dict[str, Any]) -> None:
    request = read_request(json.dumps(body).encode())
    written = write_request(request.changed(model="other"), TARGET).body
    same(written["messages"], body["messages"])
    assert {key: written[key] for key in body if key.startswith("x_")} == (request.extras or {})
    assert written == write_request(request.changed(model="other"), TARGET).body


def test_only_the_models_name_changes() -> None:
    request = read(tools=[function("a.b")], extra=1)
    out = write_request(request, TARGET)
    assert out.body == {**read(**out.body).raw.parsed, "model": "up"}  # type: ignore[union-attr]
    assert out.names.called("a.b") is not None


def test_a_changed_request_gives_its_tools_back_as_they_were() -> None:
    tools = [
        {"type": "function", "function": {"name": "a.b", "x": 1}, "y": 2},
        {"type": "web_search", "web_search": {}},
    ]
    request = read(tools=tools, web_search_options={"search_context_size": "low"}, n=2, top_k=4)
    body = write_request(anew(request), Target(model="up", chat_compatible=True)).body
    assert body["tools"] == tools
    assert body["web_search_options"] == {"search_context_size": "low"}
    assert (body["n"], body["top_k"]) == (2, 4)


@pytest.mark.parametrize("id", ["functions.Bash:0", "x:183", "ü", "dgm-1", "a" * 60])
def test_an_escaped_id_is_restored(id: str) -> None:
    shown = call_ids.for_client(id, call_ids.WORDS)
    request = read(messages=[calls(call(shown)), answer(shown)])
    for version in (request, anew(request)):
        messages = write_request(version, TARGET).body["messages"]
        assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"] == id


def test_a_strict_upstream_gets_legal_ids() -> None:
    request = read(messages=[calls(call("call_abc")), answer("call_abc")])
    messages = write_request(request, Target(model="up", ids=call_ids.MISTRAL)).body["messages"]
    id = messages[0]["tool_calls"][0]["id"]
    assert call_ids.MISTRAL.legal(id)
    assert messages[1]["tool_call_id"] == id


# ---------------------------------------------------------------- seals

FOREIGN = Seal("anthropic", "sig", issuer="claude")
DETAILS = [{"type": "reasoning.encrypted", "data": "x", "format": "f"}]
OWN = Seal(CHAT, json.dumps(DETAILS), issuer="me")


def carrying(seal: Seal, call_id: str = "") -> dict[str, Any]:
    return {"type": "reasoning.encrypted", "data": sealed_reasoning.to_slot(seal, CHAT, call_id), "index": 0}


def test_reads_a_carried_seal_with_its_text() -> None:
    message = calls(call(), reasoning_content="hm", reasoning_details=[carrying(FOREIGN)])
    assert read_all(message)[0].parts[0] == Thinking("hm", FOREIGN)


def test_text_with_two_signatures_belongs_to_neither() -> None:
    second = msgspec.structs.replace(FOREIGN, data="sig2")
    redacted = msgspec.structs.replace(FOREIGN, redacted=True)
    details = [carrying(FOREIGN), carrying(redacted)]
    one = read_all(calls(reasoning="hm", reasoning_details=details))[0]
    assert one.parts == (Thinking("hm", FOREIGN), Thinking("", redacted))
    details.append(carrying(second))
    two = read_all(calls(reasoning="hm", reasoning_details=details))[0]
    assert [part for part in two.parts if isinstance(part, Thinking) and part.text] == [Thinking("hm")]
    assert len(two.parts) == 4


def test_reads_the_seals_of_calls() -> None:
    gemini = Seal("gemini", "c2ln", issuer="g")
    in_slot = {"google": {"thought_signature": sealed_reasoning.to_slot(FOREIGN, "gemini")}}
    message = calls(call(extra_content=in_slot), call("c2"), reasoning_details=[carrying(gemini, "c2")])
    assert [part.seal for part in read_all(message)[0].parts if isinstance(part, ToolCall)] == [
        FOREIGN,
        gemini,
    ]
    native = calls(call(extra_content={"google": {"thought_signature": "c2ln"}}))
    assert read_all(native)[0].parts[0].seal == Seal(CHAT, "c2ln")  # type: ignore[union-attr]


def test_reads_the_upstreams_own_details_as_one_seal() -> None:
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s"}, *DETAILS]
    (thought,) = read_all(calls(reasoning="hm", reasoning_details=details))[0].parts
    assert isinstance(thought, Thinking)
    assert thought.seal is not None
    assert (thought.text, json.loads(thought.seal.data)) == ("hm", details)


def test_a_foreign_seal_does_not_reach_a_chat_upstream() -> None:
    slot = {"google": {"thought_signature": sealed_reasoning.to_slot(FOREIGN, "gemini"), "z": 1}}
    message = calls(
        call(extra_content=slot), reasoning_content="hm", reasoning_details=[carrying(FOREIGN)], x=1
    )
    message["tool_calls"].append(call("c2", extra_content={"google": dict(list(slot["google"].items())[:1])}))
    request = read(messages=[message, answer(), answer("c2")])
    for version in (request, anew(request)):
        written = write_request(version, TARGET).body["messages"][0]
        first, second = call(extra_content={"google": {"z": 1}}), call("c2")
        assert written == {**calls(first, second), "x": 1}
    wants_words = Target(model="up", reasoning_field="reasoning_content")
    assert write_request(request, wants_words).body["messages"][0]["reasoning_content"] == "hm"


def test_an_own_seal_in_an_envelope_is_opened_for_its_issuer() -> None:
    in_call = Seal(CHAT, "c2ln", issuer="me")
    slot = {"google": {"thought_signature": sealed_reasoning.to_slot(in_call, "gemini")}}
    envelope = carrying(OWN, "c9")
    message = calls(call(extra_content=slot), reasoning="hm", reasoning_details=[envelope, *DETAILS])
    request = read(messages=[message, answer()])
    written = write_request(request, TARGET).body["messages"][0]
    assert written["reasoning_details"] == DETAILS * 2
    assert written["reasoning"] == "hm"
    assert written["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    elsewhere = write_request(request, Target(model="up", issuer="you")).body["messages"][0]
    assert elsewhere["reasoning_details"] == DETAILS
    assert "extra_content" not in elsewhere["tool_calls"][0]


@pytest.mark.parametrize(
    ("seal", "issuer", "goes"),
    [
        (OWN, "me", True),
        (OWN, "", True),
        (OWN, "you", False),
        (Seal(CHAT, OWN.data), "you", True),
        (FOREIGN, "claude", False),
        (Seal("openai-responses", "enc"), "", False),
        (Seal(CHAT, "no details"), "", False),
    ],
)
def test_reasoning_goes_back_to_its_issuer_only(seal: Seal, issuer: str, goes: bool) -> None:
    out = write(said(Thinking("hm", seal), Text("a")), target=Target(model="up", issuer=issuer))
    expected = {"role": "assistant", "content": "a"}
    assert out.body["messages"] == [expected | ({"reasoning_details": DETAILS} if goes else {})]


@pytest.mark.parametrize(
    ("seal", "goes"),
    [
        (Seal(CHAT, "c2ln", issuer="me"), True),
        (Seal(CHAT, "c2ln"), True),
        (Seal(CHAT, "c2ln", issuer="you"), False),
        (Seal("gemini", "c2ln", issuer="me"), False),
        (FOREIGN, False),
    ],
)
def test_call_seals_go_back_to_their_issuer_only(seal: Seal, goes: bool) -> None:
    sealed = said(ToolCall(id="c1", name="read", seal=seal))
    (written,) = write_request(Request(model="m", messages=(sealed,)), TARGET).body["messages"]
    slot = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    assert written["tool_calls"] == [call() | (slot if goes else {})]


def test_reasoning_text_goes_only_to_upstreams_that_want_it() -> None:
    target = Target(model="up", reasoning_field="reasoning_content")
    turns = (
        said(Thinking("hm", FOREIGN), Text("a")),
        asked(Text("q")),
        said(ToolCall(id="c", name="r")),
    )
    first, _, second = write(*turns, target=target).body["messages"]
    assert first == {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    assert second["reasoning_content"] == ""  # DeepSeek refuses calls without the field
    assert "hm" not in json.dumps(write(*turns).body)
    assert write(asked(Text("q")), said(Thinking("hm"))).body["messages"] == [message("user", "q")]


def test_a_late_signature_gets_its_text_back() -> None:
    late = Seal(CHAT, json.dumps([{"type": "reasoning.text", "signature": "s"}]))
    out = write(said(Thinking("hm"), Thinking(seal=late), Text("a")))
    assert out.body["messages"][0]["reasoning_details"] == [
        {"type": "reasoning.text", "signature": "s", "text": "hm"}
    ]


# ---------------------------------------------------------------- what nobody knows

# One message of each role, with every member in its longer form. `x`: see `with_strangers`.
TALK: list[dict[str, Any]] = [
    message("system", [text("s", cache_control={"type": "ephemeral"})]),
    {**message("user", [text(""), image("https://x/y.png"), {"type": "x_part", "a": {}}]), "name": "ann"},
    {
        "role": "assistant",
        "content": [text("a"), {"type": "refusal", "refusal": "no"}, text("")],
        "refusal": None,
        "name": "bob",
        "audio": {"id": "au"},
        "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}],
        "images": [image("data:image/png;base64,aGk=")],
        "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}],
        "tool_calls": [
            call("functions.read:0", arguments='{"n" :1.0}', extra_content={"google": {"z": {}}, "y": 1}),
            call("functions.read:1", arguments={"b": 1}),
            {"id": "k.2", "type": "custom", "custom": {"name": "patch", "input": "*"}},
            {"id": "k.3", "function": {"name": "read"}},
        ],
    },
    answer("functions.read:0", [text("ok"), image("https://x/z.png")]),
    {**answer("functions.read:1", ""), "name": "read"},
    answer("k.2"),
    answer("k.3", []),
    {**calls(call("k.4", arguments="")), "content": "", "reasoning_content": "so"},
    answer("k.4"),
]
DECLARED: list[dict[str, Any]] = [
    function("read", parameters=OPEN),
    custom("patch"),
    {"type": "web_search", "web_search": {"enable": True}},
]
STRANGER = 1.10


def with_strangers(value: Any, number: list[int]) -> Any:
    """Every object with a member of its own that nobody knows, except a schema's `properties`."""
    if isinstance(value, list):
        return [with_strangers(item, number) for item in value]
    if not isinstance(value, dict):
        return value
    number[0] += 1
    name = f"x_{number[0]}"
    return {key: with_strangers(item, number) for key, item in value.items()} | {name: STRANGER}


def posted(body: dict[str, Any]) -> Request:
    """The request of a client that writes `1.10` in full."""
    return read_request(json.dumps(body).replace("1.1", "1.10").encode())


def escaped(talk: list[dict[str, Any]]) -> None:
    for turn in talk:
        for called in turn.get("tool_calls", ()):
            called["id"] = call_ids.for_client(called["id"], call_ids.WORDS)
        if "tool_call_id" in turn:
            turn["tool_call_id"] = call_ids.for_client(turn["tool_call_id"], call_ids.WORDS)


def sealed(thought: Seal, called: Seal) -> Any:
    """Envelopes in both places that Chat has for them."""

    def change(talk: list[dict[str, Any]]) -> None:
        talk[2]["reasoning_details"].insert(0, carrying(thought, "c9"))
        google = talk[2]["tool_calls"][0]["extra_content"]["google"]
        google["thought_signature"] = sealed_reasoning.to_slot(called, "gemini")

    return change


def echoed(talk: list[dict[str, Any]]) -> None:
    talk[2]["tool_calls"][0]["index"] = 0
    talk[7]["tool_calls"][0]["function"]["parsed_arguments"] = {}


def as_is(talk: list[dict[str, Any]]) -> None:
    pass


ECHOED = [("echoed-fields-dropped", f"messages[{at}].tool_calls") for at in (2, 7)]
SIGNED = Seal(CHAT, "c2ln", issuer="me")
ELSEWHERE = [msgspec.structs.replace(seal, issuer="you") for seal in (OWN, SIGNED)]


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize(
    ("wrap", "details", "signed", "notices"),
    [
        (as_is, [], {}, []),
        (escaped, [], {}, []),
        (sealed(OWN, SIGNED), DETAILS, {"thought_signature": "c2ln"}, []),
        (sealed(*ELSEWHERE), [], {}, []),
        (sealed(FOREIGN, FOREIGN), [], {}, []),
        (echoed, [], {}, ECHOED),
    ],
    ids=["as is", "ids", "own seals", "seals of another upstream", "seals of another protocol", "echoed"],
)
def test_members_that_nobody_knows_come_out_once(
    wrap: Any, details: list[Any], signed: Any, notices: list[Any], rebuilt: bool
) -> None:
    body = {"model": "up", "seed": 3, "messages": TALK, "tools": DECLARED, "provider": {"order": ["x"]}}
    body = with_strangers(body, count := [0])
    sent = deepcopy(body)
    wrap(sent["messages"])
    request = posted(sent)
    out = write_request(anew(request) if rebuilt else request, TARGET)
    turn = body["messages"][2]
    turn["reasoning_details"][:0] = details
    turn["tool_calls"][0]["extra_content"]["google"] |= signed
    assert out.body == body
    assert rules(out) == notices
    written = out.encoded().decode()
    for number in range(1, count[0] + 1):
        assert written.count(f'"x_{number}"') == 1
    # The settings of a rebuilt request are Dragoman's. All other numbers keep their spelling.
    respelled = 2 if rebuilt else 0
    assert len(re.findall(r":\s*1\.10\b", written)) == count[0] - respelled
    assert r'"{\"n\" :1.0}"' in written
    assert re.search(r'"arguments":\s*\{"b": 1', written)


def test_reasoning_of_another_issuer_takes_its_words_along() -> None:
    turn = calls(call(), reasoning="hm", reasoning_details=[carrying(FOREIGN)], x=1)
    request = read(messages=[turn, answer()])
    assert write_request(request, TARGET).body["messages"][0] == calls(call(), x=1)
    # Words without a seal stay, whatever else in the message has to change.
    shown = call_ids.for_client("a:1", call_ids.WORDS)
    request = read(messages=[calls(call(shown), reasoning="hm"), answer(shown)])
    assert write_request(request, TARGET).body["messages"][0] == calls(call("a:1"), reasoning="hm")


def test_a_strict_upstream_gets_legal_ids_and_all_else_as_it_was() -> None:
    body = with_strangers({"model": "up", "messages": TALK, "tools": DECLARED}, [0])
    request = posted(body)
    for version in (request, anew(request)):
        written = write_request(version, Target(model="up", ids=call_ids.MISTRAL)).body
        ids: dict[str, str] = {}
        for turn in written["messages"]:
            for called in turn.get("tool_calls", ()):
                ids[called["id"]] = id = next(iter(ORIGINALS[len(ids) :]))
                assert call_ids.MISTRAL.legal(called["id"])
                called["id"] = id
            if "tool_call_id" in turn:
                turn["tool_call_id"] = ids[turn["tool_call_id"]]
        assert written == body


ORIGINALS = [called["id"] for turn in TALK for called in turn.get("tool_calls", ())]


@pytest.mark.parametrize("spacing", [{}, {"separators": (",", ":")}, {"indent": 2}])
def test_a_later_wrapped_message_changes_no_byte_before_it(spacing: dict[str, Any]) -> None:
    opening = [message("user", "hi"), calls(call()), answer(), message("user", "go on")]
    wrapped = [calls(call("dgm-a-3a1", index=0)), answer("dgm-a-3a1")]
    written: list[bytes] = []
    for number in range(3):
        turns = [*opening, *wrapped * number]
        body = json.dumps({"model": "m", "messages": turns}, **spacing).encode()
        out = write_request(read_request(body), TARGET)
        assert out.encoded() == write_request(read_request(body), TARGET).encoded()
        written.append(msgspec.json.encode(out.members["messages"]).rstrip(b"]\n "))
    assert written[1].startswith(written[0])
    assert written[2].startswith(written[1])


def test_replaced_messages_and_tools_are_sent_instead_of_the_clients() -> None:
    """The body that the client sent may still be there: only its settings count."""
    request = read(
        messages=[message("user", "old")], tools=[function("a"), function("b")], tool_choice="auto", x=1
    )
    replaced = msgspec.structs.replace(request, messages=(asked(Text("new")),), tools=request.tools[1:])
    body = write_request(replaced, TARGET).body
    assert body == {
        "model": "up",
        "messages": [message("user", "new")],
        "tools": [function("b")],
        "tool_choice": "auto",
        "x": 1,
    }
    bare_request = msgspec.structs.replace(request, tools=())
    assert write_request(bare_request, TARGET).body == {
        "model": "up",
        "messages": [message("user", "old")],
        "x": 1,
    }


def test_deprecated_functions_stay_while_they_are_the_clients() -> None:
    request = read_request(json.dumps(LEGACY).encode())
    assert write_request(request, TARGET).body == {**LEGACY, "model": "up"}
    added = msgspec.structs.replace(request, tools=(*request.tools, READ))
    body = write_request(added, TARGET).body
    assert [tool["function"]["name"] for tool in body["tools"]] == ["f", "read"]
    assert not body.keys() & {"functions", "function_call"}
    assert body["tool_choice"] == function("f")
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]


def test_a_chat_clients_own_conversation_is_not_mended() -> None:
    """Its upstream judges it. Nothing depends on whether one of the messages has to be written anew."""
    turns = [calls(call()), message("user", "wait"), answer(), message("user", "go on"), calls(call("c2"))]
    turns += [message("user", "never mind"), calls(call("c3", index=1)), answer("c3")]
    out = write_request(read(messages=turns), TARGET)
    turns[-2] = calls(call("c3"))
    assert out.body["messages"] == turns
    assert rules(out) == [("echoed-fields-dropped", "messages[6].tool_calls")]


# ---------------------------------------------------------------- the matrix, row by row

FUNCTION = function("read", description="Reads", parameters=OPEN)
GRAMMAR = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}
CUSTOM = custom("patch", format=GRAMMAR)
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}


MESSAGES: list[tuple[str, tuple[Message, ...], Any]] = [
    ("1 system", (Message("system", (Text("s"),)),), [message("system", "s")]),
    (
        "1 blocks",
        (Message("developer", (Text("s"), Text("t"))),),
        [message("developer", [text("s"), text("t")])],
    ),
    (
        "2 mid-conversation",
        (asked(Text("q")), Message("system", (Text("s"),)), asked(Text("r"))),
        [message("user", "q"), message("system", "s"), message("user", "r")],
    ),
    ("3 empty", (asked(),), [message("user", "")]),
    (
        "names",
        (Message("user", (Text("q"),), "ann"), Message("assistant", (Text("a"),), "bob"), asked()),
        [
            {**message("user", "q"), "name": "ann"},
            {**message("assistant", "a"), "name": "bob"},
            message("user", ""),
        ],
    ),
    (
        "4 image",
        (asked(Text("q"), PNG, Media(kind="image", url="https://x", detail="high")),),
        [
            message(
                "user",
                [text("q"), image("data:image/png;base64,aGk="), image("https://x", detail="high")],
            )
        ],
    ),
    (
        "6 document",
        (asked(Media(kind="document", media_type="application/pdf", data="aGk=", name="a.pdf")),),
        [
            message(
                "user",
                [
                    {
                        "type": "file",
                        "file": {
                            "filename": "a.pdf",
                            "file_data": "data:application/pdf;base64,aGk=",
                        },
                    }
                ],
            )
        ],
    ),
    (
        "6 text document",
        (asked(Media(kind="document", text="words", name="Title")),),
        [message("user", "Title\n\nwords")],
    ),
    (
        "7 audio",
        (asked(Media(kind="audio", media_type="audio/mpeg", data="aGk=")),),
        [message("user", [{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}}])],
    ),
    ("14 call without arguments", (said(ToolCall(id="c1", name="read")),), [calls(call())]),
    (
        "14 a turn of several items is one message",
        (
            said(Text("a")),
            said(ToolCall(id="c1", name="read", arguments='{"a" :1}')),
            said(PATCH_CALL := ToolCall(id="k", name="patch", arguments="*", kind="custom")),
        ),
        [
            calls(
                call(arguments='{"a" :1}'),
                {"id": "k", "type": "custom", "custom": {"name": "patch", "input": "*"}},
                content="a",
            )
        ],
    ),
    (
        "17 error",
        (
            said(ToolCall(id="c1", name="read")),
            asked(ToolResult(call_id="c1", parts=(Text("boom"),), is_error=True)),
        ),
        [calls(call()), answer(content="[error] boom")],
    ),
    (
        "17 error without words",
        (said(ToolCall(id="c1", name="read")), asked(ToolResult(call_id="c1", is_error=True))),
        [calls(call()), answer(content="[error] The tool failed without saying why.")],
    ),
    (
        "18 pictures after all results",
        (
            said(ToolCall(id="c1", name="read"), ToolCall(id="c2", name="read")),
            asked(Text("by the way")),
            asked(ToolResult(call_id="c2", parts=(Text("see"), PNG))),
            asked(ToolResult(call_id="c1", parts=(Text("ok"),)), Text("go on")),
        ),
        [
            calls(call(), call("c2")),
            answer("c2", [text("see"), text("[image: in the next user message]")]),
            answer(),
            message(
                "user",
                [text("From the result of the tool call c2:"), image("data:image/png;base64,aGk=")],
            ),
            message("user", "by the way"),
            message("user", "go on"),
        ],
    ),
    (
        "26 cache marks",
        (
            Message("system", (Text("s", Cache("5m")),)),
            said(ToolCall(id="c1", name="read", cache=Cache())),
            asked(ToolResult(call_id="c1", parts=(Text("ok"),), cache=Cache("1h"))),
        ),
        [
            message("system", [text("s", **MARK)]),
            calls(call()),
            answer(content=[text("ok", prompt_cache_breakpoint={"mode": "explicit", "ttl": "12h"})]),
        ],
    ),
    (
        "49 refusal",
        (said(Refusal("no")), asked(Text("q"))),
        [{"role": "assistant", "content": None, "refusal": "no"}, message("user", "q")],
    ),
    ("65 an empty answer is left out", (said(), asked(Text("q"))), [message("user", "q")]),
]


@pytest.mark.parametrize(("row", "given", "expected"), MESSAGES, ids=[row for row, *_ in MESSAGES])
def test_messages(row: str, given: tuple[Message, ...], expected: Any) -> None:
    out = write(*given, tools=(READ,))
    same(out.body["messages"], expected)
    assert not out.notices


BODIES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("10 function", {"tools": (READ,)}, {"tools": [FUNCTION]}),
    (
        "10 schema",
        {"tools": (Tool(name="f", parameters={"$schema": "s", **CLOSED}, strict=True),)},
        {"tools": [function("f", parameters=CLOSED, strict=True)]},
    ),
    (
        "10 schema of a schema's member",
        {"tools": (READ, Tool(name="f", parameters={**CLOSED, "items": {"$schema": "s", "type": "null"}}))},
        {"tools": [FUNCTION, function("f", parameters={**CLOSED, "items": {"type": "null"}})]},
    ),
    (
        "10 no parameters",
        {"tools": (Tool(name="f"),)},
        {"tools": [function("f", parameters={"type": "object", "properties": {}})]},
    ),
    ("11 custom", {"tools": (PATCH,)}, {"tools": [CUSTOM]}),
    (
        "12 namespace",
        {
            "tools": (msgspec.structs.replace(READ, namespace="fs"),),
            "settings": Settings(tool_choice=ToolChoice("named", "read", "fs")),
        },
        {"tool_choice": function("fs__read")},
    ),
    ("23 effort", wants(reasoning=Reasoning(effort="xhigh")), {"reasoning_effort": "xhigh"}),
    ("23 off", wants(reasoning=Reasoning(enabled=False)), {"reasoning_effort": "none"}),
    (
        "23 budget",
        wants(reasoning=Reasoning(enabled=True, budget=31999)),
        {"reasoning_effort": "high"},
    ),
    ("23 small budget", wants(reasoning=Reasoning(budget=4000)), {"reasoning_effort": "low"}),
    ("27 cache key", wants(cache_key="k"), {"prompt_cache_key": "k"}),
    ("30 temperature", wants(temperature=0.0), {"temperature": 0.0}),
    (
        "31, 32, 37 sampling",
        wants(top_p=0.5, presence_penalty=1.0, frequency_penalty=1.0, logit_bias={"1": 2}, seed=3),
        {
            "top_p": 0.5,
            "presence_penalty": 1.0,
            "frequency_penalty": 1.0,
            "logit_bias": {"1": 2},
            "seed": 3,
        },
    ),
    ("33 max tokens", wants(max_tokens=9), {"max_completion_tokens": 9}),
    ("34 stop", wants(stop=("a", "b")), {"stop": ["a", "b"]}),
    ("36 logprobs", wants(logprobs=2), {"logprobs": True, "top_logprobs": 2}),
    (
        "39 schema",
        wants(format=Format("schema", OPEN, "my answer", None, "d")),
        {"response_format": schema_format(name="my_answer", description="d", schema=OPEN)},
    ),
    (
        "39 a schema that is always kept to",
        wants(format=Format("schema", CLOSED)),
        {"response_format": schema_format(name="response", schema=CLOSED, strict=True)},
    ),
    (
        "40 parallel",
        {"tools": (READ,), "settings": Settings(parallel_tool_calls=False)},
        {"parallel_tool_calls": False},
    ),
    (
        "41 required",
        {"tools": (READ,), "settings": Settings(tool_choice=ToolChoice("required"))},
        {"tool_choice": "required"},
    ),
    (
        "41 named custom",
        {"tools": (PATCH,), "settings": Settings(tool_choice=ToolChoice("named", "patch"))},
        {"tool_choice": custom("patch")},
    ),
    (
        "42 allowed",
        {
            "tools": (READ, PATCH),
            "settings": Settings(tool_choice=ToolChoice("auto", allowed=("read",))),
        },
        {"tools": [FUNCTION, CUSTOM], "tool_choice": allowed("auto", function("read"))},
    ),
    ("43 user", wants(user="u"), {"user": "u"}),
    (
        "43 metadata",
        wants(metadata={"a": "b"}, store=True),
        {"store": True, "metadata": {"a": "b"}},
    ),
    ("44 tier", wants(service_tier="standard_only"), {"service_tier": "default"}),
    (
        "45 web search",
        {"tools": (Tool(name="ws", kind="hosted", hosted="web_search"),), "target": SEARCHES},
        {"web_search_options": {}},
    ),
    ("verbosity", wants(verbosity="low"), {"verbosity": "low"}),
    ("stream", {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
]


@pytest.mark.parametrize(("row", "given", "expected"), BODIES, ids=[row for row, *_ in BODIES])
def test_fields(row: str, given: dict[str, Any], expected: dict[str, Any]) -> None:
    out = write(**given)
    assert {key: out.body.get(key) for key in expected} == expected
    assert not out.notices


def test_row_38_json() -> None:
    wanted = Settings(format=Format("json"))
    out = write(asked(Text("As JSON, please.")), settings=wanted)
    assert (out.body["response_format"], out.notices) == ({"type": "json_object"}, ())


SILENT = [
    Settings(metadata={"a": "b"}),
    Settings(cache=Cache()),
    Settings(n=1),
    Settings(tool_choice=ToolChoice("auto"), parallel_tool_calls=True),
    Settings(reasoning=Reasoning(adaptive=True, show=True)),
    Settings(reasoning=Reasoning(budget=-1)),
    Settings(service_tier="unheard of"),
]


@pytest.mark.parametrize("settings", SILENT)
def test_parts_that_are_dropped_silently(settings: Settings) -> None:
    out = write(settings=settings)
    assert out.body == {"model": "up", "messages": [message("user", "hi")]}
    assert not out.notices


HOSTED = Tool(name="code", kind="hosted", hosted="code_execution")
SEARCH_RESULT = Opaque(Raw("anthropic", {"type": "web_search_tool_result"}), "web_search_tool_result")
MARKED = asked(*(Text(str(n), Cache()) for n in range(6)))
NOTICED: list[tuple[str, tuple[Message, ...], dict[str, Any], str]] = [
    (
        "document-details-dropped",
        (asked(Media(kind="document", text="w", context="c")),),
        {},
        "messages[0].parts[0]",
    ),
    ("strict-dropped", (), {"tools": (Tool(name="f", parameters=OPEN, strict=True),)}, "tools[0]"),
    ("deferred-tools-flattened", (), {"tools": (Tool(name="f", deferred=True),)}, "tools"),
    (
        "citations-dropped",
        (said(Text("t", citations=(Citation("u"),))), asked(Text("q"))),
        {},
        "messages[0].parts[0]",
    ),
    ("cache-marks-truncated", (MARKED,), {}, "messages"),
    ("top-k-dropped", (), wants(top_k=4), "settings.top_k"),
    ("stop-truncated", (), wants(stop=tuple("abcdef")), "settings.stop"),
    (
        "forced-choice-downgraded",
        (),
        {
            "target": SEARCHES,
            "tools": (READ, WS := Tool(name="web_search", kind="hosted", hosted="web_search")),
            "settings": Settings(tool_choice=ToolChoice("named", "web_search")),
        },
        "settings.tool_choice",
    ),
    ("hosted-tool-dropped", (), {"tools": (HOSTED,)}, "tools[0]"),
    (
        "opaque-dropped",
        (said(SEARCH_RESULT, Text("a")), asked(Text("q"))),
        {},
        "messages[0].parts[0]",
    ),
    ("opaque-dropped", (asked(Text("q"), SEARCH_RESULT),), {}, "messages[0].parts[1]"),
    ("assistant-media-dropped", (said(PNG), asked(Text("q"))), {}, "messages[0].parts[0]"),
    ("prefill", (asked(Text("q")), said(Text("so"))), {}, "messages[1]"),
    ("missing-tool-result", (said(ToolCall(id="c", name="r")), asked(Text("q"))), {}, "c"),
    (
        "system-moved",
        (
            said(ToolCall(id="c", name="r")),
            Message("system", (Text("s"),)),
            asked(ToolResult(call_id="c")),
        ),
        {},
        "messages[1]",
    ),
]


@pytest.mark.parametrize(
    ("rule", "messages", "fields", "path"), NOTICED, ids=[f"{r}-{p}" for r, _, _, p in NOTICED]
)
def test_dropped_parts_give_a_notice(
    rule: str, messages: tuple[Message, ...], fields: dict[str, Any], path: str
) -> None:
    out = write(*messages, **fields)
    assert rules(out) == [(rule, path)]
    strict = msgspec.structs.replace(fields.get("target", TARGET), strict=True)
    with pytest.raises(BadRequest) as caught:
        write(*messages, **{**fields, "target": strict})
    assert caught.value.path == path


REFUSED: list[tuple[tuple[Message, ...], dict[str, Any], str]] = [
    ((asked(Media(kind="image", file_id="f")),), {}, "messages[0].parts[0]"),
    ((asked(Media(kind="document", file_id="f")),), {}, "messages[0].parts[0]"),
    ((asked(Media(kind="document", url="https://x/a.pdf")),), {}, "messages[0].parts[0]"),
    (
        (asked(Text("q"), Media(kind="audio", media_type="audio/ogg", data="aGk=")),),
        {},
        "messages[0].parts[1]",
    ),
    ((asked(Media(kind="video", url="https://x")),), {}, "messages[0].parts[0]"),
    ((asked(Media(kind="image")),), {}, "messages[0].parts[0]"),
    ((Message("system", (PNG,)),), {}, "messages[0].parts[0]"),
    ((), wants(audio_out=True), "settings.audio_out"),
    ((), wants(n=2), "settings.n"),
    ((), wants(background=True), "settings.background"),
    ((), wants(previous_response_id="r"), "settings.previous_response_id"),
    ((), {"tools": (Tool(name="m", kind="hosted", hosted="mcp"),)}, "tools[0]"),
    (
        (),
        {"tools": (READ,), "settings": Settings(tool_choice=ToolChoice("named", "x"))},
        "settings.tool_choice",
    ),
]


@pytest.mark.parametrize(("messages", "fields", "path"), REFUSED)
def test_parts_that_cannot_be_carried_are_refused(
    messages: tuple[Message, ...], fields: dict[str, Any], path: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        write(*messages, **fields)
    assert caught.value.path == path


NESTED = {"anyOf": [CLOSED, {"type": "array", "items": CLOSED}], "$defs": {"d": CLOSED}}


@pytest.mark.parametrize(("property", "strict"), [(NESTED, True), ({**NESTED, "$defs": {"d": OPEN}}, False)])
def test_strict_is_set_only_for_closed_schemas(property: Any, strict: bool) -> None:
    parameters = {**CLOSED, "properties": {"a": property}}
    out = write(tools=(Tool(name="f", parameters=parameters, strict=True),))
    assert out.body["tools"][0]["function"].get("strict", False) == strict


def test_parts_of_a_rebuilt_message_go_back_to_their_own_protocol() -> None:
    hologram = {"type": "hologram", "depth": 3}
    file = {"type": "file", "file": {"file_id": "file_1"}}
    request = read(messages=[message("user", [hologram, file]), calls(audio={"id": "au"})])
    rebuilt = msgspec.structs.replace(request, messages=tuple(bare(request.messages)), raw=None)
    assert write_request(rebuilt, TARGET).body["messages"] == [
        message("user", [hologram, file]),
        {**message("assistant", None), "audio": {"id": "au"}},
    ]


def test_the_last_four_cache_marks_stay() -> None:
    (message,) = write(MARKED).body["messages"]
    assert [text["text"] for text in message["content"] if MARK.items() <= text.items()] == list("2345")


def test_stop_sequences_beyond_four_are_emulated() -> None:
    out = write(settings=Settings(stop=("a", "", "b", "c", "d", "e")))
    assert (out.body["stop"], out.stop) == (["a", "b", "c", "d"], ("e",))


def test_a_call_without_a_result_gets_a_placeholder_result() -> None:
    pair = said(ToolCall(id="c1", name="read"), ToolCall(id="c2", name="read"))
    missing = answer("c2", "[error] No result was given for this call.")
    one = asked(ToolResult(call_id="c1", parts=(Text("ok"),)))
    assert write(pair, one).body["messages"] == [calls(call(), call("c2")), answer(), missing]
    assert write(pair).body["messages"] == [calls(call(), call("c2"))]  # the result may still come


def test_a_long_user_id_is_sent_as_its_hash() -> None:
    user = json.dumps({"device_id": "d" * 64, "session_id": "s"})
    written = write(settings=Settings(user=user)).body["user"]
    assert len(written) == 64
    assert written == write(settings=Settings(user=user)).body["user"]


def test_names_and_ids_are_legal_and_come_back() -> None:
    odd = Tool(name="fs/read file", parameters=OPEN)
    long = Tool(name="x" * 80)
    history = (
        said(ToolCall(id="i" * 300, name=odd.name), ToolCall(id="k", name=long.name)),
        asked(ToolResult(call_id="i" * 300), ToolResult(call_id="k")),
    )
    choice = ToolChoice("required", allowed=(odd.name, long.name))
    out = write(*history, tools=(odd, long), settings=Settings(tool_choice=choice))
    declared = [tool["function"]["name"] for tool in out.body["tools"]]
    allowed = out.body["tool_choice"]["allowed_tools"]["tools"]
    assert declared == [entry["function"]["name"] for entry in allowed]
    assistant, first, _ = out.body["messages"]
    assert declared == [entry["function"]["name"] for entry in assistant["tool_calls"]]
    assert all(len(name) <= 64 and msgspec.json.encode(name).isascii() for name in declared)
    assert [called.tool for name in declared if (called := out.names.called(name))] == [odd, long]
    assert assistant["tool_calls"][0]["id"] == first["tool_call_id"]
    assert IDS.legal(first["tool_call_id"])
    assert (NAMES.max_length, NAMES.custom) == (64, True)


# ---------------------------------------------------------------- servers that are not OpenAI's own


def test_a_compatible_server_gets_only_common_members() -> None:
    out = write(
        Message("developer", (Text("s", Cache()), Text("t"))),
        said(Refusal("no"), PATCH_CALL),
        asked(ToolResult(call_id="k", parts=(Text("a"), Text("b"))), Text("q", Cache())),
        target=COMPATIBLE,
        tools=(READ, PATCH, Tool(name="other")),
        settings=Settings(
            max_tokens=9,
            cache_key="k",
            store=False,
            tool_choice=ToolChoice("required", allowed=("patch",)),
        ),
    )
    function = {"name": "patch", "arguments": '{"input":"*"}'}
    assert out.body["messages"] == [
        message("system", "s\n\nt"),
        calls({"id": "k", "type": "function", "function": function}, content="no"),
        answer("k", "a\n\nb"),
        message("user", "q"),
    ]
    (tool,) = out.body["tools"]
    assert tool["function"]["parameters"]["required"] == ["input"]
    assert "start: X" in tool["function"]["description"]
    assert out.body["tool_choice"] == "required"
    assert out.body["max_tokens"] == 9
    assert not {"prompt_cache_key", "store", "max_completion_tokens"} & out.body.keys()
    assert rules(out) == [("custom-tool-emulated", "tools[1]")]
    called = out.names.called("patch")
    assert called is not None
    assert called.wrapped


def test_a_compatible_server_has_no_search_and_no_verbosity() -> None:
    out = write(target=COMPATIBLE, tools=(WS,), settings=Settings(verbosity="low"))
    assert set(rules(out)) == {
        ("hosted-tool-dropped", "tools[0]"),
        ("verbosity-dropped", "settings.verbosity"),
    }
    assert out.body.keys() == {"model", "messages"}


# ---------------------------------------------------------------- laws


def test_the_same_prefix_gives_the_same_bytes() -> None:
    history = tuple(bare(read_request(json.dumps(PI).encode()).messages))
    short = write(*history, tools=(READ,)).body
    longer = write(*history, said(Text("done")), asked(Text("more")), tools=(READ,)).body
    assert list(short) == list(longer)
    same(longer["messages"][: len(history)], short["messages"])
    same(longer["tools"], short["tools"])


@pytest.mark.parametrize("sample", [PI, QWEN, AIDER], ids=["pi", "qwen", "aider"])
def test_a_rewritten_request_reads_the_same(sample: dict[str, Any]) -> None:
    request = read_request(json.dumps(sample).encode())
    anew = msgspec.structs.replace(request, messages=tuple(bare(request.messages)), raw=None, extras=None)
    again = read_request(json.dumps(write_request(anew, TARGET).body).encode())
    assert bare(again.messages) == bare(request.messages)
    assert again.settings == request.settings


def _places(value: Any) -> list[tuple[Any, Any]]:
    """The path of every value in a body."""
    keys = range(len(value)) if isinstance(value, list) else list(value)
    here = [(value, key) for key in keys]
    inner = [value[key] for key in keys if isinstance(value[key], list | dict)]
    return here + [place for item in inner for place in _places(item)]


@given(st.sampled_from(SAMPLES), st.integers(0, 200), JSON)
def test_any_value_in_a_body_is_read_or_refused(sample: dict[str, Any], number: int, value: Any) -> None:
    body = deepcopy(sample)
    places = _places(body)
    holder, key = places[number % len(places)]
    holder[key] = value
    with suppress(BadRequest):
        request = read_request(json.dumps(body).encode())
        write_request(request, TARGET)
        write_request(anew(request), COMPATIBLE)
        stripped = msgspec.structs.replace(request, messages=tuple(bare(request.messages)), raw=None)
        write_request(stripped, COMPATIBLE)
