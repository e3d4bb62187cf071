"""Requests from every client protocol to every upstream protocol. Registered protocols join by themselves."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from support.agent_requests import AGENTS, AgentRequest
from support.anew import anew
from support.comparable_requests import DEFAULTS, EXCUSES, heard, meant
from support.neutral_requests import requests
from support.requests import posted, received, sent, spoken, wire
from support.schema_strength import weakened
from support.sdk_types import CHECKS

from dragoman.model.errors import BadRequest
from dragoman.model.messages import Request, Text
from dragoman.protocols.registry import PROTOCOLS, protocol


def spoken_by(client: str) -> dict[str, AgentRequest]:
    """The agents' requests in this protocol: their own, or the others' translated into it."""
    samples: dict[str, AgentRequest] = {}
    for name, sample in AGENTS.items():
        if sample.protocol == client:
            samples[name] = sample
            continue
        outgoing = sent(posted(sample), client)
        samples[f"{name} in {client}"] = AgentRequest(client, outgoing.path, outgoing.body)
    return samples


SAMPLES = {client: spoken_by(client) for client in PROTOCOLS}
PAIRS = [
    pytest.param(client, upstream, sample, id=f"{name}->{upstream}")
    for client, upstream in product(PROTOCOLS, PROTOCOLS)
    for name, sample in SAMPLES[client].items()
]
ACROSS = [pair for pair in PAIRS if pair.values[0] != pair.values[1]]
matrix = pytest.mark.parametrize(("client", "upstream", "sample"), PAIRS)
across = pytest.mark.parametrize(("client", "upstream", "sample"), ACROSS)


@across
def test_the_upstream_gets_the_clients_conversation(client: str, upstream: str, sample: AgentRequest) -> None:
    compare(posted(sample), upstream)


@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize("client", PROTOCOLS)
@settings(max_examples=60, deadline=None)
@given(request=requests())
def test_any_request_keeps_its_meaning(client: str, upstream: str, request: Request) -> None:
    """Law 7: from a client of one protocol to an upstream of another, for everything both support."""
    posted = spoken(request, client)
    if client != upstream:
        compare(posted, upstream)
    check = CHECKS.get(upstream)
    if check:
        check(sent(anew(posted), upstream).body)


def compare(request: Request, upstream: str) -> None:
    outgoing = sent(request, upstream)
    said, got = meant(request, outgoing, protocol(upstream)), heard(received(outgoing, upstream), outgoing)
    excused = {EXCUSES.get(notice.rule) for notice in outgoing.notices}
    assert got.system().startswith(said.system())
    assert got.system() == said.system() or "format" in excused  # the setting is then requested in the prompt
    assert got.conversation() == said.conversation()
    for name, value in said.settings().items():
        if value not in (None, DEFAULTS.get(name)) and name not in excused:
            assert (name, got.settings(outgoing.stop)[name]) == (name, value)


@across
def test_the_upstream_is_offered_the_clients_tools(client: str, upstream: str, sample: AgentRequest) -> None:
    request = posted(sample)
    outgoing = sent(request, upstream)
    said, got = meant(request, outgoing, protocol(upstream)), heard(received(outgoing, upstream), outgoing)
    names = [(tool.namespace, tool.name) for tool in received(outgoing, upstream).tools]
    assert len(names) == len(set(names))
    offered = said.tools()
    assert set(got.tools()) == set(offered)
    for identity, tool in got.tools().items():
        original = offered[identity]
        assert (tool.description or "").startswith(original.description or "")
        if original.kind == "function":
            assert weakened(original.schema or {}, tool.schema or {})
        elif tool.kind == "function":  # emulated
            assert original.grammar is None or original.grammar in (tool.description or "")
            assert list(tool.schema["properties"]) == ["input"]
            called = outgoing.names.called(tool.name, tool.namespace)
            assert called is not None
            assert called.wrapped


def _marked(request: Request) -> list[str]:
    texts = (p for m in request.messages for p in m.parts if isinstance(p, Text))
    return [text.text for text in texts if text.cache]


@across
def test_cache_marks_keep_their_places(client: str, upstream: str, sample: AgentRequest) -> None:
    """Law 41."""
    request = posted(sample)
    marked = _marked(received(sent(request, upstream), upstream))
    assert len(marked) <= 4
    assert set(marked) <= set(_marked(request))


@across
def test_the_sdk_of_the_upstream_knows_every_member(client: str, upstream: str, sample: AgentRequest) -> None:
    check = CHECKS.get(upstream)
    if check:
        check(sent(posted(sample), upstream).body)


@pytest.mark.parametrize("sample", AGENTS.values(), ids=AGENTS)
def test_the_clients_own_protocol_gets_the_clients_body(sample: AgentRequest) -> None:
    body = {**sample.body, "model": "m"} if "model" in sample.body else sample.body
    assert json.dumps(sent(posted(sample), sample.protocol, model="m").body) == json.dumps(body)


def _conversation(body: dict[str, Any]) -> Any:
    return max((v for v in body.values() if isinstance(v, list) and _is_said(v)), key=len)


def _is_said(value: list[Any]) -> bool:
    return any(isinstance(item, dict) and ("role" in item or "call_id" in item) for item in value)


@across
def test_a_longer_conversation_begins_with_the_same_bytes(
    client: str, upstream: str, sample: AgentRequest
) -> None:
    """Law 40: earlier messages are sent again unchanged, or no prompt cache hits."""
    request = posted(sample)
    roles = [message.role for message in request.messages]
    ends = [i for i in range(1, len(roles)) if roles[i] == "assistant" and roles[i - 1] != "assistant"]
    whole = sent(anew(request), upstream).body
    for end in ends:
        if all(role in ("system", "developer") for role in roles[:end]):
            continue
        part = sent(request.changed(messages=request.messages[:end]), upstream).body
        before, after = _conversation(part), _conversation(whole)
        assert wire(after[: len(before)]) == wire(before)
        for key in ("system", "instructions", "systemInstruction", "tools"):
            assert wire(part.get(key)) == wire(whole.get(key))


@matrix
def test_strict_refuses_exactly_the_requests_with_notices(
    client: str, upstream: str, sample: AgentRequest
) -> None:
    request = posted(sample)
    notices = [notice for notice in sent(request, upstream).notices if notice.warning]
    assert len({(n.rule, n.path) for n in notices}) == len(notices)
    if not notices:
        sent(request, upstream, strict=True)
        return
    with pytest.raises(BadRequest) as refused:
        sent(request, upstream, strict=True)
    assert refused.value.path == notices[0].path
