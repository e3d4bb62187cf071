"""Cache marks for clients that set none, on requests for Anthropic."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.sdk_types import check_anthropic

from dragoman import Target, protocol
from dragoman.model.messages import Cache, Message, Request, Text
from dragoman.protocols.base import Outgoing

Json = dict[str, Any]

TARGET = Target(model="claude-x", cache_marks=True, strict=True)
EPHEMERAL = {"type": "ephemeral"}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TURNS = 6
CALLS = 3


def chat(turns: int, tools: bool = True, system: bool = True) -> tuple[str, Json]:
    messages: list[Json] = [{"role": "system", "content": "Be brief."}] if system else []
    messages.append({"role": "user", "content": "Begin."})
    for turn in range(1, turns):
        ids = [f"call_{turn}_{n}" for n in range(CALLS)]
        called = [
            {"id": id, "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
            for id in ids
        ]
        messages.append({"role": "assistant", "content": f"Turn {turn}.", "tool_calls": called})
        messages += [{"role": "tool", "tool_call_id": id, "content": f"result {id}"} for id in ids]
        if turn % 2:
            messages.append({"role": "user", "content": "Go on."})
    offered = [
        {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("read", "ls")
    ]
    return "/v1/chat/completions", {"model": "m", "messages": messages} | (
        {"tools": offered} if tools else {}
    )


def responses(turns: int, tools: bool = True, system: bool = True) -> tuple[str, Json]:
    items: list[Json] = [{"role": "user", "content": "Begin."}]
    for turn in range(1, turns):
        ids = [f"call_{turn}_{n}" for n in range(CALLS)]
        items += [
            {"type": "function_call", "call_id": i, "name": "read", "arguments": '{"path":"a"}'} for i in ids
        ]
        items += [{"type": "function_call_output", "call_id": i, "output": f"result {i}"} for i in ids]
    offered = [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("read", "ls")]
    body = {"model": "m", "input": items} | ({"tools": offered} if tools else {})
    return "/v1/responses", body | ({"instructions": "Be brief."} if system else {})


def gemini(turns: int, tools: bool = True, system: bool = True) -> tuple[str, Json]:
    contents: list[Json] = [{"role": "user", "parts": [{"text": "Begin."}]}]
    for turn in range(1, turns):
        called = [
            {"functionCall": {"id": f"{turn}_{n}", "name": "read", "args": {"path": "a"}}}
            for n in range(CALLS)
        ]
        results = [
            {"functionResponse": {"id": f"{turn}_{n}", "name": "read", "response": {"output": "b"}}}
            for n in range(CALLS)
        ]
        contents += [{"role": "model", "parts": called}, {"role": "user", "parts": results}]
    offered = {"functionDeclarations": [{"name": name, "parameters": SCHEMA} for name in ("read", "ls")]}
    body: Json = {"contents": contents} | ({"tools": [offered]} if tools else {})
    said = {"systemInstruction": {"parts": [{"text": "Be brief."}]}} if system else {}
    return "/v1beta/models/m:generateContent", body | said


def anthropic(turns: int, **members: Any) -> tuple[str, Json]:
    messages: list[Json] = [{"role": "user", "content": "Begin."}]
    for turn in range(1, turns):
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Turn {turn}."}]})
        messages.append({"role": "user", "content": [{"type": "text", "text": "Go on."}]})
    return "/v1/messages", {"model": "m", "max_tokens": 64, "messages": messages, **members}


OTHERS = {"openai-chat": chat, "openai-responses": responses, "gemini": gemini}
Made = Callable[..., tuple[str, Json]]


def written(client: str, given: tuple[str, Json], target: Target = TARGET) -> Outgoing:
    path, body = given
    request = protocol(client).read_request(json.dumps(body).encode(), path)
    return protocol("anthropic").write_request(request, target)


def blocks(body: Json) -> list[Json]:
    """All blocks that can have a mark, in the order in which Anthropic reads them."""
    system = body.get("system") or []
    said = [block for turn in body["messages"] for block in turn["content"]]
    return [*body.get("tools", []), *([{"text": system}] if isinstance(system, str) else system), *said]


def marked(body: Json) -> list[int]:
    return [at for at, block in enumerate(blocks(body)) if "cache_control" in block]


def unmarked(body: Json) -> list[bytes]:
    return [json.dumps({k: v for k, v in b.items() if k != "cache_control"}).encode() for b in blocks(body)]


@pytest.mark.parametrize("client", OTHERS)
def test_the_next_turn_reads_the_cache_of_this_turn(client: str) -> None:
    """Only the marks move, and the last mark of each turn is also a mark of the next one."""
    before: list[bytes] = []
    last = -1
    for turns in range(1, TURNS):
        body = written(client, OTHERS[client](turns)).body
        check_anthropic(body)
        now, marks = unmarked(body), marked(body)
        assert now[: len(before)] == before
        assert len(marks) <= 4
        assert marks[:2] == [1, 2], "after the tools and after the system prompt"
        assert marks[-1] == len(now) - 1, "after the last turn"
        assert last == -1 or last in marks
        before, last = now, marks[-1]
    assert len(marked(body)) == 4


@pytest.mark.parametrize("client", OTHERS)
@pytest.mark.parametrize(("tools", "system"), [(False, False), (True, False), (False, True)])
def test_missing_parts_get_no_mark(client: str, tools: bool, system: bool) -> None:
    body = written(client, OTHERS[client](1, tools, system)).body
    check_anthropic(body)
    ends = [len(body.get("tools", [])) - 1] if tools else []
    ends += [len(body.get("tools", []))] if system else []
    assert marked(body) == [*ends, len(blocks(body)) - 1]


@pytest.mark.parametrize("client", OTHERS)
def test_the_marks_are_a_notice_without_a_warning(client: str) -> None:
    (notice,) = written(client, OTHERS[client](3)).notices
    assert (notice.rule, notice.warning) == ("cache-marks-added", False)
    assert notice.message.endswith("marks after tools, system, messages[2], messages[4]")


@pytest.mark.parametrize("client", OTHERS)
def test_without_the_setting_nothing_is_marked(client: str) -> None:
    sent = written(client, OTHERS[client](3), Target(model="claude-x"))
    assert (marked(sent.body), sent.notices) == ([], ())


def test_a_client_with_its_own_marks_is_unchanged() -> None:
    path, body = chat(3)
    body["messages"][1]["content"] = [{"type": "text", "text": "Begin.", "cache_control": EPHEMERAL}]
    sent = written("openai-chat", (path, body))
    assert (marked(sent.body), sent.notices) == ([3], ())


def test_an_anthropic_client_gets_one_mark_and_keeps_its_bytes() -> None:
    given = anthropic(3, system="Be brief.")
    sent = written("anthropic", given)
    plain = written("anthropic", given, Target(model="claude-x"))
    assert sent.encoded() == plain.encoded()[:-1] + b',"cache_control":{"type":"ephemeral"}}'
    assert [notice.warning for notice in sent.notices] == [False]
    check_anthropic(sent.body)


SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}}


@pytest.mark.parametrize(
    "members",
    [
        {"cache_control": EPHEMERAL},
        {"system": [{"type": "text", "text": "Be brief.", "cache_control": EPHEMERAL}]},
        {"tools": [{"name": "ls", "input_schema": {"type": "object"}, "cache_control": EPHEMERAL}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": EPHEMERAL}]}
            ]
        },
        {
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [SEARCH, SEARCHED | {"cache_control": EPHEMERAL}]},
                {"role": "user", "content": "Go on."},
            ]
        },
    ],
    ids=["request", "system", "tool", "message", "opaque"],
)
def test_an_anthropic_client_with_its_own_marks_is_unchanged(members: Json) -> None:
    path, body = anthropic(1, **members)
    sent = written("anthropic", (path, body))
    assert sent.body == body | {"model": "claude-x"}
    assert sent.notices == ()


def test_an_upstream_that_accepts_marks_on_blocks_only() -> None:
    target = Target(model="m", cache_marks="blocks")
    assert "cache_control" not in written("anthropic", anthropic(2), target).body
    assert len(marked(written("openai-chat", chat(3), target).body)) == 4


@pytest.mark.parametrize("client", ["openai-chat", "gemini"])
def test_a_prefilled_assistant_message_is_not_marked(client: str) -> None:
    """A conversation may end with assistant text that the model continues."""
    path, body = OTHERS[client](1)
    if client == "openai-chat":
        body["messages"].append({"role": "assistant", "content": "I"})
    else:
        body["contents"].append({"role": "model", "parts": [{"text": "I"}]})
    loose = Target(model="m", cache_marks=True)
    sent = written(client, (path, body), loose).body
    assert sent["messages"][-1] == {"role": "assistant", "content": [{"type": "text", "text": "I"}]}
    assert marked(sent)[-1] == len(blocks(sent)) - 2


@pytest.mark.parametrize(
    ("model", "marked"),
    [
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("eu.anthropic.claude-3-haiku-20240307-v1:0", False),
        ("claude-3-haiku-20240307", True),
    ],
)
def test_claude_without_a_cache_gets_no_marks(model: str, marked: bool) -> None:
    """On Bedrock, the first Claude 3 models refuse `cache_control`. At Anthropic they take it."""
    target = Target(model=model, cache_marks="blocks")
    for cache in (None, Cache()):
        message = Message("user", (Text("?", cache=cache),))
        body = protocol("anthropic").write_request(Request(model="m", messages=(message,)), target).body
        assert ("cache_control" in str(body)) is marked
