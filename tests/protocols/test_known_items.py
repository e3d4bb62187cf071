"""A long request of a Responses client is the same however much of it is known."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.messages import Seal
from dragoman.protocols.history import History
from dragoman.protocols.memory import MEMORY
from dragoman.protocols.openai_responses.request.read_plain import read_list
from dragoman.protocols.registry import protocol
from dragoman.protocols.seals import to_slot
from tests.support.known import PADDING, TARGETS, TRICKY, WAYS, carefully, seen

CLIENT = "openai-responses"

words = st.sampled_from(["", "Hello.", "Grüße", TRICKY, "\u2028"])
IDS = ["call_1", "call_2", "dgm-a-3ab", "dgmh-abc", "functions.Bash:0"]
ids = st.sampled_from(IDS)
more = st.sampled_from([{}, {}, {}, {"id": "x_1"}, {"status": "completed"}, {"name": "Read"}, {"later": 1}])
parts = st.one_of(
    st.builds(
        lambda kind, text, more: {"type": kind, "text": text, **more},
        st.sampled_from(["input_text", "output_text", "text"]),
        words,
        st.sampled_from([{}, {}, {"annotations": []}, {"prompt_cache_breakpoint": {"ttl": "1h"}}]),
    ),
    st.just(
        {"type": "output_text", "text": "x", "annotations": [{"type": "url_citation", "url": "http://a"}]}
    ),
    st.just({"type": "refusal", "refusal": "No."}),
    st.just({"type": "input_image", "image_url": "http://a/b.png"}),
)
contents = st.one_of(words, st.lists(parts, max_size=2))
messages = st.builds(
    lambda role, content, kind, more: {**kind, "role": role, "content": content, **more},
    st.sampled_from(["user", "assistant", "assistant", "developer", "system"]),
    contents,
    st.sampled_from([{}, {"type": "message"}, {"type": "message"}]),
    more,
)
calls = st.builds(
    lambda id, name, text, more: {
        "type": "function_call", "call_id": id, "name": name, "arguments": text, **more
    },
    ids,
    st.sampled_from(["Read", "Read", "mcp.tool"]),
    st.sampled_from(["{}", '{"path":"a.py"}', '{"a": [1.0, 1e400]}', '{"b', "", None, TRICKY]),
    st.one_of(more, st.just({"namespace": "files"})),
)  # fmt: skip
custom = st.builds(lambda id: {"type": "custom_tool_call", "call_id": id, "name": "patch", "input": "*"}, ids)
outputs = st.builds(
    lambda kind, id, output, more: {"type": kind, "call_id": id, "output": output, **more},
    st.sampled_from(["function_call_output", "function_call_output", "custom_tool_call_output"]),
    ids,
    contents,
    more,
)
slots = st.sampled_from(
    ["gAAA", "", None, to_slot(Seal("anthropic", "sig", issuer="one"), CLIENT),
     to_slot(Seal(CLIENT, "gAAB", "rs_2", issuer="two"), CLIENT, "call_1")]
)  # fmt: skip
reasoning = st.builds(
    lambda id, slot, text: {
        "type": "reasoning", **id, "summary": [{"type": "summary_text", "text": text}] if text else [],
        "content": None, "encrypted_content": slot,
    },
    st.sampled_from([{"id": "rs_1"}, {"id": "rs_abc_1"}, {}]),
    slots,
    st.sampled_from(["", "Hm."]),
)  # fmt: skip
TOOL = {"type": "function", "name": "Found", "parameters": {"type": "object"}}
OTHERS: list[Any] = [
    {"type": "additional_tools", "role": "developer", "tools": [TOOL]},
    {"type": "tool_search_output", "call_id": "call_1", "tools": [TOOL]},
    {"type": "item_reference", "id": "msg_1"},
    {"id": "msg_1"},
    {"type": "compaction", "encrypted_content": "x"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "local_shell_call", "call_id": "call_1", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "local_shell_call_output", "id": "call_1", "output": "x"},
    {"type": "function_call_output", "output": "x"},
]
others = st.sampled_from(OTHERS)
WRONG: list[Any] = [
    7,
    {"role": "nobody", "content": "x"},
    {"role": "user", "content": None},
    {"role": "user", "content": [{"type": "input_text", "text": 7}]},
    {"role": "user", "content": [{"type": "input_text"}]},
    {"type": "function_call", "call_id": "", "name": "Read", "arguments": "{}"},
    {"type": "function_call", "call_id": "call_1", "name": "", "arguments": "{}"},
    {"type": "function_call", "call_id": "call_1", "name": "Read", "arguments": {"a": 1}},
    {"type": "function_call_output", "call_id": "call_1", "output": {"a": 1}},
    {"type": "function_call_output", "call_id": "call_nobody", "output": "x"},
]
items = st.one_of(messages, calls, outputs, outputs, custom, reasoning)
BEGIN = [{"type": "function_call", "call_id": id, "name": "Read", "arguments": "{}"} for id in IDS]
said_items = st.lists(st.one_of(items, items, items, items, others), min_size=1, max_size=9)


def body(input: Any, **more: Any) -> dict[str, Any]:
    decoy = {"type": "object", "properties": {"input": {"enum": [[{"type": "message"}]]}}}
    tools = [
        {"type": "function", "name": "Read", "description": PADDING, "parameters": {"type": "object"}},
        {"type": "function", "name": "Send", "parameters": decoy, "strict": False},
        {"type": "custom", "name": "patch"},
    ]
    return {"model": "m", "instructions": TRICKY, "input": input, "tools": tools, "store": False, **more}


def turns(count: int) -> list[Any]:
    said: list[Any] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": PADDING}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Begin."}]},
    ]
    for number in range(count):
        answer = {"type": "function_call_output", "call_id": f"call_{number}", "output": f"{number} {TRICKY}"}
        said += [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"gA{number}"},
            {
                "type": "message", "role": "assistant", "id": f"msg_{number}",
                "content": [{"type": "output_text", "text": f"I look at {number}."}],
            },
            {"type": "function_call", "call_id": f"call_{number}", "name": "Read", "arguments": '{"a":1}'},
            answer,
        ]  # fmt: skip
    return said


def check(data: bytes) -> None:
    assert seen(data, CLIENT) == carefully(data, CLIENT)


@pytest.fixture(autouse=True)
def own_memory() -> None:
    MEMORY.__init__()


@pytest.mark.parametrize("written", WAYS)
@settings(max_examples=40)
@given(said=said_items)
def test_read_in_one_go_or_field_by_field_it_is_the_same(
    written: Callable[[Any], bytes], said: list[Any]
) -> None:
    check(written(body([*BEGIN, *said])))


@pytest.mark.parametrize("written", WAYS)
@settings(max_examples=40)
@given(said=said_items, cuts=st.lists(st.integers(1, 14), max_size=3))
def test_gone_on_from_any_place_it_is_the_same(
    written: Callable[[Any], bytes], said: list[Any], cuts: list[int]
) -> None:
    MEMORY.__init__()
    said = [*BEGIN, *said]
    for cut in cuts:
        seen(written({"input": said[:cut], **body(said[:cut])}), CLIENT)
        seen(written(body(said[:cut], stream=True)), CLIENT)
        seen(written(body(said[:cut])), CLIENT)
    for data in (written(body(said)), written(body(said, stream=True)), written(body(said[:9]))):
        check(data)


@settings(max_examples=40)
@given(
    odd=st.lists(st.tuples(st.integers(0, 40), items), max_size=3),
    gone=st.integers(0, 40),
    cuts=st.lists(st.integers(1, 40), max_size=2),
)
def test_turns_are_the_same_among_whatever_else_is_said(
    odd: list[tuple[int, Any]], gone: int, cuts: list[int]
) -> None:
    MEMORY.__init__()
    said = turns(9)
    for at, item in odd:
        said.insert(at, item)
    del said[gone : gone + 1]
    for cut in sorted(cuts):
        check(WAYS[1](body(said[:cut])))
    check(WAYS[1](body(said)))


ODD_PARTS = [
    {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"ttl": "1h"}},
    {"type": "output_text", "text": "x", "annotations": [{"type": "url_citation", "url": "http://a"}]},
    {"type": "refusal", "refusal": "No."},
]
ODD = [
    *OTHERS,
    *({"role": role, "content": [part]} for role in ("user", "assistant") for part in ODD_PARTS),
    *({"type": "function_call_output", "call_id": "call_0", "output": [part]} for part in ODD_PARTS),
]


@pytest.mark.parametrize("odd", ODD)
def test_what_is_unusual_is_understood_wherever_it_stands(odd: Any) -> None:
    nobody = {"type": "function_call_output", "call_id": "call_nobody", "output": "x"}
    for said in ([*turns(3), odd], [*turns(3), odd, *turns(5)[14:]], [*turns(3), odd, nobody]):
        check(WAYS[1](body(said)))


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_complained_of_wherever_it_stands(wrong: Any) -> None:
    for count in range(3):
        check(WAYS[1](body([*turns(count), wrong])))
    check(WAYS[1](body([*turns(1), wrong, *turns(4)[6:]])))


@pytest.mark.parametrize("written", WAYS)
def test_what_the_last_request_had_is_not_read_again(written: Callable[[Any], bytes]) -> None:
    for count in range(1, 12):
        data = written(body(turns(count)))
        cut = MEMORY.conversations.cut(data, "input", read_list)
        assert cut is not None
        assert cut.count == (0 if count == 1 else 4 * count - 2)
        check(data)
        again = written(body(turns(count + 1), prompt_cache_key="another"))
        cut = MEMORY.conversations.cut(again, "input", read_list)
        assert cut is not None
        assert cut.count == 4 * count + 2


AHEAD = {
    "type": "additional_tools", "role": "developer", "id": "at_1",
    "tools": [
        {"type": "namespace", "name": "functions", "description": PADDING,
         "tools": [{"type": "custom", "name": "exec"}, TOOL]},
        {"type": "function", "name": "Read", "parameters": {"type": "object"}},
    ],
}  # fmt: skip


def in_code(count: int) -> list[Any]:
    """Turns as Codex has them in its code mode."""
    said: list[Any] = [AHEAD, *turns(0)]
    for number in range(count):
        called = {
            "call_id": f"call_{number}",
            "name": "exec",
            "namespace": "functions",
            "input": f"{number}()",
        }
        text = {"type": "input_text", "text": f"{number} {TRICKY}"}
        said += [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"gA{number}"},
            {"type": "custom_tool_call", "id": f"ctc_{number}", **called},
            {"type": "custom_tool_call_output", "call_id": f"call_{number}", "output": [text]},
        ]
    return said


@pytest.mark.parametrize("written", WAYS)
@settings(max_examples=40)
@given(
    ahead=st.lists(st.sampled_from([AHEAD, OTHERS[0]]), max_size=2),
    said=said_items,
    cuts=st.lists(st.integers(1, 14), max_size=3),
    more=st.sampled_from([{}, {"tools": None}, {"tool_choice": {"type": "function", "name": "Read"}}]),
)
def test_tools_ahead_of_all_messages_are_there_from_any_place_on(
    written: Callable[[Any], bytes], ahead: list[Any], said: list[Any], cuts: list[int], more: dict[str, Any]
) -> None:
    MEMORY.__init__()
    said = [*ahead, *BEGIN, *said]
    for cut in cuts:
        check(written(body(said[:cut], **more)))
        seen(written(body(said[:cut], stream=True, **more)), CLIENT)
    for data in (written(body(said, **more)), written(body(said, stream=True, **more))):
        check(data)


@pytest.mark.parametrize("written", WAYS)
def test_what_the_last_request_had_in_code_mode_is_not_read_again(written: Callable[[Any], bytes]) -> None:
    for count in range(1, 12):
        more = {"tools": None, "client_metadata": {"turn": str(count // 2)}}
        data = written(body(in_code(count), **more))
        cut = MEMORY.conversations.cut(data, "input", read_list)
        assert cut is not None
        assert cut.count == (0 if count == 1 else 3 * count - 1)
        check(data)
        request = protocol(CLIENT).read_request(data, "")
        assert isinstance(request.messages, History)
        assert len(request.messages) == 3 * count + 3
        outgoing = protocol(CLIENT).write_request(request, TARGETS[0])
        assert b"".join(outgoing.members["input"].pieces)[:-1] in data


def test_tools_that_come_later_are_there_too() -> None:
    for said in (in_code(3), [*in_code(3), OTHERS[0]], [*in_code(3), OTHERS[0], *in_code(4)[-3:]]):
        check(WAYS[1](body(said)))


@pytest.mark.parametrize("more", [{}, {"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_what_is_kept_elsewhere_is_read_with_all_at_hand(more: dict[str, Any]) -> None:
    for count in (2, 3):
        check(WAYS[1](body([*turns(count), {"role": "user", "content": "Go on."}], **more)))
        answer = {"type": "function_call_output", "call_id": "call_elsewhere", "output": "x"}
        check(WAYS[1](body([answer, *turns(count)], **more)))


def test_an_upstream_of_the_same_protocol_gets_the_very_bytes() -> None:
    for count in range(1, 9):
        data = WAYS[0](body(turns(count)))
        request = protocol(CLIENT).read_request(data, "")
        assert isinstance(request.messages, History)
        outgoing = protocol(CLIENT).write_request(request, TARGETS[0])
        given = b"".join(outgoing.members["input"].pieces)
        assert given in data
        assert given.endswith(b"]")


def test_the_same_bytes_of_a_client_of_another_protocol_are_another_conversation() -> None:
    said = [{"role": "user", "content": PADDING}, {"role": "assistant", "content": "Yes."}]
    data = WAYS[1]({"model": "m", "max_tokens": 9, "messages": said, "input": said})
    for _ in range(2):
        for client in ("anthropic", "openai-chat", CLIENT):
            assert seen(data, client) == carefully(data, client)
