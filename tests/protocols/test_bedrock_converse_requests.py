"""Requests for Bedrock's Converse. botocore's own description of the API judges them."""

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from hypothesis import given, settings
from support.agent_requests import AGENTS, PNG, AgentRequest
from support.neutral_requests import requests
from support.requests import posted

from dragoman.model.errors import BadRequest
from dragoman.model.messages import (
    Cache,
    Citation,
    Format,
    Media,
    Message,
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
from dragoman.protocols.bedrock_converse import PROTOCOL

MODEL = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))
SHAPE = MODEL.operation_model("ConverseStream").input_shape
CLAUDE, LLAMA = "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "meta.llama3-1-70b-instruct-v1:0"
ASKED = (Message("user", (Text("Hello"),)),)


def written(request: Request, model: str = CLAUDE, **facts: Any) -> Outgoing:
    outgoing = PROTOCOL.write_request(request, Target(model=model, issuer="bedrock", **facts))
    judge(outgoing.body, model)
    return outgoing


def ask(*messages: Message, model: str = CLAUDE, tools: tuple[Tool, ...] = (), **said: Any) -> Any:
    request = Request(model="m", messages=messages or ASKED, tools=tools, settings=Settings(**said))
    return written(request, model).body


def rules(request: Request, model: str = CLAUDE, **facts: Any) -> set[str]:
    return {notice.rule for notice in written(request, model, **facts).notices}


def judge(body: Any, model: str) -> None:
    """Fails unless boto3 would send this body."""
    report = ParamValidator().validate({"modelId": model, **_blobs(body)}, SHAPE)
    assert not report.has_errors(), report.generate_report()
    roles = [message["role"] for message in body["messages"]]
    assert roles[0] == "user"
    assert all(one != next for one, next in pairwise(roles))
    for message in body["messages"]:
        assert message["content"]
        for block in message["content"]:
            assert len(block) == 1
            call = block.get("toolUse") or block.get("toolResult") or {"toolUseId": "x"}
            assert PROTOCOL.ids.legal(call["toolUseId"])
    names = [block["document"]["name"] for block in blocks(body) if "document" in block]
    assert len(names) == len(set(names))
    assert all(0 < len(name) <= 200 and "  " not in name for name in names)
    assert sum("cachePoint" in block for block in blocks(body)) <= 4
    for tool in body.get("toolConfig", {}).get("tools", ()):
        if "cachePoint" in tool:
            continue
        name = tool["toolSpec"]["name"]
        assert 0 < len(name) <= 64
        assert name.replace("_", "").replace("-", "").isalnum()
        assert name.isascii()


def blocks(body: Any) -> list[Any]:
    """All content blocks, also those in results, and the tools."""
    contents = [block for message in body["messages"] for block in message["content"]]
    inner = [block for one in contents if "toolResult" in one for block in one["toolResult"]["content"]]
    return [*contents, *inner, *body.get("system", ()), *body.get("toolConfig", {}).get("tools", ())]


