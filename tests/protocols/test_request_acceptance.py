"""Requests are written as providers accept them: members that a model or an API refuses are not sent.

The bodies are those that real clients send. The official SDKs' types judge what is written for upstreams.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from support.anew import anew
from support.requests import wire
from support.sdk_types import CHECKS

from dragoman.model.errors import BadRequest
from dragoman.model.messages import Request
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.common import call_ids
from dragoman.protocols.model_facts import ModelFacts
from dragoman.protocols.registry import PROTOCOLS, protocol, upstream_protocol

Obj = dict[str, Any]
ANTHROPIC, CHAT, GEMINI, RESPONSES = "anthropic", "openai-chat", "gemini", "openai-responses"
GENERATE = "/v1beta/models/gemini-2.5-flash:generateContent"
PDF = base64.b64encode(b"%PDF-1.4").decode()
PNG = base64.b64encode(b"\x89PNG\xfb\xff\xfe").decode()


def read(client: str, body: Obj) -> Request:
    path = GENERATE if client == GEMINI else ""
    return protocol(client).read_request(wire(body), path)


def write(request: Request, upstream: str, model: str, **facts: Any) -> Outgoing:
    """Write a request and check it with the SDK's types."""
    written = protocol(upstream).write_request(request, Target(model=model, issuer="up", **facts))
    CHECKS[upstream](written.body)
    return written


def rules(written: Outgoing) -> list[str]:
    return [notice.rule for notice in written.notices]


# ---------------------------------------------------------------- reasoning

THINKS: dict[str, Obj] = {
    ANTHROPIC: {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9000,
        "thinking": {"type": "enabled", "budget_tokens": 4000},
        "messages": [{"role": "user", "content": "Hi"}],
    },
    CHAT: {"model": "gpt-5", "reasoning_effort": "high", "messages": [{"role": "user", "content": "Hi"}]},
    GEMINI: {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 2000, "includeThoughts": True}},
    },
    RESPONSES: {
        "model": "gpt-5",
        "input": [{"role": "user", "content": "Hi"}],
        "reasoning": {"effort": "high", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    },
}
DULL = {
    ANTHROPIC: "claude-3-5-haiku-latest",
    CHAT: "gpt-4.1",
    GEMINI: "gemini-2.0-flash",
    RESPONSES: "gpt-4o",
}
BRIGHT = {ANTHROPIC: "claude-opus-4-7", CHAT: "gpt-5", GEMINI: "gemini-3-pro", RESPONSES: "o3"}
SAID = ("thinking", "reasoning", "reasoning_effort", "include", "output_config")


def reasoning_members(body: Obj) -> Obj:
    found = {key: body[key] for key in SAID if key in body}
    return found | {k: v for k, v in body.get("generationConfig", {}).items() if k == "thinkingConfig"}


# Settings in the upstream's own protocol pass unchanged for Claude and Gemini.
@pytest.mark.parametrize(
    ("client", "upstream"), [(c, u) for c in PROTOCOLS for u in PROTOCOLS if c != u or u in (CHAT, RESPONSES)]
)
@pytest.mark.parametrize("rebuilt", [False, True])
def test_only_reasoning_models_get_reasoning_settings(client: str, upstream: str, rebuilt: bool) -> None:
    request = read(client, THINKS[client])
    request = anew(request) if rebuilt else request
    assert reasoning_members(write(request, upstream, BRIGHT[upstream]).body)
    written = write(request, upstream, DULL[upstream])
    assert reasoning_members(written.body) == {}
    assert rules(written) == ["reasoning-dropped"]


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_model_without_reasoning_gets_no_reasoning_include(client: str) -> None:
    plain = {k: v for k, v in THINKS[client].items() if k not in (*SAID, "generationConfig")}
    written = write(read(client, plain), RESPONSES, "gpt-4.1-mini")
    assert "include" not in written.body
    assert rules(written) == []


def test_other_includes_stay() -> None:
    body = {**THINKS[RESPONSES], "include": ["reasoning.encrypted_content", "message.output_text.logprobs"]}
    assert write(read(RESPONSES, body), RESPONSES, "gpt-4o").body["include"] == [
        "message.output_text.logprobs"
    ]


