"""Values of an upstream that the client sends back (ids, seals, freeform calls) return unchanged."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from support.anew import anew
from support.echoed_requests import echo
from support.requests import received, sent, spoken, wire
from support.sample_streams import SAMPLES
from support.scenarios import TOOLS

from dragoman.model.events import BlockEnd, BlockStart, End, Start, Stop
from dragoman.model.messages import Message, Request, Text, Tool, ToolCall, ToolResult
from dragoman.protocols.anthropic.request import write as anthropic_write
from dragoman.protocols.base import AnswerContext
from dragoman.protocols.common import call_ids
from dragoman.protocols.common.collect import collect
from dragoman.protocols.common.tool_names import ToolNames
from dragoman.protocols.gemini.request import write as gemini_write
from dragoman.protocols.openai_chat.request import write as chat_write
from dragoman.protocols.openai_responses.request import write as responses_write
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.translation.translation import Options, Translation

both = pytest.mark.parametrize(("client", "upstream"), list(product(PROTOCOLS, PROTOCOLS)))

UPSTREAM_IDS = [
    "toolu_01A09q90qw90lq917835lq9",
    "functions.Bash:0",
    "functions.get weather:12",
    "call_" + "a1B2" * 19,
    "café-調べる-😀",
    "dgm-looks-like-ours",
    "call|fc_68e",
    "a" * 200 + "+/=",
]


def conversation(id: str) -> Request:
    call = ToolCall(id=id, name="run", arguments='{"a":1}')
    return Request(
        model="m",
        messages=(
            Message("user", (Text("Hi"),)),
            Message("assistant", (call,)),
            Message("user", (ToolResult(call_id=id, parts=(Text("ok"),)), Text("Go on"))),
        ),
        tools=(Tool(name="run", parameters={"type": "object"}),),
    )


def ids_in(request: Request) -> list[str]:
    parts = [part for message in request.messages for part in message.parts]
    found = [part.id if isinstance(part, ToolCall) else part.call_id for part in parts if _has_id(part)]
    assert len(found) == 2
    return found


def _has_id(part: Any) -> bool:
    return isinstance(part, ToolCall | ToolResult)


# The call ids that each upstream accepts, which may be more than its clients accept.
TAKES = {
    "anthropic": anthropic_write.IDS,
    "openai-chat": chat_write.IDS,
    "openai-responses": responses_write.IDS,
    "gemini": gemini_write.IDS,
}


@pytest.mark.parametrize("id", UPSTREAM_IDS)
@both
def test_an_id_returns_as_it_was_issued(client: str, upstream: str, id: str) -> None:
    """Law 9. A foreign id only has to be legal, and the same in call and result."""
    seen = call_ids.for_client(id, protocol(client).ids)
    assert protocol(client).ids.legal(seen)
    body = wire(sent(conversation(seen), client).body)
    assert body.count(json.dumps(seen, ensure_ascii=False).encode()) == 2
    request = protocol(client).read_request(body, sent(conversation(seen), client).path)
    outgoing = sent(request, upstream)
    written = wire(outgoing.body)
    # Too long for the client: a replacement goes both ways (the gateway's store maps it back).
    carried = call_ids.from_client(seen) == id
    if carried and (TAKES[upstream].legal(id) or client == upstream):
        assert written.count(json.dumps(id, ensure_ascii=False).encode()) == 2
    else:
        call, result = ids_in(received(outgoing, upstream))
        assert call == result
        assert TAKES[upstream].legal(call)


def test_only_ids_too_long_for_an_anthropic_client_are_replaced() -> None:
    rule = protocol("anthropic").ids
    assert all(
        call_ids.from_client(call_ids.for_client(id, rule)) == id for id in UPSTREAM_IDS if len(id) < 20
    )
    assert call_ids.for_client("x" * 65, rule).startswith("dgmh-")


@both
def test_a_strict_upstream_gets_legal_ids(client: str, upstream: str) -> None:
    request = spoken(conversation("toolu_01A09q90qw90"), client)
    request = anew(request)
    outgoing = sent(request, upstream, ids=call_ids.MISTRAL)
    if client != upstream:
        call, result = ids_in(received(outgoing, upstream))
        assert call == result
        assert call_ids.MISTRAL.legal(call)


def declared() -> tuple[Tool, ...]:
    return tuple(Tool(name=t["name"], parameters=t["parameters"]) for t in TOOLS)


def answered(client: str, upstream: str, stream: bytes, *, issuer: str) -> bytes:
    """The whole answer that a client gets for an upstream's stream."""
    options = Options(stream=False, id="x1", model="asked-for", issuer=issuer)
    exchange = Translation(upstream, client, tools=declared(), options=options)
    return exchange.feed(stream) + exchange.close()


def next_request(client: str, answer: bytes) -> Request:
    path = "/v1beta/models/m:generateContent" if client == "gemini" else "/v1/x"
    return protocol(client).read_request(echo(client, answer), path)


SEALED = [
    pytest.param(client, issuer, kind, id=f"{issuer} {kind} through {client}")
    for client, issuer in product(PROTOCOLS, PROTOCOLS)
    for kind in ("thinking_tool", "redacted")
    if kind in SAMPLES.get(issuer, {}) and SAMPLES[issuer][kind].expect["opaque"]
]


@pytest.mark.parametrize(("client", "issuer", "kind"), SEALED)
def test_a_seal_returns_to_its_issuer_only(client: str, issuer: str, kind: str) -> None:
    """Laws 31, 32."""
    sample = SAMPLES[issuer][kind]
    answer = answered(client, issuer, sample.stream, issuer=f"some-{issuer}")
    request = next_request(client, answer)
    for version, upstream in product((request, anew(request)), PROTOCOLS):
        written = wire(sent(version, upstream).body).decode()
        for seal in sample.expect["opaque"]:
            assert written.count(seal) == (1 if upstream == issuer else 0), written
        assert "ZHJhZ29tYW4x" not in written  # the prefix of Dragoman's envelope
        check = received(sent(version, upstream), upstream)
        assert [part for part in check.messages if part.role == "assistant"]


