"""Long conversations of every kind arrive complete, and the bench notices lost parts."""

import json
from typing import Any

import msgspec
import pytest
from support.client_variants import NAMES, spelled

from bench.answers import ANTHROPIC, CHAT, RESPONSES, stream
from bench.floors import responses
from bench.floors.naive import chat_request
from bench.marks import MARK, SIGNATURE, THOUGHT, lost, told
from bench.requests import Talk, conversation
from bench.shapes import BRIEF, shape_of
from bench.talks import AGENT, ALL
from bench.verify import wrong
from dragoman.protocols.base import Target
from dragoman.protocols.registry import protocol

kinds = pytest.mark.parametrize("kind", ALL)
PATHS = {ANTHROPIC: "/v1/messages", RESPONSES: "/v1/responses"}
FLOORS = {ANTHROPIC: chat_request, RESPONSES: responses.chat_request}
# An upstream without special settings.
PLAIN = Target(model="m", issuer="bench", chat_compatible=True, max_tokens_field="max_tokens")


def written(body: bytes, upstream: str, client: str = ANTHROPIC) -> bytes:
    """The request that Dragoman writes for an upstream."""
    request = protocol(client).read_request(body, PATHS[client])
    target = PLAIN if upstream == CHAT else Target(model="m")
    return msgspec.json.encode(protocol(upstream).write_request(request, target).body)


@kinds
def test_the_name_of_the_model_is_the_shape(kind: str) -> None:
    assert shape_of(conversation(Talk(1, turns=3, kind=kind), BRIEF)) == BRIEF


@kinds
def test_a_lost_part_is_noticed(kind: str) -> None:
    asked = conversation(Talk(1, turns=8, kind=kind), BRIEF)
    assert lost(asked, ANTHROPIC) == ""  # the client's own request is complete, reasoning included
    count = asked.count(MARK.encode())
    for part in asked.split(MARK.encode())[1:]:
        said = lost(asked.replace(MARK.encode() + part, part, 1), ANTHROPIC)
        assert said == f"{count - 1} of {count} {MARK}"


@kinds
def test_a_lost_turn_is_noticed(kind: str) -> None:
    talk = Talk(1, turns=3, kind=kind)
    came, went = (told(conversation(one, BRIEF)) for one in (talk.gone_on(), talk))
    answer = b"".join(stream(CHAT, BRIEF, went))
    assert wrong(CHAT, BRIEF, answer, streamed=True, told=went) == ""
    assert "another text" in wrong(CHAT, BRIEF, answer, streamed=True, told=came)


def test_reasoning_must_go_back_to_its_issuer() -> None:
    asked = conversation(Talk(1, turns=3, kind="agent"), BRIEF)
    for sign in (THOUGHT, SIGNATURE):
        assert f"2 of 3 {sign}" in lost(asked.replace(sign.encode(), b"", 1), ANTHROPIC)
        assert f"3 of 0 {sign}" in lost(asked, CHAT)


def said(request: bytes) -> list[tuple[Any, ...]]:
    """The messages of a Chat request: role, text and calls."""
    return [
        (
            message["role"],
            _joined(message.get("content") or "").removeprefix("[error] "),
            message.get("tool_call_id"),
            [_call(call) for call in message.get("tool_calls", ())],
        )
        for message in msgspec.json.decode(request)["messages"]
    ]


def _joined(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _call(call: dict[str, Any]) -> tuple[Any, ...]:
    return call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])


@kinds
def test_reference_program_and_dragoman_write_the_same(kind: str) -> None:
    talk = Talk(1, turns=30, kind=kind)
    for body in (conversation(talk, BRIEF), conversation(talk.gone_on(), BRIEF)):
        floor = msgspec.json.encode(FLOORS[talk.client](msgspec.json.decode(body)))
        ours = written(body, CHAT, talk.client)
        assert lost(floor, CHAT) == lost(ours, CHAT) == ""
        assert said(ours) == said(floor)
        assert told(ours) == told(body)


def test_floor_b_keeps_the_order() -> None:
    asked = chat_request(msgspec.json.decode(conversation(Talk(1, turns=3), BRIEF)))
    roles = [message["role"] for message in asked["messages"]]
    assert roles == ["system", "user", *["assistant", "tool"] * 3]


@kinds
def test_a_conversation_for_its_own_protocol_is_unchanged(kind: str) -> None:
    talk = Talk(1, turns=30, kind=kind)
    for body in (conversation(talk, BRIEF), conversation(talk.gone_on(), BRIEF)):
        ours = written(body, talk.client, talk.client)
        assert lost(ours, ANTHROPIC) == ""
        assert msgspec.json.decode(ours) == {**msgspec.json.decode(body), "model": "m"}


@pytest.mark.parametrize("habit", NAMES)
def test_a_conversation_arrives_complete_from_every_client(habit: str) -> None:
    talk = Talk(1, turns=6)
    for body in (conversation(talk, BRIEF), conversation(talk.gone_on(), BRIEF)):
        asked = spelled(habit, body)
        ours = written(asked, CHAT)
        assert asked != body
        assert ours.count(MARK.encode()) == asked.count(MARK.encode()) > 12
        assert SIGNATURE.encode() not in ours


def test_the_agent_kind_has_the_shape_of_claude_code() -> None:
    asked = msgspec.json.decode(conversation(Talk(1, turns=30, kind="agent"), BRIEF))
    assert tuple(asked) == AGENT
    spoken = [message for message in asked["messages"] if message["role"] != "system"]
    turns = [[part["type"] for part in message["content"]] for message in spoken]
    assert ["thinking", "text", "tool_use", "tool_use"] in turns
    assert ["thinking", "tool_use"] in turns
    assert ["tool_result", "tool_result", "text"] in turns
    results = [part for message in spoken for part in message["content"] if part["type"] == "tool_result"]
    assert {type(result["content"]) for result in results} == {str, list}
    assert {result.get("is_error") for result in results} == {None, False, True}
    told = [message["content"] for message in asked["messages"] if message["role"] == "system"]
    assert {type(words) for words in told[:-1]} == {str}
    assert told[-1][0]["cache_control"] == {"type": "ephemeral"}


def test_the_spaced_kind_has_spaces_and_escapes() -> None:
    spaced = conversation(Talk(1, turns=2, kind="spaced"), BRIEF)
    assert spaced == json.dumps(json.loads(spaced)).encode()
    assert b'", "' in spaced
    assert rb"\u" in spaced


def test_the_codex_kind_has_the_shape_of_codex() -> None:
    asked = msgspec.json.decode(conversation(Talk(1, turns=30, kind="codex"), BRIEF))
    assert "instructions" not in asked
    assert asked["store"] is False
    assert all("id" in item for item in asked["input"])
    types = {item["type"] for item in asked["input"]}
    calls = {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
    assert types == {"message", "reasoning", *calls}
    assert {tool["type"] for tool in asked["tools"]} == {"function", "namespace", "custom", "web_search"}
