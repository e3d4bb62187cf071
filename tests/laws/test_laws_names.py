"""Laws 9, 10, 32 and 37: ids, names and seals are legal on the wire and come back unchanged."""

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import edited_streams, fuzzing
from support.answers import SEAL, TOOLS, GeneratedAnswer, GeneratedBlock, own_seal, stream
from support.exchanges import exchange, run
from support.wires import CHAT

from dragoman.model.events import BlockEnd, BlockStart, End, Start, Stop, Usage
from dragoman.model.messages import Seal, Tool, ToolCall
from dragoman.protocols.base import AnswerContext
from dragoman.protocols.common import call_ids, sealed_reasoning
from dragoman.protocols.common.call_ids import ANY, MISTRAL, WORDS, IdRule
from dragoman.protocols.common.tool_names import ToolNames
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

steady = fuzzing.steady(200)
ALL = list(PROTOCOLS)
PAIRS = [pytest.param(a, b, id=f"{a}-to-{b}") for a in ALL for b in ALL if a != b]
MINTED = AnswerContext(id="u", created=1, model="m")
SEALED = GeneratedAnswer(
    (GeneratedBlock("thinking", ("hm",), SEAL), GeneratedBlock("text", ("yes",))),
    Usage(input=1, output=1),
    Stop.END,
)

seen = st.sampled_from(["functions.Bash:0", "call_1", "dgm-x", "dgmh-x", "toolu_bdrk_01", "x:183", "a" * 70])
any_id = st.one_of(seen, st.text(min_size=1, max_size=90), st.text("dgm-h0a_:.", min_size=1, max_size=60))
rules = st.sampled_from([WORDS, ANY, *(PROTOCOLS[p].ids for p in ALL)])


@steady
@given(id=any_id, rule=rules)
def test_10_ids_are_legal_for_the_client(id: str, rule: IdRule) -> None:
    assert rule.legal(call_ids.for_client(id, rule))


@steady
@given(id=any_id, rule=rules)
def test_9_ids_come_back_as_the_upstream_issued_them(id: str, rule: IdRule) -> None:
    given_out = call_ids.for_client(id, rule)
    if not given_out.startswith("dgmh-"):
        assert call_ids.from_client(given_out) == id


@steady
@given(found=st.lists(any_id, unique=True, max_size=30), rule=rules)
def test_10_different_ids_stay_different(found: list[str], rule: IdRule) -> None:
    assert len({call_ids.for_client(id, rule) for id in found}) == len(found)


@steady
@given(found=st.lists(any_id, unique=True, max_size=30), rule=st.sampled_from([WORDS, ANY]))
def test_10_ids_for_an_upstream_are_legal_and_different(found: list[str], rule: IdRule) -> None:
    sent = [call_ids.for_upstream(id, rule) for id in found]
    assert all(map(rule.legal, sent))
    assert len(set(sent)) == len(sent)
    assert sent == [call_ids.for_upstream(id, rule) for id in found]


@steady
@given(found=st.lists(any_id, unique=True, max_size=20))
def test_10_mistral_ids_have_nine_characters(found: list[str]) -> None:
    sent = [call_ids.for_upstream(id, MISTRAL) for id in found]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in sent)
    assert len(set(sent)) == len(sent)


@pytest.mark.parametrize("client", CLIENTS)
@fuzzing.steady(60)
@given(found=st.lists(any_id, unique=True, min_size=1, max_size=4))
def test_9_ids_survive_a_whole_exchange(client: str, found: list[str]) -> None:
    events: list[Any] = [Start(model="m")]
    for number, id in enumerate(found):
        part = ToolCall(id=id, name="store", arguments="")
        events += [BlockStart(number, part), BlockEnd(number)]
    body = (
        PROTOCOLS["gemini"]
        .stream_encoder(AnswerContext(id="u", created=1, model="m"))
        .encode([*events, End(Stop.TOOL)])
    )
    keyed = iter(range(100))
    body = re.sub(rb'"args":\{\}', lambda _: b'"args":{"key":%d}' % next(keyed), body)
    it = exchange("gemini", client, TOOLS)
    run(it, [body])
    receipts = it.receipts
    assert [receipt.upstream_id for receipt in receipts] == found
    given_out = [receipt.id for receipt in receipts]
    assert len(set(given_out)) == len(found)
    assert all(CLIENTS[client].ids.legal(id) for id in given_out)
    for receipt in receipts:
        if not receipt.id.startswith("dgmh-"):
            assert call_ids.from_client(receipt.id) == receipt.upstream_id


