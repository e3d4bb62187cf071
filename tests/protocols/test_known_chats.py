"""A long request of a Chat client is the same however much of it is known."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.messages import Message, Seal, Thinking
from dragoman.protocols import ids as call_ids
from dragoman.protocols.base import Target
from dragoman.protocols.history import History
from dragoman.protocols.memory import MEMORY
from dragoman.protocols.openai_chat.request.read_plain import read_list
from dragoman.protocols.registry import protocol
from dragoman.protocols.seals import to_slot
from tests.support.known import PADDING, TARGETS, TRICKY, WAYS, carefully, seen

CLIENT = "openai-chat"
SLOT = to_slot(Seal("anthropic", "sig", issuer="one"), CLIENT)


def call(id: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}", **more}}


IDS = ["call_1", "call_2", "dgm-a-3ab", "dgmh-abc", "functions.Bash:0"]
ids = st.sampled_from(IDS)
words = st.sampled_from(["", "Hello.", "Grüße", TRICKY, "\u2028"])
parts = st.builds(
    lambda text, more: {"type": "text", "text": text, **more},
    words,
    st.sampled_from([{}, {}, {}, {"cache_control": {"type": "ephemeral"}}, {"later": 1}]),
)
contents = st.one_of(words, st.lists(parts, max_size=2))
arguments = st.sampled_from(
    ["{}", '{"path":"a.py"}', '{"a": [1.0, 1e400]}', '{"b', "", None, {"a": 1}, TRICKY]
)
calls = st.builds(
    lambda id, name, text, more: {
        "id": id, "type": "function", "function": {"name": name, "arguments": text}, **more
    },
    ids,
    st.sampled_from(["Read", "Read", "mcp.tool"]),
    arguments,
    st.sampled_from([{}, {}, {}, {"index": 0}, {"extra_content": {"google": {"thought_signature": SLOT}}}]),
)  # fmt: skip
custom = st.builds(lambda id: {"id": id, "type": "custom", "custom": {"name": "patch", "input": "*"}}, ids)
spoken = st.builds(
    lambda content, called, more: {"role": "assistant", **content, **called, **more},
    st.one_of(st.just({}), st.just({"content": None}), st.builds(lambda c: {"content": c}, contents)),
    st.one_of(
        st.just({}),
        st.builds(
            lambda called: {"tool_calls": called},
            st.lists(st.one_of(calls, calls, custom), min_size=1, max_size=2),
        ),
    ),
    st.sampled_from(
        [
            {}, {}, {}, {"reasoning_content": "Hm."}, {"reasoning": "Hm.", "reasoning_content": ""},
            {"refusal": "No."}, {"refusal": None, "annotations": [], "audio": None}, {"name": "me"},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": SLOT}]},
            {"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        ]
    ),
)  # fmt: skip
asked = st.builds(
    lambda role, content, more: {"role": role, "content": content, **more},
    st.sampled_from(["user", "user", "system", "developer"]),
    contents,
    st.sampled_from([{}, {}, {}, {"name": "me"}]),
)
answers = st.builds(
    lambda id, content, more: {"role": "tool", "tool_call_id": id, "content": content, **more},
    ids,
    contents,
    st.sampled_from([{}, {}, {"name": "Read"}]),
)
OTHERS: list[Any] = [
    {"role": "assistant", "tool_calls": [{**call("call_0"), "index": 0}]},
    {"role": "assistant", "content": "x", "refusal": "No."},
    {"role": "user", "content": "x", "name": "me"},
    {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
    {"role": "assistant", "tool_calls": [{"id": "call_p", "type": "custom", "custom": {"name": "p"}}]},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b.png"}}]},
    {"role": "assistant", "function_call": {"name": "Old", "arguments": "{}"}},
    {"role": "assistant", "content": "x", "annotations": [{"url_citation": {"url": "http://a"}}]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "p"}}]},
    {
        "role": "assistant",
        "tool_calls": [
            {
                "id": "call_0",
                "type": "function",
                "function": {"name": "Read", "arguments": "{}", "parsed_arguments": None},
            }
        ],
    },
    {
        "role": "tool",
        "tool_call_id": "call_0",
        "content": [{"type": "text", "text": "x", "cache_control": {}}],
    },
    {"role": "assistant", "content": "x", "audio": {"id": "a"}},
]
WRONG: list[Any] = [
    7,
    {"role": "nobody", "content": "x"},
    {"role": "user"},
    {"role": "tool", "tool_call_id": "call_nobody", "content": "x"},
    {"role": "tool", "tool_call_id": "call_0", "content": None},
    {"role": "tool", "tool_call_id": "", "content": "x"},
    {"role": "function", "name": "Old", "content": "x"},
    {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "Read", "arguments": "{}"}}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "", "arguments": "{}"}}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "Read", "arguments": 7}}]},
    {"role": "assistant", "content": 7},
    {"role": "assistant", "content": "x", "reasoning": 7},
    {"role": "user", "content": [{"type": "text", "text": 7}]},
    {"role": "user", "content": [{"type": "text"}]},
]
said_messages = st.lists(st.one_of(spoken, spoken, asked, answers, answers), min_size=1, max_size=9)
BEGIN = {
    "role": "assistant",
    "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}"}} for id in IDS
    ],
}


def body(messages: Any, **more: Any) -> dict[str, Any]:
    decoy = {"type": "object", "properties": {"messages": {"enum": [[{"role": "user"}]]}}}
    functions = [
        {"name": "Read", "description": PADDING, "parameters": {"type": "object"}},
        {"name": "Send", "parameters": decoy, "strict": False},
    ]
    tools = [{"type": "function", "function": function} for function in functions]
    return {"model": "m", "messages": messages, "tools": tools, **more}


def turns(count: int) -> list[Any]:
    said: list[Any] = [{"role": "system", "content": TRICKY}, {"role": "user", "content": PADDING}]
    for number in range(count):
        called = call(f"call_{number}", arguments=f'{{"path": "{number}"}}')
        said += [
            {"role": "assistant", "content": f"I look at {number}.", "tool_calls": [called]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number} {TRICKY}"},
        ]
    return said


def check(data: bytes) -> None:
    assert seen(data, CLIENT) == carefully(data, CLIENT)


@pytest.fixture(autouse=True)
def own_memory() -> None:
    MEMORY.__init__()


@pytest.mark.parametrize("written", WAYS)
@settings(max_examples=40)
@given(said=said_messages, cuts=st.lists(st.integers(1, 10), max_size=3))
def test_gone_on_from_any_place_it_is_the_same(
    written: Callable[[Any], bytes], said: list[Any], cuts: list[int]
) -> None:
    MEMORY.__init__()
    said = [BEGIN, *said]
    for cut in cuts:
        seen(written({"messages": said[:cut], **body(said[:cut])}), CLIENT)
        seen(written(body(said[:cut], stream=True)), CLIENT)
        seen(written(body(said[:cut])), CLIENT)
    for data in (written(body(said)), written(body(said, stream=True)), written(body(said[:5]))):
        check(data)


@settings(max_examples=40)
@given(
    odd=st.lists(st.tuples(st.integers(0, 20), st.one_of(spoken, asked, answers)), max_size=3),
    gone=st.integers(0, 20),
    cuts=st.lists(st.integers(1, 20), max_size=2),
)
def test_turns_are_the_same_among_whatever_else_is_said(
    odd: list[tuple[int, Any]], gone: int, cuts: list[int]
) -> None:
    MEMORY.__init__()
    said = turns(9)
    for at, message in odd:
        said.insert(at, message)
    del said[gone : gone + 1]
    for cut in sorted(cuts):
        check(WAYS[1](body(said[:cut])))
    check(WAYS[1](body(said)))


@pytest.mark.parametrize("odd", OTHERS + WRONG)
def test_what_is_unusual_or_wrong_is_understood_wherever_it_stands(odd: Any) -> None:
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "once more"}
    late = [answer, {**answer, "tool_call_id": "call_p"}]
    for more in ([], turns(5)[8:], late[:1], late[1:]):
        said = [*turns(3), odd, *more]
        check(WAYS[1](body(said)))


@pytest.mark.parametrize("written", WAYS)
def test_what_the_last_request_had_is_not_read_again(written: Callable[[Any], bytes]) -> None:
    for count in range(1, 12):
        data = written(body(turns(count)))
        cut = MEMORY.conversations.cut(data, "messages", read_list)
        assert cut is not None
        assert cut.count == (0 if count == 1 else 2 * count)
        check(data)


def test_an_upstream_of_the_same_protocol_gets_the_very_bytes() -> None:
    for count in range(1, 9):
        data = WAYS[0](body(turns(count)))
        request = protocol(CLIENT).read_request(data, "")
        assert isinstance(request.messages, History)
        given = b"".join(protocol(CLIENT).write_request(request, TARGETS[0]).members["messages"].pieces)
        assert given in data
        assert given.endswith(b"]")


def test_an_upstream_that_is_picky_about_ids_gets_ids_it_takes() -> None:
    target = Target(model="m", issuer="one", ids=call_ids.MISTRAL)
    for count in range(1, 5):
        data = WAYS[1](body(turns(count)))
        request = protocol(CLIENT).read_request(data, "")
        sent = protocol(CLIENT).write_request(request, target).body["messages"]
        assert [len(message["tool_call_id"]) for message in sent if message["role"] == "tool"] == [9] * count


def test_what_was_put_back_is_written_among_what_goes_back_as_it_came() -> None:
    """As reasoning is that was kept for a client which has no place for it."""
    for count in range(1, 9):
        data = WAYS[1](body(turns(count)))
        request = protocol(CLIENT).read_request(data, "")
        history = request.messages
        assert isinstance(history, History)
        thought = Message("assistant", (Thinking("Hm."), *history[2].parts))
        changed = {2: thought}
        both = [
            request.changed(messages=history.changed(changed)),
            request.changed(messages=tuple(changed.get(at, old) for at, old in enumerate(history))),
        ]
        for target in [*TARGETS, msgspec.structs.replace(TARGETS[0], reasoning_field="reasoning_content")]:
            known, anew = (protocol(CLIENT).write_request(one, target) for one in both)
            assert (known.body, known.notices) == (anew.body, anew.notices)