# A seal in its protocol's own slot does not name its upstream.
ENVELOPED = [case for case in SEALED if case.values[0] != case.values[1]]


@pytest.mark.parametrize(("client", "issuer", "kind"), ENVELOPED)
def test_a_seal_goes_to_no_other_upstream_of_its_protocol(client: str, issuer: str, kind: str) -> None:
    sample = SAMPLES[issuer][kind]
    request = next_request(client, answered(client, issuer, sample.stream, issuer="first"))
    for seal in sample.expect["opaque"]:
        assert seal in wire(sent(request, issuer, issuer="first").body).decode()
        assert seal not in wire(sent(request, issuer, issuer="second").body).decode()


CHAT_SEALS = ("VEhPVUdIVA==", "Q0FMTA==")
# As OpenRouter and Gemini's OpenAI endpoint put them.
CHAT_ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Looking.",
                "reasoning": "Hm.",
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Hm.", "signature": CHAT_SEALS[0], "index": 0}
                ],
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
                        "extra_content": {"google": {"thought_signature": CHAT_SEALS[1]}},
                    }
                ],
            },
        }
    ],
}


@pytest.mark.parametrize("client", PROTOCOLS)
def test_seals_in_unofficial_members_of_chat_return_too(client: str) -> None:
    answer = answered(client, "openai-chat", wire(CHAT_ANSWER), issuer="some-openai-chat")
    request = next_request(client, answer)
    for version, upstream in product((request, anew(request)), PROTOCOLS):
        written = wire(sent(version, upstream).body).decode()
        expected = 1 if upstream == "openai-chat" else 0
        assert [written.count(seal) for seal in CHAT_SEALS] == [expected, expected]


PATCH = '*** Begin Patch\n+x = "\\u00e9 é 😀 \\\\"\n*** End Patch\n'
PATCHER = Tool(name="apply_patch", kind="custom", description="Edits", namespace=None, grammar="start: x")


def called_by_model(upstream: str, names: ToolNames, call: ToolCall) -> bytes:
    """The stream of an upstream whose model calls a tool."""
    events = [Start("r1", "m"), BlockStart(0, call), BlockEnd(0), End(Stop.TOOL)]
    return protocol(upstream).render(collect(events), AnswerContext(id="u1", created=1, model="m"))


@both
def test_a_freeform_call_stays_freeform(client: str, upstream: str) -> None:
    """Law 50: also through an upstream that has only functions."""
    if not protocol(client).names.custom:
        return
    declaring = Request(model="m", messages=(Message("user", (Text("Hi"),)),), tools=(PATCHER,))
    outgoing = sent(spoken(declaring, client), upstream)
    (name,) = outgoing.names.declared()
    custom = protocol(upstream).names.custom
    call = ToolCall(
        id="call_1",
        name=name,
        kind="custom" if custom else "function",
        arguments=PATCH if custom else json.dumps({"input": PATCH}),
    )
    exchange = Translation(upstream, client, tools=outgoing.names, options=Options(stream=False, id="x1"))
    answer = exchange.feed(called_by_model(upstream, outgoing.names, call)) + exchange.close()
    request = next_request(client, answer)
    (back,) = [p for m in request.messages for p in m.parts if isinstance(p, ToolCall)]
    assert (back.kind, back.name, back.arguments) == ("custom", "apply_patch", PATCH)
    again = received(sent(request.changed(tools=(PATCHER,)), upstream), upstream)
    (home,) = [p for m in again.messages for p in m.parts if isinstance(p, ToolCall)]
    assert (home.arguments if home.kind == "custom" else json.loads(home.arguments)["input"]) == PATCH


ODD_NAMES = (
    Tool(name="plain"),
    Tool(name="a.b/c d"),
    Tool(name="a_b_c_d"),
    Tool(name="x" * 128),
    Tool(name="x" * 127 + "y"),
    Tool(name="東京"),
    Tool(name="now", namespace="clock"),
    Tool(name="now", namespace="other clock"),
    Tool(name="clock__now"),
    Tool(name="1st"),
)


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_names_stay_distinct_in_both_directions(upstream: str) -> None:
    """Law 37: in definitions, calls and choices alike."""
    wire_protocol = protocol(upstream)
    names = ToolNames(ODD_NAMES, wire_protocol.names)
    sent_as = [
        (t.namespace if wire_protocol.names.namespaces else None, names.out(t.name, t.namespace))
        for t in ODD_NAMES
    ]
    assert len(set(sent_as)) == len(ODD_NAMES)
    for tool, (namespace, name) in zip(ODD_NAMES, sent_as, strict=True):
        called = names.called(name, namespace)
        assert called is not None
        assert called.tool is tool
    for tool in ODD_NAMES:
        call = ToolCall(id="c1", name=tool.name, namespace=tool.namespace)
        messages = (
            Message("user", (Text("Hi"),)),
            Message("assistant", (call,)),
            Message("user", (ToolResult(call_id="c1"),)),
        )
        outgoing = sent(Request(model="m", messages=messages, tools=ODD_NAMES), upstream)
        heard = received(outgoing, upstream)
        (written,) = [p for m in heard.messages for p in m.parts if isinstance(p, ToolCall)]
        assert (written.namespace, written.name) in {(t.namespace, t.name) for t in heard.tools}
        called = outgoing.names.called(written.name, written.namespace)
        assert called is not None
        assert called.tool is tool
