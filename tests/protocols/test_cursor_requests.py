"""Cursor's request bodies are read the same in the shapes of every protocol and their mixtures."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fuzzing
from support.cursor_bodies import APPLY_TOOL, CHOICES, GRAMMAR, PATCH, READ_TOOL, SHAPES, TURNS, body

from dragoman import BadRequest
from dragoman.conform.shape import Json
from dragoman.model.messages import Request, Text, Thinking, ToolCall, ToolChoice, ToolResult
from dragoman.protocols.base import Target
from dragoman.protocols.cursor import CHAT, PROTOCOL
from dragoman.protocols.registry import PROTOCOLS

TARGETS = {name: Target(model="up") for name in PROTOCOLS} | {
    "openai-chat": Target(model="up", chat_compatible=True, max_tokens_field="max_tokens")
}


def read(value: Json) -> Request:
    return CHAT.read_request(json.dumps(value).encode(), "/cursor/chat/completions")


def sent(request: Request, upstream: str, target: Target | None = None) -> Json:
    return PROTOCOLS[upstream].write_request(request, target or TARGETS[upstream]).body


def part(value: Any) -> tuple[Any, ...]:
    match value:
        case Text(text):
            return ("text", text)
        case ToolCall():
            said = value.arguments if value.kind == "custom" else json.loads(value.arguments)
            return ("call", value.id, value.name, value.kind, said)
        case ToolResult():
            return ("result", value.call_id, value.kind, [part(inner) for inner in value.parts])
        case _:
            raise AssertionError(value)


def essence(request: Request) -> list[Any]:
    """The turns of a request. Responses has one item per call, other protocols one message for all."""
    turns: list[Any] = []
    for message in request.messages:
        parts = [part(value) for value in message.parts]
        if turns and turns[-1][0] == message.role == "assistant":
            turns[-1][1].extend(parts)
        else:
            turns.append((message.role, parts))
    return turns


def tools(request: Request) -> list[Any]:
    return [(t.name, t.kind, t.description, t.schema, t.grammar, t.grammar_syntax) for t in request.tools]


PLAIN = read(body())
WANT = [
    ("system", [("text", "Be brief.")]),
    ("user", [("text", "Mend it.")]),
    ("assistant", [("call", "c1", "Read", "function", {"path": "src/a.py"})]),
    ("user", [("result", "c1", "function", [("text", "x = 1")])]),
    ("assistant", [("text", "So:"), ("call", "c2", "ApplyPatch", "custom", PATCH)]),
    ("user", [("result", "c2", "custom", [("text", "Done.")])]),
    ("user", [("text", "More.")]),
]


def check(request: Request) -> None:
    assert essence(request) == WANT
    assert tools(request) == tools(PLAIN)
    assert request.settings.tool_choice == ToolChoice("named", "Read")
    assert (request.model, request.stream, request.include_usage) == ("m", True, True)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_conversation(shape: str) -> None:
    request = read(body(SHAPES[shape]))
    check(request)
    assert PROTOCOL.read_request(json.dumps(body(SHAPES[shape])).encode(), "") == request


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upstream", ["anthropic", "gemini", "openai-chat"])
def test_every_shape_reaches_an_upstream_as_the_same_request(shape: str, upstream: str) -> None:
    request = read(body(SHAPES[shape]))
    assert sent(request, upstream) == sent(PLAIN, upstream)


def test_responses_upstreams_get_freeform_tools_in_their_own_shape() -> None:
    for shape in SHAPES:
        given = sent(read(body(SHAPES[shape])), "openai-responses")
        flat = {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}
        assert given["tools"][1] == {**APPLY_TOOL["flat"], "format": flat}
        assert [i.get("type", "message") for i in given["input"]].count("custom_tool_call") == 1


SPELLINGS = {
    **{name: st.sampled_from(sorted(spelt)) for name, spelt in TURNS.items()},
    "key": st.sampled_from(["messages", "input"]),
    "read": st.sampled_from(sorted(READ_TOOL)),
    "apply": st.sampled_from(sorted(APPLY_TOOL)),
    "choice": st.sampled_from(sorted(CHOICES)),
}


@fuzzing.steady(150)
@given(chosen=st.fixed_dictionaries(SPELLINGS))
def test_any_mixture_of_shapes_is_read(chosen: dict[str, str]) -> None:
    request = read(body(chosen))
    check(request)
    assert sent(request, "anthropic") == sent(PLAIN, "anthropic")


def test_a_chat_body_for_chat_is_unchanged() -> None:
    given = body(frequency_penalty=0.5, novelty={"x": 1})
    given["tools"] = given["tools"][:1]
    given["messages"] = given["messages"][:4]
    request = read(given)
    assert request.raw is not None
    assert sent(request, "openai-chat", Target(model="up")) == {**given, "model": "up"}


def test_a_responses_body_for_responses_loses_only_the_refused_field() -> None:
    given = body(
        SHAPES["gpt-agent"],
        reasoning={"effort": "medium", "summary": "auto"},
        text={"verbosity": "low"},
        include=["reasoning.encrypted_content"],
        store=False,
        previous_response_id=None,
        truncation="auto",
        prompt_cache_retention="24h",
        user="u1",
        metadata={"a": "b"},
    )
    request = read(given)
    assert request.include_usage
    without = {key: value for key, value in given.items() if key != "stream_options"}
    assert sent(request, "openai-responses") == {**without, "model": "up"}
    assert sent(request, "openai-chat", Target(model="up"))["reasoning_effort"] == "medium"
    given["stream_options"] = {"include_usage": False, "include_obfuscation": False}
    request = read(given)
    assert not request.include_usage
    assert sent(request, "openai-responses")["stream_options"] == {"include_obfuscation": False}


def test_settings_are_read_in_the_spelling_of_every_protocol() -> None:
    chat = {"messages": body()["messages"], "model": "m"}
    mixed = read(
        {
            **chat,
            "max_output_tokens": 900,
            "reasoning": {"effort": "high"},
            "text": {"verbosity": "low"},
            "system": "Above all.",
            "instructions": "And this.",
            "stop_sequences": ["END"],
            "temperature": 0.5,
            "parallel_tool_calls": False,
        }
    )
    settings = mixed.settings
    assert (settings.max_tokens, settings.verbosity, settings.stop) == (900, "low", ("END",))
    assert settings.reasoning is not None
    assert settings.reasoning.effort == "high"
    assert (settings.temperature, settings.parallel_tool_calls) == (0.5, False)
    texts = [m.parts[0].text for m in mixed.messages[:3] if isinstance(m.parts[0], Text)]
    assert texts == ["Above all.", "And this.", "Be brief."]
    thinking = read({**chat, "thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 5000})
    assert thinking.settings.reasoning is not None
    assert (thinking.settings.reasoning.budget, thinking.settings.max_tokens) == (2000, 5000)


@pytest.mark.parametrize(
    ("choice", "want"),
    [
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ("any", ToolChoice("required")),
        ({"type": "auto"}, ToolChoice("auto")),
        ({"type": "any"}, ToolChoice("required")),
        ({"type": "none"}, ToolChoice("none")),
        ({"type": "required"}, ToolChoice("required")),
        ({"type": "custom", "name": "ApplyPatch"}, ToolChoice("named", "ApplyPatch")),
        ({"type": "custom", "custom": {"name": "ApplyPatch"}}, ToolChoice("named", "ApplyPatch")),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "Read"}]},
            ToolChoice("auto", allowed=("Read",)),
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "Read"}}],
                },
            },
            ToolChoice("required", allowed=("Read",)),
        ),
        (None, None),
        *((form, ToolChoice("named", "Read")) for form in CHOICES.values()),
    ],
    ids=str,
)
def test_tool_choice_in_every_form(choice: Any, want: ToolChoice | None) -> None:
    for read_as in ("nested", "flat", "bare"):
        request = read({**body({"read": read_as, "apply": "flat"}), "tool_choice": choice})
        assert request.settings.tool_choice == want


def test_anthropics_choice_may_forbid_parallel_calls() -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert read({**body(), "tool_choice": choice}).settings.parallel_tool_calls is False


def test_empty_content_is_written_in_a_form_that_upstreams_accept() -> None:
    """Cursor sends `content: []` and null, which OpenAI's and other servers refuse."""
    given = body({"called": "chat-empty"})
    given["tools"] = given["tools"][:1]
    given["messages"] = [*given["messages"][:4], {"role": "assistant", "content": []}]
    given["messages"][3]["content"] = None
    messages = sent(read(given), "openai-chat", Target(model="up"))["messages"]
    assert [message["content"] for message in messages[2:]] == [None, "", ""]
    given["input"] = given.pop("messages")
    messages = sent(read(given), "openai-chat", Target(model="up"))["messages"]
    assert [message["content"] for message in messages[2:4]] == [None, ""]