words = st.text("ab_-./: é", min_size=1, max_size=80)
tools = st.builds(Tool, name=words, namespace=st.none() | st.text("ab_", min_size=1, max_size=5))


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(offered=st.lists(tools, max_size=8, unique_by=lambda tool: (tool.namespace, tool.name)))
def test_37_names_are_legal_different_and_reversible(upstream: str, offered: list[Tool]) -> None:
    rule = PROTOCOLS[upstream].names
    names = ToolNames(offered, rule)
    spaces = [tool.namespace if rule.namespaces else None for tool in offered]
    sent = [(space, names.out(t.name, t.namespace)) for space, t in zip(spaces, offered, strict=True)]
    assert all(re.fullmatch(rule.pattern, name) and len(name) <= rule.max_length for _, name in sent)
    assert len(set(sent)) == len(sent)
    for tool, (space, name) in zip(offered, sent, strict=True):
        called = names.called(name, space)
        assert called is not None
        assert called.tool == tool


@pytest.mark.parametrize("upstream", ALL)
@pytest.mark.parametrize("client", CLIENTS)
def test_37_the_client_gets_its_own_tool_name(upstream: str, client: str) -> None:
    tool = Tool(name="mcp.files/read all" + "x" * 70, parameters={"type": "object", "properties": {}})
    sent = ToolNames([tool], PROTOCOLS[upstream].names).out(tool.name)
    part = ToolCall(id="call_1", name=sent)
    events: list[Any] = [Start(model="m"), BlockStart(0, part), BlockEnd(0), End(Stop.TOOL)]
    body = PROTOCOLS[upstream].stream_encoder(MINTED).encode(events)
    it = exchange(upstream, client, [{"name": tool.name, "parameters": tool.schema}])
    assert json.dumps(tool.name)[1:-1].encode() in run(it, [body])
    assert it.receipts[0].name == tool.name


@steady
@given(
    data=st.text(max_size=40),
    origin=st.sampled_from(ALL),
    slot=st.sampled_from(ALL),
    call=st.sampled_from(["", "call_1"]),
    redacted=st.booleans(),
)
def test_32_a_seal_survives_any_slot(data: str, origin: str, slot: str, call: str, redacted: bool) -> None:
    seal = Seal(origin, data, issuer="", redacted=redacted and origin != slot)
    back = sealed_reasoning.from_slot(sealed_reasoning.to_slot(seal, slot, call), slot)
    assert (back.seal, back.call) == (seal, call)


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_32_a_seal_for_another_protocol_is_in_an_envelope(upstream: str, client: str, asked: bool) -> None:
    got = run(exchange(upstream, client, TOOLS, stream=asked), [stream(SEALED, upstream)])
    assert SEAL.encode() not in got
    slots = re.findall(rb'"(?:signature|thoughtSignature|encrypted_content|data)":"([^"]+)"', got)
    assert all(base64.b64decode(slot, validate=True) for slot in slots)
    found = sealed_reasoning.from_slot(slots[-1].decode(), client).seal
    assert found.protocol == upstream
    if upstream != CHAT:  # Chat numbers its list entries
        assert found.data == own_seal(SEAL, upstream).data


@pytest.mark.parametrize("protocol", ALL)
def test_32_a_seal_for_its_own_protocol_is_unchanged(protocol: str) -> None:
    body = stream(SEALED, protocol)
    assert SEAL.encode() in body
    got = run(exchange(protocol, protocol, TOOLS), [body])
    assert edited_streams.split(got) == edited_streams.split(body)