THOUGHTS = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize(("model", "kept"), [("o3", 1), ("gpt-4.1", 0)])
def test_only_reasoning_models_get_reasoning_back(rebuilt: bool, model: str, kept: int) -> None:
    said = {"type": "message", "role": "assistant", "content": "Yes."}
    body = {"model": "m", "input": [{"role": "user", "content": "x"}, THOUGHTS, said]}
    request = read(RESPONSES, body)
    written = protocol(RESPONSES).write_request(anew(request) if rebuilt else request, Target(model=model))
    assert [item.get("type") for item in written.body["input"]].count("reasoning") == kept
    assert len(written.body["input"]) == 2 + kept


def test_the_config_overrides_the_name() -> None:
    request = read(ANTHROPIC, THINKS[ANTHROPIC])
    reasons, dull = ModelFacts(reasons=True), ModelFacts(reasons=False)
    assert write(request, RESPONSES, "gpt-4.1", facts=reasons).body["reasoning"]["effort"] == "low"
    assert "include" not in write(request, RESPONSES, "my-deployment", facts=dull).body
    assert write(request, RESPONSES, "my-deployment").body["include"] == ["reasoning.encrypted_content"]


# ---------------------------------------------------------------- names after a tool search

SEARCHED: Obj = {
    "model": "gpt-5.4",
    "input": [
        {"role": "user", "content": "Weather in Paris?"},
        {"type": "tool_search_call", "id": "ts_1", "arguments": {"q": "weather"}, "execution": "server"},
        {
            "type": "tool_search_output",
            "id": "tso_1",
            "execution": "server",
            "tools": [
                {
                    "type": "function",
                    "name": "get_weather",
                    "defer_loading": True,
                    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
                }
            ],
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "namespace": "get_weather",
            "arguments": '{"city":"Paris"}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    ],
    "tools": [{"type": "tool_search"}],
}


def names_in(body: Any) -> set[str]:
    """Every tool name in a body: in declarations, calls and results."""
    if isinstance(body, list):
        return {name for item in body for name in names_in(item)}
    if not isinstance(body, dict):
        return set()
    own = {body["name"]} if isinstance(body.get("name"), str) and "toolset" not in str(body) else set()
    return own | {name for value in body.values() for name in names_in(value)}


@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, GEMINI])
@pytest.mark.parametrize("namespace", ["get_weather", None])
def test_calls_and_declarations_have_one_name(upstream: str, namespace: str | None) -> None:
    call = {**SEARCHED["input"][3], "namespace": namespace}
    body = {**SEARCHED, "input": [*SEARCHED["input"][:3], call, SEARCHED["input"][4]]}
    written = write(read(RESPONSES, body), upstream, BRIGHT[upstream])
    assert names_in(written.body) == {"get_weather"}


@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, GEMINI])
@pytest.mark.parametrize("namespace", ["crm", None])
def test_a_call_without_its_namespace_is_the_declared_tools(upstream: str, namespace: str | None) -> None:
    tool = {"type": "function", "name": "find", "parameters": {"type": "object"}}
    call = {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"}
    body = {
        "model": "m",
        "tools": [{"type": "namespace", "name": "crm", "description": "d", "tools": [tool]}],
        "input": [
            {"role": "user", "content": "x"},
            call | ({"namespace": namespace} if namespace else {}),
            {"type": "function_call_output", "call_id": "c", "output": "y"},
        ],
    }
    assert names_in(write(read(RESPONSES, body), upstream, BRIGHT[upstream]).body) == {"crm__find"}


# ---------------------------------------------------------------- tools without a type

FUNCTION = {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
UNTYPED: Obj = {
    "model": "mistral-large-latest",
    "messages": [{"role": "user", "content": "1+1"}],
    "tools": [{"function": FUNCTION}, {"type": None, "function": {**FUNCTION, "name": "sub"}}],
    "tool_choice": {"function": {"name": "add"}},
}


@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_tool_without_a_type_is_a_function(upstream: str, rebuilt: bool) -> None:
    request = read(CHAT, UNTYPED)
    assert [(tool.name, tool.kind) for tool in request.tools] == [("add", "function"), ("sub", "function")]
    written = write(anew(request) if rebuilt else request, upstream, BRIGHT[upstream])
    heard = protocol(upstream).read_request(wire(written.body), written.path)
    assert [tool.name for tool in heard.tools] == ["add", "sub"]
    choice = heard.settings.tool_choice
    assert choice is not None
    assert choice.name == "add" or choice.allowed == ("add",)


@pytest.mark.parametrize(("upstream", "expected"), [(ANTHROPIC, {"type": "any"}), (RESPONSES, "required")])
def test_any_of_mistral_means_required(upstream: str, expected: Any) -> None:
    request = read(CHAT, {**UNTYPED, "tool_choice": "any"})
    assert write(request, upstream, BRIGHT[upstream]).body["tool_choice"] == expected


# ---------------------------------------------------------------- media

URL_SAFE = PNG.replace("+", "-").replace("/", "_").rstrip("=")
PICTURE: Obj = {
    "contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": URL_SAFE}}]}]
}


