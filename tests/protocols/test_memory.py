"""Remembering changes nothing but the cost: a request reads and writes the same, known or not."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import BadRequest
from dragoman.protocols import memory
from dragoman.protocols.base import Target
from dragoman.protocols.memory import Memory
from dragoman.protocols.registry import PROTOCOLS, protocol

TARGETS = [Target(model="m", issuer="one"), Target(model="m", issuer="two", chat_compatible=True)]
PADDING = "what the model is told at the beginning, again and again. " * 12


def forget() -> None:
    memory.MEMORY.__init__()


@pytest.fixture(autouse=True)
def own_memory() -> None:
    forget()


def tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": PADDING}}}
    return {"name": name, "description": "reads", "input_schema": schema}


def turn(number: int, **result: Any) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"{number}.py"}}
    answer = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"line {number}", **result}
    said = {"type": "text", "text": f"I look at {number}."}
    return [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [answer]}]


def request(turns: int, *, tools: list[str] | None = None, mark: bool = True, **more: Any) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": PADDING}]
    for number in range(turns):
        messages += turn(number)
    body = {"model": "m", "max_tokens": 100, "system": PADDING, "messages": messages, **more}
    body["tools"] = [tool(name) for name in tools or ["Read"]]
    if mark and turns:
        messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return body


def outgoing(body: dict[str, Any], upstream: str, target: Target) -> tuple[bytes, tuple[str, ...]]:
    """The request as an upstream gets it, in order, and what is said of it."""
    read = protocol("anthropic").read_request(json.dumps(body).encode(), "/v1/messages")
    written = protocol(upstream).write_request(read, target)
    return msgspec.json.encode(written.body), tuple(notice.path for notice in written.notices)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.issuer)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_conversation_that_goes_on_is_written_as_if_it_were_new(upstream: str, target: Target) -> None:
    bodies = [request(turns) for turns in (1, 2, 3, 6, 7, 20, 21)]
    bodies += [request(9), request(21, tools=["Read", "Write"]), request(21, mark=False)]
    known = [outgoing(body, upstream, target) for body in bodies]
    for body, got in zip(bodies, known, strict=True):
        forget()
        assert outgoing(body, upstream, target) == got


EDITS = ("goes on", "one less", "other result", "dropped", "other tools", "system said")


def edited(body: dict[str, Any], edit: str, number: int) -> dict[str, Any]:
    messages = body["messages"]
    turns = (len(messages) - 1) // 2
    match edit:
        case "goes on":
            return {**body, "messages": messages + turn(1000 + number)}
        case "one less" if turns > 1:
            return {**body, "messages": messages[:-2]}
        case "other result" if turns:
            at = 2
            changed = turn(0)[1]["content"][0] | {"content": f"another {number}", "is_error": True}
            changed["tool_use_id"] = messages[at]["content"][0]["tool_use_id"]
            return {
                **body,
                "messages": [*messages[:at], {"role": "user", "content": [changed]}, *messages[at + 1 :]],
            }
        case "dropped" if turns:
            citation = {"type": "char_location", "cited_text": "x", "document_index": 0}
            said = {"type": "text", "text": "Cited.", "citations": [citation]}
            return {
                **body,
                "messages": [*messages, {"role": "assistant", "content": [said]}, *turn(2000 + number)],
            }
        case "other tools":
            return {**body, "tools": [tool("Read"), tool(f"Other{number}")]}
        case _:
            return {**body, "system": f"{PADDING}{number}"}


@given(
    st.sampled_from(sorted(PROTOCOLS)),
    st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 9)), max_size=8),
)
def test_whatever_changes_between_turns_is_seen(upstream: str, edits: list[tuple[str, int]]) -> None:
    forget()
    body = request(2)
    bodies = [body]
    for edit, number in edits:
        body = edited(body, edit, number)
        bodies.append(body)
    known = [outgoing(body, upstream, TARGETS[0]) for body in bodies]
    for body, got in zip(bodies, known, strict=True):
        forget()
        assert outgoing(body, upstream, TARGETS[0]) == got


def test_a_result_without_its_call_is_refused_however_well_the_rest_is_known() -> None:
    good = request(4)
    outgoing(good, "openai-chat", TARGETS[0])
    orphan = {"type": "tool_result", "tool_use_id": "toolu_999", "content": "x"}
    bad = {**good, "messages": [*good["messages"], {"role": "user", "content": [orphan]}]}
    for _ in range(2):
        with pytest.raises(BadRequest, match="toolu_999") as error:
            outgoing(bad, "openai-chat", TARGETS[0])
        assert error.value.path == "messages[9].content[0].tool_use_id"


def test_tools_that_come_in_another_place_are_not_mistaken_for_the_ones_before() -> None:
    """Codex may send tools inside the input, beside a list that stays the same."""

    def asked(extra: str) -> list[str]:
        function = {
            "type": "function",
            "name": "read",
            "parameters": {"type": "object", "description": PADDING},
        }
        more = {"type": "additional_tools", "role": "developer", "tools": [{**function, "name": extra}]}
        said = {"type": "message", "role": "user", "content": "go"}
        body = {"model": "m", "input": [more, said], "tools": [function]}
        read = protocol("openai-responses").read_request(json.dumps(body).encode(), "/v1/responses")
        written = protocol("openai-chat").write_request(read, TARGETS[0])
        return [entry["function"]["name"] for entry in written.body["tools"]] + sorted(
            written.names.declared()
        )

    assert "first" in asked("first")
    assert "second" in asked("second")
    assert "first" not in asked("second")


def test_what_is_small_and_everywhere_is_not_known() -> None:
    forget()
    with pytest.raises(BadRequest):
        outgoing(
            {**request(1), "messages": [None, 1, "", *request(1)["messages"]]}, "openai-chat", TARGETS[0]
        )
    for value in (None, 1, ""):
        assert memory.MEMORY.known(value) is None


def test_memory_is_bounded_and_what_is_asked_for_stays() -> None:
    small = Memory(10_000)
    wanted = b'{"wanted": 1}'
    kept = small.read(wanted)
    for number in range(2_000):
        small.read(b'{"number": %d}' % number)
        if number % 50 == 0:
            assert small.read(wanted) is kept
    sizes = sum(len(data) for data in (*small._young, *small._old))  # pyright: ignore[reportPrivateUsage]
    assert sizes <= 10_000
    assert small.known(kept) is not None


def test_long_values_that_differ_in_a_byte_are_told_apart() -> None:
    """They are looked up by some of their bytes; where those are the same, by all."""
    said = json.dumps([PADDING * 20]).encode()
    alike = [said[:place] + b"#" + said[place + 1 :] for place in range(1000, 1130)]
    for _ in range(2):
        values = [memory.MEMORY.read(data) for data in alike]
        assert values == [json.loads(data) for data in alike]
    assert [id(memory.MEMORY.read(data)) for data in alike] == [id(value) for value in values]
    assert memory.MEMORY.read(json.dumps("x" * 5000).encode()) == "x" * 5000


def test_what_is_short_is_not_taken_for_what_is_long_and_looks_the_same_from_afar() -> None:
    """Somebody may choose bytes so that those that are looked at are another value."""
    short = b"[" + b"1," * 49 + b"1]"
    long = b"[7," + b" " * 58 + b"".join(bytes([byte]) + b" " * 60 for byte in short[1:])
    assert long[::61] == short
    for order in ((long, short), (short, long)):
        forget()
        for data in (*order, *order):
            assert memory.MEMORY.read(data) == json.loads(data)