@pytest.mark.parametrize("content", ["", "Reading.", [{"type": "text", "text": "Reading.", "x": 1}]])
def test_an_escaped_id_in_a_mixture_is_restored_for_chat(content: Any) -> None:
    """No part of a mixture goes to a Chat server as the client spelled it."""
    function = {"name": "Read", "arguments": "{}", "parsed_arguments": {}}
    call = {"id": "dgm-a-3a1", "type": "function", "index": 0, "function": function, "x": 1}
    given = {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "assistant", "content": content, "tool_calls": [call], "x": 1},
            {
                "role": "tool",
                "tool_call_id": "dgm-a-3a1",
                "content": [{"type": "text", "text": "ok", "x": 1}],
            },
        ],
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
    }
    written = sent(read(given), "openai-chat")["messages"]
    called = {"id": "a:1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    assert written == [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Reading." if content else None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "a:1", "content": "ok"},
    ]


def test_a_tool_that_is_declared_twice_is_one() -> None:
    given = body({"apply": "flat"})
    given["tools"] += [APPLY_TOOL["nested"], READ_TOOL["bare"]]
    assert [tool.name for tool in read(given).tools] == ["Read", "ApplyPatch"]


def test_reasoning_comes_first_and_images_stay() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    given = {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [picture, {"type": "image_url", "image_url": {"url": "https://x/y"}}],
            },
            {"role": "assistant", "content": [signed, {"type": "text", "text": "A cat."}]},
            {"role": "user", "content": "Thanks."},
        ],
    }
    request = read(given)
    first, second, _ = request.messages
    assert [value.kind for value in first.parts] == ["image", "image"]  # type: ignore[union-attr]
    assert isinstance(second.parts[0], Thinking)
    assert (second.parts[0].text, second.parts[1]) == ("Hm.", Text("A cat."))
    assert sent(request, "anthropic")["messages"][0]["content"][0]["source"]["data"] == "aGk="