@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, RESPONSES])
def test_base64_has_the_alphabet_of_the_upstream(upstream: str) -> None:
    assert URL_SAFE != PNG
    body = str(write(read(GEMINI, PICTURE), upstream, BRIGHT[upstream]).body)
    assert PNG in body
    assert URL_SAFE not in body


@pytest.mark.parametrize("rebuilt", [False, True])
def test_gemini_gets_url_safe_base64_unchanged(rebuilt: bool) -> None:
    request = read(GEMINI, PICTURE)
    body = write(anew(request) if rebuilt else request, GEMINI, "gemini-3-pro").body
    assert body["contents"] == PICTURE["contents"]


SHOT: Obj = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "tools": [{"name": "shot", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": f"toolu_{n}", "name": "shot", "input": {}} for n in "12"],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": f"toolu_{n}",
                    "content": [
                        {"type": "text", "text": f"screen {n}"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                        },
                    ],
                }
                for n in "12"
            ]
            + [{"type": "text", "text": "And?"}],
        },
    ],
}


def test_media_of_results_is_in_the_user_turn_before_gemini_3() -> None:
    *_, turn = write(read(ANTHROPIC, SHOT), GEMINI, "gemini-2.5-flash").body["contents"]
    assert turn["role"] == "user"
    kinds = [next(iter(part)) for part in turn["parts"]]
    assert kinds == [*["functionResponse"] * 2, *["text", "inlineData"] * 2, "text"]
    assert all("parts" not in part["functionResponse"] for part in turn["parts"][:2])
    assert turn["parts"][0]["functionResponse"]["response"]["output"].startswith("screen 1")


def test_media_of_results_is_in_the_result_from_gemini_3_on() -> None:
    *_, turn = write(read(ANTHROPIC, SHOT), GEMINI, "gemini-3-pro").body["contents"]
    assert [next(iter(part)) for part in turn["parts"]] == ["functionResponse", "functionResponse", "text"]
    assert turn["parts"][0]["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": PNG}}
    ]


SOUND: Obj = {
    "model": "gpt-4o-audio-preview",
    "messages": [
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}],
        }
    ],
}


@pytest.mark.parametrize("upstream", [ANTHROPIC, RESPONSES])
def test_audio_is_refused_with_its_name(upstream: str) -> None:
    with pytest.raises(BadRequest, match=r"messages\[0\].*does not accept audio"):
        write(read(CHAT, SOUND), upstream, BRIGHT[upstream])


