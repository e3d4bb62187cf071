"""Fuzzed requests are read, or refused with a 400 and a reason. A request that is read can be written."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import strategies as st
from support import cursor_bodies, mutations
from support.agent_requests import AGENTS
from support.fuzzing import fuzz

from dragoman.model.errors import BadRequest
from dragoman.model.messages import Request
from dragoman.protocols.base import Target
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

# Besides the bodies of agents: one body per protocol with every member.
FULL = Path(__file__).parent / "requests"


class Posted(NamedTuple):
    path: str
    body: bytes


def bodies(protocol: str) -> list[tuple[str, dict[str, Any]]]:
    if protocol == "cursor":
        shapes = [("", cursor_bodies.body(shape)) for shape in cursor_bodies.SHAPES.values()]
        return [*shapes, *bodies("anthropic"), *bodies("openai-chat"), *bodies("openai-responses")]
    agents = [(agent.path, agent.body) for agent in AGENTS.values() if agent.protocol == protocol]
    full = json.loads((FULL / f"{protocol}.json").read_bytes())
    return [(full["path"], full["body"]), *agents]


def read(protocol: str, posted: Posted) -> Request | BadRequest:
    try:
        return CLIENTS[protocol].read_request(posted.body, posted.path)
    except BadRequest as refused:
        return refused


def survive(protocol: str, posted: Posted) -> None:
    request = read(protocol, posted)
    if isinstance(request, BadRequest):
        assert request.status == 400
        assert request.message
        return
    for target in PROTOCOLS.values():
        try:
            outgoing = target.write_request(request, Target(model="m2"))
        except BadRequest:
            continue
        assert msgspec.json.encode(outgoing.body)
        assert outgoing.path.startswith("/")


@pytest.mark.parametrize("protocol", CLIENTS)
def test_bodies_are_read_as_they_are(protocol: str) -> None:
    for path, body in bodies(protocol):
        request = CLIENTS[protocol].read_request(json.dumps(body).encode(), path)
        assert request.messages
        survive(protocol, Posted(path, json.dumps(body).encode()))


@pytest.mark.parametrize("protocol", CLIENTS)
def test_wrong_types(protocol: str) -> None:
    def spoiled(chosen: tuple[str, dict[str, Any]]) -> st.SearchStrategy[Posted]:
        values = mutations.retyped_value(chosen[1])
        return values.map(lambda value: Posted(chosen[0], json.dumps(value).encode()))

    inputs = st.sampled_from(bodies(protocol)).flatmap(spoiled)
    fuzz(inputs, lambda posted: survive(protocol, posted), 250)


@pytest.mark.parametrize("protocol", CLIENTS)
def test_spoiled_bytes(protocol: str) -> None:
    def spoiled(chosen: tuple[str, dict[str, Any]]) -> st.SearchStrategy[Posted]:
        raw = mutations.spoiled_bytes(json.dumps(chosen[1], ensure_ascii=False).encode())
        return st.builds(Posted, st.just(chosen[0]), st.one_of(raw, st.binary(max_size=30)))

    inputs = st.sampled_from(bodies(protocol)).flatmap(spoiled)
    fuzz(inputs, lambda posted: survive(protocol, posted), 80)
