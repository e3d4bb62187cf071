"""Parts that cannot be carried over: one notice with the same rule at every upstream, or a refusal (law 39).

Each row of `LOSSES` is a request with one part that not every protocol supports. At every upstream the part
either arrives, or it is missing and exactly one notice says so. `REFUSED` would change the answer's meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from support.agent_requests import PNG
from support.requests import received, sent, target, wire

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
    Request,
    Settings,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.protocols.model_facts import ModelFacts
from dragoman.protocols.registry import PROTOCOLS, protocol

HI = Message("user", (Text("Hi"),))
F = Tool(name="f", parameters={"type": "object", "properties": {"a": {"type": "string"}}})


def asked(*messages: Message, tools: tuple[Tool, ...] = (), **settings: Any) -> Request:
    return Request(model="m", messages=messages or (HI,), tools=tools, settings=Settings(**settings))


def says(*parts: Part) -> Request:
    return asked(HI, Message("assistant", parts), HI)


def setting(name: str, value: Any) -> tuple[Request, Callable[[Request], bool]]:
    return asked(tools=(F,), **{name: value}), lambda heard: getattr(heard.settings, name) == value


def parts_of(request: Request, kind: type) -> list[Any]:
    return [part for message in request.messages for part in message.parts if isinstance(part, kind)]


def _strict(heard: Request) -> bool:
    return heard.tools[0].strict is True


OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
PICKY = {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 3}}}
BRANCHING = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {}}
UNANSWERED = (HI, Message("assistant", (ToolCall(id="c", name="f"),)), HI)

# Name, request, check that the part arrived, rule of the notice if it did not.
LOSSES: dict[str, tuple[Request, Callable[[Request], bool], str]] = {
    "top_k": (*setting("top_k", 7), "top-k-dropped"),
    "presence penalty": (*setting("presence_penalty", 0.5), "penalties-dropped"),
    "frequency penalty": (*setting("frequency_penalty", 0.5), "penalties-dropped"),
    "logit bias": (*setting("logit_bias", {"50256": -100}), "logit-bias-dropped"),
    "logprobs": (*setting("logprobs", 2), "logprobs-dropped"),
    "seed": (*setting("seed", 7), "seed-dropped"),
    "verbosity": (*setting("verbosity", "low"), "verbosity-dropped"),
    "temperature": (*setting("temperature", 1.5), "temperature-clamped"),
    "serial calls": (*setting("parallel_tool_calls", False), "parallel-dropped"),
    "json": (*setting("format", Format("json")), "json-mode-emulated"),
    "few tokens": (*setting("max_tokens", 3), "max-tokens-raised"),
    "effort": (
        asked(reasoning=Reasoning(effort="max")),
        lambda heard: heard.settings.reasoning is not None and heard.settings.reasoning.effort == "max",
        "effort-lowered",
    ),
    "strict tool": (
        asked(tools=(Tool(name="f", parameters=OPEN, strict=True),)),
        _strict,
        "strict-dropped",
    ),
    "schema keyword": (
        asked(tools=(Tool(name="f", parameters=PICKY),)),
        lambda heard: heard.tools[0].schema == PICKY,
        "schema-keyword-dropped",
    ),
    "branching schema": (
        asked(tools=(Tool(name="f", parameters=BRANCHING),)),
        lambda heard: heard.tools[0].schema == BRANCHING,
        "schema-keyword-dropped",
    ),
    "freeform tool": (
        asked(tools=(Tool(name="f", kind="custom"),)),
        lambda heard: heard.tools[0].kind == "custom",
        "custom-tool-emulated",
    ),
    "deferred tools": (
        asked(tools=(Tool(name="f", deferred=True), Tool(name="g", deferred=True))),
        lambda heard: heard.tools[0].deferred,
        "deferred-tools-flattened",
    ),
    "hosted tool": (
        asked(tools=(F, Tool(name="image_generation", kind="hosted", hosted="image_generation"))),
        lambda heard: len(heard.tools) == 2,
        "hosted-tool-dropped",
    ),
    "forced hosted tool": (
        asked(
            tools=(F, Tool(name="web_search", kind="hosted", hosted="web_search")),
            tool_choice=ToolChoice("named", "web_search"),
        ),
        lambda heard: heard.settings.tool_choice is not None and heard.settings.tool_choice.mode != "auto",
        "forced-choice-downgraded",
    ),
    "name of a message": (
        asked(Message("user", (Text("Hi"),), name="ann")),
        lambda heard: heard.messages[0].name == "ann",
        "message-name-dropped",
    ),
    "citation": (
        says(Text("So it is.", citations=(Citation(url="https://x.org", title="X"),))),
        lambda heard: any(text.citations for text in parts_of(heard, Text)),
        "citations-dropped",
    ),
    "context of a document": (
        asked(Message("user", (Media(kind="document", text="words", context="from a book"),))),
        lambda heard: any(media.context for media in parts_of(heard, Media)),
        "document-details-dropped",
    ),
    "picture by the model": (
        says(Text("Here"), Media(kind="image", media_type="image/png", data=PNG)),
        lambda heard: bool(parts_of(heard, Media)),
        "assistant-media-dropped",
    ),
    "opaque part": (
        says(Text("Found"), Opaque(Raw("elsewhere", {"type": "search_result"}), "search_result")),
        lambda heard: bool(parts_of(heard, Opaque)),
        "opaque-dropped",
    ),
    "call without a result": (asked(*UNANSWERED, tools=(F,)), lambda _: False, "missing-tool-result"),
    "system between call and result": (
        asked(
            HI,
            Message("assistant", (ToolCall(id="c", name="f"),)),
            Message("system", (Text("Mind."),)),
            Message("user", (ToolResult(call_id="c", parts=(Text("ok"),)),)),
            tools=(F,),
        ),
        lambda heard: heard.messages[-2].role == "system",
        "system-moved",
    ),
    "prefill": (asked(HI, Message("assistant", (Text("So"),))), lambda _: False, "prefill"),
    "too many cache marks": (
        asked(Message("user", tuple(Text(f"t{i}", Cache()) for i in range(6)))),
        lambda heard: not any(text.cache for text in parts_of(heard, Text)),  # no marks at all: silent
        "cache-marks-truncated",
    ),
    "stop sequences": (
        asked(stop=tuple(f"stop {i}" for i in range(9))),
        lambda heard: len(heard.settings.stop) in (0, 9),  # none: all stop sequences are emulated
        "stop-truncated",
    ),
    "arguments that are no object": (
        asked(
            HI,
            Message("assistant", (ToolCall(id="c", name="f", arguments='["a"'),)),
            Message("user", (ToolResult(call_id="c", parts=(Text("ok"),)),)),
            tools=(F,),
        ),
        lambda heard: parts_of(heard, ToolCall)[0].arguments == '["a"',
        "arguments-wrapped",
    ),
}


@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize(("request_", "arrived", "rule"), LOSSES.values(), ids=LOSSES)
def test_a_part_arrives_or_has_exactly_one_notice(
    upstream: str, request_: Request, arrived: Callable[[Request], bool], rule: str
) -> None:
    facts = ModelFacts(search=True, signs_calls=True)
    outgoing = sent(request_, upstream, facts=facts)
    rules = [notice.rule for notice in outgoing.notices if notice.warning]
    assert rules == ([] if arrived(received(outgoing, upstream)) else [rule])
    assert all(notice.path and notice.message for notice in outgoing.notices)
    if rules:
        with pytest.raises(BadRequest):
            sent(request_, upstream, strict=True, facts=facts)


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_foreign_reasoning_is_dropped_without_a_notice(upstream: str) -> None:
    """Reasoning belongs only to its issuer, so nothing is lost."""
    outgoing = sent(says(Thinking("Hm."), Text("So.")), upstream)
    assert outgoing.notices == ()
    assert b"Hm." not in wire(outgoing.body)


FOREIGN = Opaque(Raw("elsewhere", {"type": "x"}), "x")
REFUSED: dict[str, tuple[Request, str]] = {
    "several answers": (asked(n=2), "settings.n"),
    "sound": (asked(audio_out=True), "settings.audio_out"),
    "background": (asked(background=True), "settings.background"),
    "video": (
        asked(Message("user", (Media(kind="video", file_id="f", media_type="video/mp4"),))),
        "messages[0]",
    ),
    "file of another provider": (asked(Message("user", (Media(kind="image", file_id="f"),))), "messages[0]"),
    "tool server": (asked(tools=(F, Tool(name="m", kind="hosted", hosted="mcp"))), "tools[1]"),
    "choice of no tool": (asked(tools=(F,), tool_choice=ToolChoice("named", "g")), "settings.tool_choice"),
}


@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize(("request_", "path"), REFUSED.values(), ids=REFUSED)
def test_parts_that_would_change_the_answer_are_refused(upstream: str, request_: Request, path: str) -> None:
    with pytest.raises(BadRequest) as refused:
        sent(request_, upstream)
    assert refused.value.path.startswith(path)


GEMINI_PATH = "/v1beta/models/m:generateContent"
CONTENTS = [{"role": "user", "parts": [{"text": "Hi"}]}]
MESSAGES = [{"role": "user", "content": "Hi"}]
# Fields of one protocol: a body with the field, and its fate in other protocols.
FIELDS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "cachedContent": ("gemini", {"contents": CONTENTS, "cachedContent": "cachedContents/1"}, "refused"),
    "cached_content": ("gemini", {"contents": CONTENTS, "cached_content": "cachedContents/1"}, "refused"),
    "continuationToken": ("gemini", {"contents": CONTENTS, "continuationToken": "t"}, "refused"),
    "candidateCount": (
        "gemini",
        {"contents": CONTENTS, "generation_config": {"candidate_count": 2}},
        "refused",
    ),
    "safetySettings": ("gemini", {"contents": CONTENTS, "safetySettings": [{"category": "X"}]}, None),
    "responseModalities": (
        "gemini",
        {"contents": CONTENTS, "generationConfig": {"responseModalities": ["TEXT"]}},
        None,
    ),
    "imageConfig": (
        "gemini",
        {"contents": CONTENTS, "generationConfig": {"imageConfig": {"aspectRatio": "1:1"}}},
        "opaque-dropped",
    ),
    "VALIDATED": (
        "gemini",
        {"contents": CONTENTS, "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}}},
        None,
    ),
    "mcp_servers": (
        "anthropic",
        {"max_tokens": 1024, "messages": MESSAGES, "mcp_servers": [{"type": "tunnel", "name": "x"}]},
        "refused",
    ),
    "thread": ("anthropic", {"max_tokens": 1024, "messages": MESSAGES, "thread": {"id": "t"}}, "refused"),
    "clear_thinking": (
        "anthropic",
        {
            "max_tokens": 1024,
            "messages": MESSAGES,
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        },
        None,
    ),
    "clear_tool_uses": (
        "anthropic",
        {
            "max_tokens": 1024,
            "messages": MESSAGES,
            "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        },
        "opaque-dropped",
    ),
    "container": (
        "anthropic",
        {"max_tokens": 1024, "messages": MESSAGES, "container": "c"},
        "opaque-dropped",
    ),
    "n": ("openai-chat", {"messages": MESSAGES, "n": 2}, "refused"),
    "modalities": ("openai-chat", {"messages": MESSAGES, "modalities": ["text"]}, None),
    "prediction": (
        "openai-chat",
        {"messages": MESSAGES, "prediction": {"type": "content", "content": "x"}},
        "opaque-dropped",
    ),
    "previous_response_id": (
        "openai-responses",
        {"input": "Hi", "previous_response_id": "r_1"},
        "refused",
    ),
    "conversation": ("openai-responses", {"input": "Hi", "conversation": {"id": "conv_1"}}, "refused"),
    "prompt": ("openai-responses", {"input": "Hi", "prompt": {"id": "pmpt_1"}}, "refused"),
    "background": ("openai-responses", {"input": "Hi", "background": True}, "refused"),
    "include": (
        "openai-responses",
        {
            "input": "Hi",
            "include": ["reasoning.encrypted_content"],
            "truncation": "auto",
            "client_metadata": {"a": "b"},
            "reasoning": {"summary": "auto", "context": "all_turns"},
        },
        None,
    ),
    "max_tool_calls": ("openai-responses", {"input": "Hi", "max_tool_calls": 3}, "opaque-dropped"),
}


@pytest.mark.parametrize(
    ("client", "body", "outcome", "upstream"),
    [
        pytest.param(client, body, outcome, upstream, id=f"{name}->{upstream}")
        for (name, (client, body, outcome)), upstream in product(FIELDS.items(), PROTOCOLS)
        if client != upstream
    ],
)
def test_a_field_of_one_protocol_only(
    client: str, body: dict[str, Any], outcome: str | None, upstream: str
) -> None:
    path = GEMINI_PATH if client == "gemini" else ""
    request = protocol(client).read_request(wire({"model": "m", **body}), path)
    if outcome == "refused":
        with pytest.raises(BadRequest) as refused:
            protocol(upstream).write_request(request, target(upstream))
        assert refused.value.path
        return
    rules = [notice.rule for notice in sent(request, upstream).notices]
    assert rules == ([outcome] if outcome else [])


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_lone_surrogate_is_replaced(client: str) -> None:
    """JavaScript clients may cut a string inside a surrogate pair."""
    outgoing = sent(asked(), client)
    body = wire(outgoing.body).replace(b'"Hi"', b'"Hi \\ud83d"')
    request = protocol(client).read_request(body, outgoing.path)
    for upstream in PROTOCOLS:
        assert "Hi \ufffd".encode() in wire(sent(request, upstream).body)