def test_audio_goes_to_models_that_accept_it() -> None:
    heard: Obj = {"contents": [{"parts": [{"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}]}]}
    request = read(GEMINI, heard)
    assert "input_audio" in str(write(request, CHAT, "gpt-4o-audio-preview").body)
    with pytest.raises(BadRequest, match="gpt-4o does not accept audio"):
        write(request, CHAT, "gpt-4o")


ADDRESS = "https://example.com/report"
LINKED: dict[str, Obj] = {
    CHAT: {
        "model": "m",
        "messages": [
            {
                "role": "user",
                "content": [{"type": "file", "file": {"filename": "r.pdf", "file_data": ADDRESS}}],
            }
        ],
    },
    RESPONSES: {
        "model": "m",
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_file", "filename": "r.pdf", "file_data": ADDRESS}],
            }
        ],
    },
}


@pytest.mark.parametrize(
    ("client", "upstream", "expected"),
    [
        (CHAT, ANTHROPIC, {"source": {"type": "url", "url": ADDRESS}}),
        (CHAT, RESPONSES, {"file_url": ADDRESS}),
        (CHAT, GEMINI, {"fileData": {"mimeType": "application/pdf", "fileUri": ADDRESS}}),
        (CHAT, CHAT, {"file": {"filename": "r.pdf", "file_data": ADDRESS}}),
        (RESPONSES, ANTHROPIC, {"source": {"type": "url", "url": ADDRESS}}),
        (RESPONSES, GEMINI, {"fileData": {"mimeType": "application/pdf", "fileUri": ADDRESS}}),
    ],
)
def test_the_url_of_a_document_stays_a_url(client: str, upstream: str, expected: Obj) -> None:
    request = read(client, LINKED[client])
    body = write(request, upstream, BRIGHT[upstream]).body
    (message,) = body.get("messages") or body.get("input") or body["contents"]
    (part,) = message.get("content") or message["parts"]
    assert expected.items() <= part.items()


NOTES = base64.b64encode("Straße".encode()).decode()


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
@pytest.mark.parametrize("name", ["notes.txt", None])
def test_text_documents_become_text(upstream: str, name: str | None) -> None:
    data = {"mimeType": "text/plain", "data": NOTES} | ({"displayName": name} if name else {})
    request = read(GEMINI, {"contents": [{"parts": [{"text": "Read."}, {"inlineData": data}]}]})
    body = write(request, upstream, BRIGHT[upstream]).body
    (message,) = body.get("messages") or body["input"]
    assert message["content"][1]["text"] == ("notes.txt\n\nStraße" if name else "Straße")


@pytest.mark.parametrize("upstream", [ANTHROPIC, RESPONSES])
def test_a_text_document_is_recognized_by_its_name(upstream: str) -> None:
    file = {"filename": "notes.md", "file_data": NOTES}
    request = read(
        CHAT, {"model": "m", "messages": [{"role": "user", "content": [{"type": "file", "file": file}]}]}
    )
    assert "Straße" in str(write(request, upstream, BRIGHT[upstream]).body)


@pytest.mark.parametrize(
    ("mime", "name"),
    [("application/pdf", "document.pdf"), ("application/msword", "document.doc")],
)
def test_a_file_without_a_name_is_named_by_its_type(mime: str, name: str) -> None:
    request = read(GEMINI, {"contents": [{"parts": [{"inlineData": {"mimeType": mime, "data": PDF}}]}]})
    (message,) = write(request, CHAT, "gpt-5").body["messages"]
    assert message["content"][0]["file"]["filename"] == name


# ---------------------------------------------------------------- searching

SEARCHES: dict[str, Obj] = {
    ANTHROPIC: {
        "model": "m",
        "max_tokens": 10,
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "messages": [{"role": "user", "content": "News?"}],
    },
    CHAT: {"model": "m", "web_search_options": {}, "messages": [{"role": "user", "content": "News?"}]},
    GEMINI: {"contents": [{"parts": [{"text": "News?"}]}], "tools": [{"googleSearch": {}}]},
    RESPONSES: {"model": "m", "input": "News?", "tools": [{"type": "web_search"}]},
}


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("rebuilt", [False, True])
def test_only_models_with_search_get_the_search_tool(client: str, rebuilt: bool) -> None:
    request = read(client, SEARCHES[client])
    request = anew(request) if rebuilt else request
    assert write(request, CHAT, "gpt-4o-search-preview").body["web_search_options"] == {}
    written = write(request, CHAT, "gpt-4o")
    assert "web_search_options" not in written.body
    assert rules(written) == ["hosted-tool-dropped"]


# ---------------------------------------------------------------- shapes of a conversation

CALLS_FIRST: Obj = {
    "model": "m",
    "input": [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "y"},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
}


@pytest.mark.parametrize(("upstream", "key"), [(ANTHROPIC, "messages"), (GEMINI, "contents")])
def test_the_first_message_is_the_users(upstream: str, key: str) -> None:
    written = write(read(RESPONSES, CALLS_FIRST), upstream, BRIGHT[upstream])
    assert [turn["role"] for turn in written.body[key]][::2] == ["user", "user"]
    assert rules(written) == ["placeholder-added"]


OPAQUE: dict[str, Obj] = {
    RESPONSES: {
        "model": "m",
        "input": [
            {"role": "user", "content": "a"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
            {"role": "user", "content": "b"},
        ],
    },
    ANTHROPIC: {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "a"},
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                    {"type": "text", "text": ""},
                ],
            },
            {"role": "user", "content": "b"},
        ],
    },
    GEMINI: {
        "contents": [
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]},
            {"role": "user", "parts": [{"text": "b"}]},
        ]
    },
}