def test_cursors_own_protocol_streams_by_default() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    for value, want in (
        (asked, True),
        ({**asked, "stream": False}, False),
        ({**asked, "stream": True}, True),
    ):
        assert PROTOCOL.read_request(json.dumps(value).encode(), "").stream is want
    assert CHAT.read_request(json.dumps(asked).encode(), "").stream is False


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"input": [{"role": "user", "content": "Hi"}]}, "input: cannot be combined with messages"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": None, "input": []}, "must not be empty"),
        ({"model": None}, "model"),
        ({"tool_choice": {"type": "tool", "name": "Nobody"}}, "Nobody"),
        ({"tool_choice": "Nobody"}, "Nobody"),
        ({"tool_choice": 3}, "tool_choice"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"type": "custom", "format": {}}]}, "tools[0].name"),
        ({"tools": ["Read"]}, "tools[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_text"}]}]},
            "messages[0].content[0].text",
        ),
        ({"messages": [{"role": "clown", "content": [{"type": "input_text", "text": "x"}]}]}, "role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "b"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "zz"}]}]},
            "no earlier tool call has the id 'zz'",
        ),
        (
            {
                "messages": [
                    *body()["messages"][:3],
                    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "tool_use", "id": "a"}]},
                ]
            },
            "messages[3].content",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unreadable_body_is_refused_with_its_place(change: Json, complaint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read({**body({"apply": "flat"}), **change})
    assert complaint in str(caught.value)


FORMS = {
    "function": {"type": "function", "function": {"name": "ApplyPatch", "arguments": PATCH}},
    "custom": {"type": "custom", "custom": {"name": "ApplyPatch", "input": PATCH}},
}
FLAT_APPLY = {"type": "custom", "name": "ApplyPatch", "description": "Edit files", "format": {"type": "text"}}
NESTED_READ = {
    "type": "function",
    "function": {
        "name": "Read",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize("form", FORMS)
def test_a_patch_is_read_in_both_forms_and_written_in_the_form_of_each_upstream(
    form: str, upstream: str
) -> None:
    history = {
        "model": "m",
        "tools": [NESTED_READ, FLAT_APPLY],
        "messages": [
            {"role": "user", "content": "Change it."},
            {"role": "assistant", "content": [], "tool_calls": [{"id": "c1", **FORMS[form]}]},
            {"role": "tool", "tool_call_id": "c1", "content": "Done."},
        ],
    }
    request = read(history)
    calls = [p for m in request.messages for p in m.parts if isinstance(p, ToolCall | ToolResult)]
    assert [(p.kind, p.arguments if isinstance(p, ToolCall) else "") for p in calls] == [
        ("custom", PATCH),
        ("custom", ""),
    ]
    spelled = json.dumps(sent(request, upstream, Target(model="up")))
    if PROTOCOLS[upstream].names.custom:
        assert json.dumps(PATCH) in spelled
        assert "custom" in spelled
    else:
        assert (
            json.dumps({"input": PATCH})[1:-1] in spelled
            or json.dumps(json.dumps({"input": PATCH})) in spelled
        )


def test_reasoning_beside_an_item_without_a_type_is_written() -> None:
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAAx"}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    untyped = {"id": "fco", "call_id": "c", "output": "x"}
    user = {"role": "user", "content": "hi"}
    tools = [{"type": None, "name": "f"}]
    request = read({"model": "m", "input": [user, reasoning, call, untyped], "tools": tools})
    assert untyped in sent(request, "openai-responses")["input"]
