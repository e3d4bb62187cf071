"""The limits of a web search that the provider runs pass from one protocol to another, or are a warning."""

from __future__ import annotations

from typing import Any

import pytest
from support.requests import wire
from support.sdk_types import CHECKS

from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.registry import protocol

Obj = dict[str, Any]
ANTHROPIC, CHAT, GEMINI, RESPONSES = "anthropic", "openai-chat", "gemini", "openai-responses"
MODELS = {
    ANTHROPIC: "claude-opus-4-8",
    CHAT: "gpt-4o-search-preview",
    GEMINI: "gemini-3-pro",
    RESPONSES: "gpt-5",
}
PARIS = {"city": "Paris", "country": "FR"}
PLACE = {"type": "approximate", **PARIS}
PLACE_IN_CHAT = {"type": "approximate", "approximate": PARIS}


def searching(client: str, limits: Obj) -> Obj:
    """A request whose only tool is a web search with these limits."""
    said: Obj = {"role": "user", "content": "News?"}
    if client == ANTHROPIC:
        tool = {"type": "web_search_20250305", "name": "web_search", **limits}
        return {"model": "m", "max_tokens": 99, "messages": [said], "tools": [tool]}
    if client == CHAT:
        return {"model": "m", "messages": [said], "web_search_options": limits}
    return {"model": "m", "input": [said], "tools": [{"type": "web_search", **limits}]}


def written(client: str, limits: Obj, upstream: str) -> Outgoing:
    request = protocol(client).read_request(wire(searching(client, limits)), "")
    outgoing = protocol(upstream).write_request(request, Target(model=MODELS[upstream]))
    CHECKS[upstream](outgoing.body)
    return outgoing


def sent(outgoing: Outgoing) -> Obj:
    """The limits in a written request."""
    body = outgoing.body
    if "web_search_options" in body:
        return body["web_search_options"]
    return {key: value for key, value in body["tools"][0].items() if key not in ("type", "name")}


ONLY_A = {"filters": {"allowed_domains": ["a.com"]}}


@pytest.mark.parametrize(
    ("client", "limits", "upstream", "expected"),
    [
        (ANTHROPIC, {"allowed_domains": ["a.com"]}, RESPONSES, ONLY_A),
        (ANTHROPIC, {"user_location": PLACE}, RESPONSES, {"user_location": PLACE}),
        (ANTHROPIC, {"user_location": PLACE}, CHAT, {"user_location": PLACE_IN_CHAT}),
        (RESPONSES, ONLY_A, ANTHROPIC, {"allowed_domains": ["a.com"]}),
        (RESPONSES, {"user_location": PLACE}, ANTHROPIC, {"user_location": PLACE}),
        (RESPONSES, {"search_context_size": "low"}, CHAT, {"search_context_size": "low"}),
        (CHAT, {"user_location": PLACE_IN_CHAT}, ANTHROPIC, {"user_location": PLACE}),
        (CHAT, {"search_context_size": "high"}, RESPONSES, {"search_context_size": "high"}),
        (ANTHROPIC, {"max_uses": None, "user_location": None}, RESPONSES, {}),
        (RESPONSES, {"filters": None, "external_web_access": True}, ANTHROPIC, {}),
    ],
)
def test_limits_that_both_sides_know_pass(client: str, limits: Obj, upstream: str, expected: Obj) -> None:
    outgoing = written(client, limits, upstream)
    assert sent(outgoing) == expected
    assert outgoing.notices == ()


@pytest.mark.parametrize(
    ("client", "limits", "upstream", "said"),
    [
        (ANTHROPIC, {"blocked_domains": ["b.com"]}, RESPONSES, "no blocked domains"),
        (ANTHROPIC, {"max_uses": 2}, RESPONSES, "no limit of searches"),
        (
            ANTHROPIC,
            {"allowed_domains": ["a.com"], "max_uses": 2},
            GEMINI,
            "no allowed domains and no limit of searches",
        ),
        (RESPONSES, ONLY_A, CHAT, "no allowed domains"),
    ],
)
def test_a_lost_limit_is_one_warning(client: str, limits: Obj, upstream: str, said: str) -> None:
    outgoing = written(client, limits, upstream)
    (notice,) = outgoing.notices
    assert (notice.rule, notice.warning) == ("search-limits-dropped", True)
    assert notice.message.endswith(said)


@pytest.mark.parametrize("client", [ANTHROPIC, CHAT, RESPONSES])
def test_the_clients_own_protocol_gets_the_limits_as_they_came(client: str) -> None:
    limits = {"user_location": PLACE_IN_CHAT if client == CHAT else PLACE}
    assert sent(written(client, limits, client)) == limits