@pytest.mark.parametrize(("client", "upstream"), [(c, u) for c in OPAQUE for u in PROTOCOLS if c != u])
def test_an_empty_turn_is_dropped(client: str, upstream: str) -> None:
    body = write(read(client, OPAQUE[client]), upstream, BRIGHT[upstream]).body
    turns = body.get("messages") or body.get("input") or body["contents"]
    assert {turn["role"] for turn in turns} == {"user"}
    assert all(turn.get("content") or turn.get("parts") for turn in turns)


# ---------------------------------------------------------------- what else providers differ in

REPEATED: Obj = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "user", "content": "?"},
        *[
            message
            for n in "12"
            for message in (
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "tool_call_id": "call_0", "content": f"result {n}"},
            )
        ],
    ],
}


@pytest.mark.parametrize("upstream", [ANTHROPIC, RESPONSES, "bedrock-converse"])
def test_ids_that_repeat_become_distinct(upstream: str) -> None:
    """Some providers begin to count anew in every turn."""
    target = Target(model=BRIGHT.get(upstream, "anthropic.claude-opus-4-7"))
    body = upstream_protocol(upstream).write_request(read(CHAT, REPEATED), target).body
    names = ("call_id", "toolUseId", "tool_use_id")
    ids = [item[key] for item in everything(body) for key in names if key in item]
    ids += [item["id"] for item in everything(body) if item.get("type") == "tool_use"]
    assert sorted(ids) == sorted(2 * ["call_0", "call_0_2"])


def everything(value: Any) -> list[Obj]:
    """Every object in a JSON value."""
    if isinstance(value, list):
        return [found for item in value for found in everything(item)]
    if not isinstance(value, dict):
        return []
    return [value, *(found for item in value.values() for found in everything(item))]


@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize("rebuilt", [False, True])
def test_the_address_of_an_image_may_stand_alone(upstream: str, rebuilt: bool) -> None:
    """Mistral's clients send a string where OpenAI's send an object."""
    image = {"type": "image_url", "image_url": f"data:image/png;base64,{PNG}"}
    request = read(CHAT, {"model": "m", "messages": [{"role": "user", "content": [image]}]})
    target = Target(model=BRIGHT[upstream])
    body = protocol(upstream).write_request(anew(request) if rebuilt else request, target).body
    assert PNG in str(body)
    if upstream == CHAT:
        assert body["messages"][0]["content"] == [image]


