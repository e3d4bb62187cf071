"""Translates requests from one protocol to another, for the tests of every pair."""

from typing import Any

import msgspec

from dragoman.model.messages import Request
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.registry import protocol

from .agent_requests import AgentRequest

MODELS = {"anthropic": "claude-opus-4-8", "gemini": "gemini-3-pro-preview"}


def target(upstream: str, **facts: Any) -> Target:
    return Target(**{"model": MODELS.get(upstream, "gpt-5"), "issuer": f"some-{upstream}", **facts})


def wire(body: Any) -> bytes:
    return msgspec.json.encode(body)


def posted(sample: AgentRequest) -> Request:
    return protocol(sample.protocol).read_request(wire(sample.body), sample.path)


def sent(request: Request, upstream: str, **facts: Any) -> Outgoing:
    return protocol(upstream).write_request(request, target(upstream, **facts))


def received(outgoing: Outgoing, upstream: str) -> Request:
    return protocol(upstream).read_request(wire(outgoing.body), outgoing.path)


def spoken(request: Request, client: str) -> Request:
    """`request` as a client of this protocol sends it."""
    return received(sent(request, client), client)