def _blobs(value: Any) -> Any:
    """JSON has base64 where boto3 takes bytes."""
    if isinstance(value, list):
        return [_blobs(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(inner, validate=True)
        if key in ("bytes", "redactedContent") and isinstance(inner, str)
        else inner
        if key in ("input", "json")
        else _blobs(inner)
        for key, inner in value.items()
    }


@pytest.mark.parametrize("model", [CLAUDE, LLAMA])
@pytest.mark.parametrize("sample", [pytest.param(sample, id=name) for name, sample in AGENTS.items()])
def test_the_requests_of_real_agents(sample: AgentRequest, model: str) -> None:
    request = posted(sample)
    body = written(request, model).body
    declared = [tool for tool in request.tools if tool.kind != "hosted"]
    assert len(body.get("toolConfig", {}).get("tools", ())) >= len(declared)


@settings(max_examples=150, deadline=None)
@given(requests())
def test_any_request(request: Request) -> None:
    body = written(request).body
    told = [part.text for message in request.messages for part in message.parts if isinstance(part, Text)]
    said = json.dumps(body, ensure_ascii=False)
    assert all(json.dumps(text, ensure_ascii=False)[1:-1] in said for text in told if text.strip())


def test_settings() -> None:
    body = ask(max_tokens=9, temperature=1.5, top_p=0.5, stop=("END", " "), service_tier="flex", model=LLAMA)
    assert body["inferenceConfig"] == {
        "maxTokens": 9,
        "temperature": 1,
        "topP": 0.5,
        "stopSequences": ["END"],
    }
    assert body["serviceTier"] == {"type": "flex"}
    request = Request(
        model="m", messages=ASKED, settings=Settings(temperature=1.5, seed=1, top_k=4, stop=(" ",))
    )
    assert rules(request) == {"temperature-clamped", "seed-dropped", "top-k-dropped"}
    assert written(request).stop == (" ",)


def test_claude_says_which_stop_sequence_matched() -> None:
    assert ask(stop=("END", " "))["additionalModelResponseFieldPaths"] == ["/stop_sequence"]
    assert "additionalModelResponseFieldPaths" not in ask(stop=(" ",))


def test_thinking_is_claudes_own_field() -> None:
    body = ask(reasoning=Reasoning(budget=2000), temperature=0.5, top_p=0.9)
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    assert body["inferenceConfig"] == {"maxTokens": 32_000}
    assert ask(reasoning=Reasoning(effort="none")).keys() == {"messages"}
    newest = ask(reasoning=Reasoning(effort="minimal"), model="us.anthropic.claude-opus-4-8-v1:0")
    assert newest["additionalModelRequestFields"] == {"thinking": {"type": "adaptive"}}
    assert newest["outputConfig"] == {"effort": "low"}
    request = Request(model="m", messages=ASKED, settings=Settings(reasoning=Reasoning(effort="high")))
    assert rules(request, LLAMA) == {"reasoning-dropped"}
    short = Request(
        model="m", messages=ASKED, settings=Settings(reasoning=Reasoning(effort="high"), max_tokens=90)
    )
    assert rules(short) == {"reasoning-dropped"}


TOOL = Tool(
    name="read", description=" ", parameters={"type": "object", "$schema": "x", "anyOf": [{}]}, strict=True
)


def test_tools_and_choices() -> None:
    [tool] = ask(tools=(TOOL,))["toolConfig"]["tools"]
    schema = {"type": "object", "anyOf": [{}], "properties": {}}
    assert tool == {"toolSpec": {"name": "read", "inputSchema": {"json": schema}}}
    for choice, expected in [
        (ToolChoice("auto"), None),
        (ToolChoice("required"), {"any": {}}),
        (ToolChoice("named", "read"), {"tool": {"name": "read"}}),
    ]:
        assert ask(tools=(TOOL,), tool_choice=choice)["toolConfig"].get("toolChoice") == expected
    assert "toolConfig" not in ask(tools=(TOOL,), tool_choice=ToolChoice("none"))
    other = Tool(name="write", parameters={})
    only = ask(tools=(TOOL, other), tool_choice=ToolChoice("auto", allowed=("write",)))
    assert [tool["toolSpec"]["name"] for tool in only["toolConfig"]["tools"]] == ["write"]
    thinking = Reasoning(budget=2000)
    forced = ask(tools=(TOOL,), tool_choice=ToolChoice("required"), reasoning=thinking)
    assert "toolChoice" not in forced["toolConfig"]


def test_a_conversation_with_calls_keeps_its_tools() -> None:
    calls = (
        *ASKED,
        Message("assistant", (ToolCall(id="c.1", name="read", arguments='{"a": 1.0}'),)),
        Message("user", (ToolResult(call_id="c.1", is_error=True),)),
    )
    body = ask(*calls)
    assert body["toolConfig"]["tools"][0]["toolSpec"]["name"] == "read"
    assert body["messages"][1]["content"] == [
        {"toolUse": {"toolUseId": "c.1", "name": "read", "input": {"a": 1.0}}}
    ]
    assert body["messages"][2]["content"][0]["toolResult"]["status"] == "error"
    forbidden = Request(
        model="m", messages=calls, tools=(TOOL,), settings=Settings(tool_choice=ToolChoice("none"))
    )
    assert "forced-choice-downgraded" in rules(forbidden)


def test_an_answer_in_json() -> None:
    schema = Format("schema", {"type": "object"}, "it")
    body = ask(format=schema, model=LLAMA)
    assert "JSON Schema" in body["system"][0]["text"]
    assert "outputConfig" not in body
    assert rules(Request(model="m", messages=ASKED, settings=Settings(format=Format("json"))), LLAMA) == {
        "json-mode-emulated"
    }


def test_media() -> None:
    pdf = Media(kind="document", media_type="application/pdf", data=PNG, name="a/b.pdf")
    note = Media(kind="document", media_type="text/plain", text="words", name="note")
    stored = Media(kind="image", media_type="image/png", url="s3://bucket/a.png")
    [message] = ask(Message("user", (pdf, pdf, stored)))["messages"]
    assert [block.get("document", {}).get("name") for block in message["content"]] == [
        None,
        "a b pdf",
        "a b pdf 2",
        None,
    ]
    assert message["content"][0] == {"text": "Continue."}
    assert message["content"][3]["image"]["source"] == {"s3Location": {"uri": "s3://bucket/a.png"}}
    told = Media(kind="document", media_type="application/pdf", data=PNG, context="a bill")
    [message] = ask(Message("user", (told,)))["messages"]
    assert message["content"][1]["document"]["context"] == "a bill"
    assert ask(Message("user", (note,)))["messages"][0]["content"] == [{"text": "note\n\nwords"}]
    for media in (
        Media(kind="image", media_type="image/png", url="https://example.com/a.png"),
        Media(kind="image", file_id="file_1"),
        Media(kind="image", media_type="image/tiff", data=PNG),
    ):
        with pytest.raises(BadRequest, match=r"messages\[0\].parts\[0\]"):
            ask(Message("user", (media,)))


def test_unsupported_content_is_reported() -> None:
    request = Request(
        model="m",
        messages=(
            Message("assistant", (Media(kind="image", media_type="image/png", data=PNG), Refusal("No."))),
            Message("user", (Text("x", citations=(Citation(url="u"),)), Text(" ")), name="me"),
            Message("developer", (Text("Be brief."),)),
            Message("user", (Text("y"),)),
        ),
        tools=(Tool(name="web_search", kind="hosted", hosted="web_search"), TOOL),
        settings=Settings(parallel_tool_calls=False),
    )
    assert rules(request) == {
        "assistant-media-dropped",
        "citations-dropped",
        "message-name-dropped",
        "system-moved",
        "placeholder-added",
        "hosted-tool-dropped",
        "strict-dropped",
        "parallel-dropped",
    }
    with pytest.raises(BadRequest):
        written(request, strict=True)


def test_only_its_own_thoughts_go_back() -> None:
    own = Thinking("mine", Seal("bedrock-converse", "c2ln", issuer="bedrock"))
    hidden = Thinking("", Seal("bedrock-converse", "aGlkZGVu", issuer="bedrock", redacted=True))
    foreign = Thinking("theirs", Seal("anthropic", "c2ln", issuer="anthropic"))
    elsewhere = Thinking("other", Seal("bedrock-converse", "c2ln", issuer="another-account"))
    body = ask(*ASKED, Message("assistant", (own, hidden, foreign, elsewhere, Text("Hi"))), *ASKED)
    assert body["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "mine", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "aGlkZGVu"}},
        {"text": "Hi"},
    ]


@pytest.mark.parametrize("place", ["message", "tool result"])
def test_each_document_has_a_name_of_its_own(place: str) -> None:
    given = ["x 2", "x", "x", "x 3", "", "-", "n" * 300, "n" * 300, "a  b_c", None, None]
    documents = tuple(
        Media(kind="document", media_type="application/pdf", data=PNG, name=name) for name in given
    )
    if place == "message":
        body = ask(Message("user", documents))
    else:
        call = Message("assistant", (ToolCall(id="c1", name="read", arguments="{}"),))
        body = ask(*ASKED, call, Message("user", (ToolResult(call_id="c1", parts=documents),)))
    names = [block["document"]["name"] for block in blocks(body) if "document" in block]
    assert len(set(names)) == len(given)  # `judge` checks what they are made of
    assert names[:2] == ["x 2", "x"]


CACHED = Request(
    model="m",
    messages=(
        Message("system", (Text("s", cache=Cache("1h")),)),
        Message("user", (Text("u", cache=Cache()),)),
    ),
    tools=(Tool(name="read", parameters={}, cache=Cache()), Tool(name="write", parameters={})),
    settings=Settings(tool_choice=ToolChoice("named", "write")),
)
POINT = {"cachePoint": {"type": "default"}}


@pytest.mark.parametrize(
    ("model", "has_cache"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", True),
        (LLAMA, False),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6", False),
    ],
)
def test_cache_points_only_for_models_that_have_a_cache(model: str, has_cache: bool) -> None:
    body = written(CACHED, model).body
    assert ("cachePoint" in json.dumps(body)) == has_cache
    if has_cache:
        assert body["system"] == [{"text": "s"}, POINT]
        assert body["messages"][0]["content"] == [{"text": "u"}, POINT]
        assert [next(iter(tool)) for tool in body["toolConfig"]["tools"]] == [
            "toolSpec",
            "cachePoint",
            "toolSpec",
        ]
    body = written(CACHED, model, cache_marks=True).body
    assert body["system"] == [{"text": "s"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]
    assert body["messages"][0]["content"] == [{"text": "u"}, POINT]
    assert (POINT in body["toolConfig"]["tools"]) == has_cache
    assert body["toolConfig"]["toolChoice"] == {"tool": {"name": "write"}}


OLD_CLAUDE, NOVA = "anthropic.claude-3-haiku-20240307-v1:0", "amazon.nova-pro-v1:0"


@pytest.mark.parametrize(
    ("model", "marks", "added"),
    [
        (CLAUDE, "blocks", True),
        (CLAUDE.removeprefix("us."), "blocks", True),
        (NOVA, "blocks", True),
        (OLD_CLAUDE, "blocks", False),
        (OLD_CLAUDE, True, False),
        (LLAMA, "blocks", False),
        (LLAMA, True, True),
        (CLAUDE, False, False),
    ],
)
def test_a_prompt_without_marks_gets_cache_points(model: str, marks: Any, added: bool) -> None:
    messages = (
        Message("system", (Text("Be brief."),)),
        *(Message(role, (Text(f"{n}"),)) for n in range(3) for role in ("user", "assistant")),
        Message("user", (Text("And?"),)),
    )
    request = Request(model="m", messages=messages, tools=(Tool(name="f", parameters={"type": "object"}),))
    out = written(request, model, cache_marks=marks)
    turns = [turn["content"] for turn in out.body["messages"]]
    assert [POINT in blocks for blocks in turns] == [False] * 4 + [added, False, added]
    assert (out.body["system"][-1] == POINT) is added
    assert POINT not in out.body["toolConfig"]["tools"]  # Nova refuses it there
    assert [(n.rule, n.warning) for n in out.notices] == [("cache-marks-added", False)] * added
    marked = Request(model="m", messages=(Message("user", (Text("u", cache=Cache()),)),))
    carried = POINT in written(marked, model, cache_marks=marks).body["messages"][0]["content"]
    # `cache_marks = false` adds no marks. The client's own still pass to a model known to have a cache.
    assert carried is (added or model == CLAUDE)


@pytest.mark.parametrize("model", ["", ".", ".."])
def test_no_name_leads_elsewhere(model: str) -> None:
    with pytest.raises(BadRequest, match="cannot stand in a path"):
        PROTOCOL.write_request(Request(model="m", messages=ASKED), Target(model=model))