def test_gemini_gets_no_guessed_media_type() -> None:
    url = "https://example.com/picture/17"
    image = {"type": "image_url", "image_url": {"url": url}}
    request = read(CHAT, {"model": "m", "messages": [{"role": "user", "content": [image]}]})
    assert write(request, GEMINI, "gemini-3-pro").body["contents"][0]["parts"] == [
        {"fileData": {"fileUri": url}}
    ]


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_schema_without_a_name_gets_one(upstream: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    body: Obj = {"model": "sonar", "messages": [{"role": "user", "content": "?"}], "response_format": wanted}
    request = read(CHAT, body)
    assert request.settings.format is not None
    if upstream == CHAT:  # Perplexity takes it as it is
        sent = protocol(CHAT).write_request(request, Target(model="sonar")).body
        assert sent["response_format"] == wanted
    write(
        anew(request) if upstream == CHAT else request,
        upstream,
        BRIGHT[upstream],
    )


SERVED: Obj = {
    "model": "m",
    "input": "?",
    "tools": [
        {"type": "function", "name": "f", "parameters": {"type": "object"}},
        {
            "type": "mcp",
            "server_label": "docs",
            "server_url": "https://d.example",
            "require_approval": "never",
        },
    ],
}


@pytest.mark.parametrize(("model", "both"), [("gemini-2.5-pro", False), ("gemini-3-pro", True)])
def test_gemini_before_3_takes_no_servers_beside_functions(model: str, both: bool) -> None:
    written = protocol(GEMINI).write_request(read(RESPONSES, SERVED), Target(model=model))
    assert ("mcpServers" in str(written.body), rules(written)) == (
        both,
        [] if both else ["hosted-tool-dropped"],
    )


@pytest.mark.parametrize("compatible", [False, True])
def test_the_text_of_a_search_result_stays_in_the_tool_message(compatible: bool) -> None:
    found = {
        "type": "search_result",
        "source": "https://example.com",
        "title": "Ruby",
        "content": [{"type": "text", "text": "Made in 1995."}],
    }
    body = {
        **SHOT,
        "messages": [
            *SHOT["messages"][:2],
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": [found]} for n in "12"
                ],
            },
        ],
    }
    written = write(read(ANTHROPIC, body), CHAT, "gpt-5", chat_compatible=compatible).body
    results = [message for message in written["messages"] if message["role"] == "tool"]
    assert written["messages"][-2:] == results
    assert ["Ruby\n\nMade in 1995." in result["content"] for result in results] == [True, True]


# ---------------------------------------------------------------- structured output and schemas

OPENAI = pytest.mark.parametrize("upstream", [CHAT, RESPONSES])


def json_mode(text: str, schema: Obj | None = None) -> Request:
    config: Obj = {"responseMimeType": "application/json"}
    config |= {"responseJsonSchema": schema} if schema else {}
    system = {"parts": [{"text": "You are terse."}]}
    body = {"contents": [{"parts": [{"text": text}]}], "systemInstruction": system}
    return read(GEMINI, {**body, "generationConfig": config})


@OPENAI
@pytest.mark.parametrize(("text", "added"), [("List three colours.", True), ("Colours, as Json.", False)])
def test_json_mode_has_the_word_in_the_prompt(upstream: str, text: str, added: bool) -> None:
    """OpenAI and DeepSeek refuse JSON mode without it. Gemini has no such rule."""
    written = write(json_mode(text), upstream, "gpt-4.1")
    assert [(n.rule, n.warning) for n in written.notices] == [("json-mode-emulated", False)] * added
    prompt = str(written.body.get("messages") or written.body["input"])  # not `instructions`
    assert ("Answer with JSON only" in prompt) is added
    assert "json_object" in str(written.body)


@OPENAI
def test_an_answer_that_is_no_object_is_asked_for_in_words(upstream: str) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    written = write(json_mode("Colours?", schema), upstream, "gpt-4.1")
    assert rules(written) == ["json-mode-emulated"]
    assert "json_schema" not in str(written.body)
    assert '{"type":"array","items":{"type":"string"}}' in str(written.body)
    compatible = write(json_mode("Colours?", schema), CHAT, "some-model", chat_compatible=True)
    assert compatible.body["response_format"]["json_schema"]["schema"] == schema


@OPENAI
@pytest.mark.parametrize("client", [ANTHROPIC, GEMINI])
def test_parameters_are_an_object_at_their_top_level(client: str, upstream: str) -> None:
    schema: Obj = {"type": ["object", "null"], "properties": {"a": {"type": "string"}}}
    branches: Obj = {
        "type": "object",
        "anyOf": [{"required": ["a"]}],
        "properties": {"a": {"type": "string"}},
    }
    tools: Obj = {
        ANTHROPIC: [{"name": f"f{n}", "input_schema": s} for n, s in enumerate((schema, branches))],
        GEMINI: [
            {
                "functionDeclarations": [
                    {"name": f"f{n}", "parametersJsonSchema": s} for n, s in enumerate((schema, branches))
                ]
            }
        ],
    }[client]
    body = {**SEARCHES[client], "tools": tools}
    written = write(read(client, body), upstream, "gpt-4.1")
    sent = [tool.get("function", tool)["parameters"] for tool in written.body["tools"]]
    assert sent == 2 * [{"type": "object", "properties": {"a": {"type": "string"}}}]
    assert "schema-keyword-dropped" in rules(written)


@OPENAI
def test_openai_gets_ids_of_at_most_64_characters(upstream: str) -> None:
    long = "call_" + "x" * 90
    body = {
        **SHOT,
        "messages": [
            SHOT["messages"][0],
            {"role": "assistant", "content": [{"type": "tool_use", "id": long, "name": "shot", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": long, "content": "x"}]},
        ],
    }
    target = Target(model="gpt-4.1", ids=call_ids.OPENAI)
    written = protocol(upstream).write_request(read(ANTHROPIC, body), target).body
    ids = [item[key] for item in everything(written) for key in ("call_id", "tool_call_id") if key in item]
    ids += [call["id"] for item in everything(written) for call in item.get("tool_calls", ())]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert len(ids[0]) <= 64


@OPENAI
def test_image_jpg_is_image_jpeg(upstream: str) -> None:
    data = {"mimeType": "image/jpg", "data": PNG}
    written = write(read(GEMINI, {"contents": [{"parts": [{"inlineData": data}]}]}), upstream, "gpt-4.1")
    assert f"data:image/jpeg;base64,{PNG}" in str(written.body)


@pytest.mark.parametrize(
    ("upstream", "model", "added"),
    [
        (ANTHROPIC, "claude-sonnet-4-5", False),
        (ANTHROPIC, "claude-opus-4-8", True),
        ("bedrock-converse", "anthropic.claude-sonnet-4-5-20250929-v1:0", False),
        ("bedrock-converse", "us.anthropic.claude-opus-4-8-v1:0", True),
    ],
)
def test_a_refused_prefill_gets_a_user_turn(upstream: str, model: str, added: bool) -> None:
    talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "It is "}]
    written = upstream_protocol(upstream).write_request(
        read(CHAT, {"model": "m", "messages": talk}), Target(model=model)
    )
    roles = [turn["role"] for turn in written.body["messages"]]
    assert roles == ["user", "assistant", *["user"] * added]
    assert "prefill" in rules(written) or upstream == "bedrock-converse"


@pytest.mark.parametrize(
    ("upstream", "model"),
    [(ANTHROPIC, "claude-opus-4-8"), ("bedrock-converse", "anthropic.claude-opus-4-8-v1:0")],
)
def test_calls_at_the_end_are_no_prefill(upstream: str, model: str) -> None:
    body = {**REPEATED, "messages": REPEATED["messages"][:2]}
    written = upstream_protocol(upstream).write_request(read(CHAT, body), Target(model=model))
    assert [turn["role"] for turn in written.body["messages"]] == ["user", "assistant"]


# ---------------------------------------------------------------- what only some providers' clients send

ITEMLESS = {
    "type": "object",
    "properties": {
        "paths": {"type": "array"},
        "pair": {"type": ["array", "null"], "prefixItems": [{"type": "string"}]},
        "rows": {"type": "array", "items": {"type": "array"}},
        "items": {"type": "string"},
    },
}


@OPENAI
@pytest.mark.parametrize("client", [ANTHROPIC, GEMINI])
def test_openai_gets_items_for_every_array(upstream: str, client: str) -> None:
    """OpenAI refuses `{"type": "array"}`: "array schema missing items"."""
    if client == ANTHROPIC:
        tools = [{"name": "f", "input_schema": ITEMLESS}]
        body: Obj = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "x"}]}
    else:
        tools = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": ITEMLESS}]}]
        body = {"contents": [{"parts": [{"text": "x"}]}]}
    written = write(read(client, {**body, "tools": tools}), upstream, "gpt-4.1")
    (tool,) = written.body["tools"]
    properties = tool.get("function", tool)["parameters"]["properties"]
    assert properties == {
        "paths": {"type": "array", "items": {}},
        "pair": {"type": ["array", "null"], "prefixItems": [{"type": "string"}], "items": {}},
        "rows": {"type": "array", "items": {"type": "array", "items": {}}},
        "items": {"type": "string"},
    }
    assert rules(written) == []


@pytest.mark.parametrize("upstream", [ANTHROPIC, GEMINI])
def test_a_schema_with_arrays_without_items_stays_as_it_is(upstream: str) -> None:
    functions = [{"type": "function", "function": {"name": "f", "parameters": {**ITEMLESS, "required": []}}}]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": functions}
    written = write(read(CHAT, body), upstream, BRIGHT[upstream])
    (tool,) = written.body["tools"]
    schema = tool.get("input_schema") or tool["functionDeclarations"][0]["parametersJsonSchema"]
    assert schema["properties"] == ITEMLESS["properties"]


DOCUMENT = {"type": "document_url", "document_url": f"data:application/pdf;base64,{PDF}"}


@pytest.mark.parametrize("upstream", [ANTHROPIC, GEMINI, RESPONSES])
def test_a_document_of_a_mistral_client_reaches_the_model(upstream: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": [DOCUMENT]}]}
    written = write(read(CHAT, body), upstream, BRIGHT[upstream])
    assert PDF in str(written.body)
    assert rules(written) == []


def test_a_mistral_upstream_gets_the_document_in_its_own_form() -> None:
    said = [{"role": "user", "content": [{**DOCUMENT, "document_name": "a.pdf"}]}]
    request = read(CHAT, {"model": "m", "messages": said})
    for each in (request, anew(request)):
        target = Target(model="mistral-small", chat_compatible=True)
        assert protocol(CHAT).write_request(each, target).body["messages"] == said


@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, RESPONSES])
def test_types_written_as_numbers_are_read(upstream: str) -> None:
    """Protobuf's JSON has them with `enum-encoding=int`, as the older SDK for Vertex AI asks for."""
    schema = {"type": 6, "properties": {"city": {"type": 1}, "days": {"type": 5, "items": {"type": 3}}}}
    tools = [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]
    written = write(
        read(GEMINI, {"contents": [{"parts": [{"text": "x"}]}], "tools": tools}), upstream, BRIGHT[upstream]
    )
    (tool,) = written.body["tools"]
    parameters = tool.get("input_schema") or tool.get("function", tool)["parameters"]
    assert parameters == {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
    }


@pytest.mark.parametrize("upstream", [CHAT, GEMINI, RESPONSES])
def test_the_summary_of_a_compaction_reaches_other_upstreams(upstream: str) -> None:
    turns = [
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": [{"type": "compaction", "content": "We sorted the list."}]},
        {"role": "user", "content": "And now?"},
    ]
    request = read(ANTHROPIC, {"model": "m", "max_tokens": 99, "messages": turns})
    assert "We sorted the list." in str(write(request, upstream, BRIGHT[upstream]).body)
    body = protocol(ANTHROPIC).write_request(request, Target(model="claude-opus-4-8")).body
    assert body["messages"] == turns


@OPENAI
@pytest.mark.parametrize("client", [CHAT, GEMINI])
@pytest.mark.parametrize("count", [1, 2])
def test_an_empty_prompt_stays_one_message(upstream: str, client: str, count: int) -> None:
    said: Obj = {"model": "m", "messages": [{"role": "user", "content": ""}]}
    if client == GEMINI:
        said = {"contents": [{"parts": [{"text": ""}] * count}]}
    body = write(read(client, said), upstream, "gpt-4.1").body
    (message,) = body.get("messages") or body["input"]
    assert message["content"] == ""
