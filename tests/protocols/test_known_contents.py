"""A long request of a Gemini client is the same however much of it is known."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.messages import Seal
from dragoman.protocols.gemini.request.read_plain import read_list
from dragoman.protocols.history import History
from dragoman.protocols.memory import MEMORY
from dragoman.protocols.registry import protocol
from dragoman.protocols.seals import to_slot
from tests.support.known import PADDING, TARGETS, TRICKY, WAYS, carefully, seen

CLIENT = "gemini"
PATH = "/v1beta/models/m:streamGenerateContent?alt=sse"

words = st.sampled_from(["", "Hello.", "Grüße", TRICKY, "\u2028"])
IDS: list[Any] = [
    "call_1",
    "call_2",
    "dgm-a-3ab",
    "dgmh-abc",
    "functions.Bash:0",
    "call_0_Read",
    "call_3_Read",
]
NAMES = ["Read", "Read", "mcp.tool"]
ids = st.sampled_from([*IDS, None, None, None, None, ""])
names = st.sampled_from(NAMES)
slots = st.sampled_from(
    ["c2ln", "", None, "skip_thought_signature_validator",
     to_slot(Seal("anthropic", "sig", issuer="one"), CLIENT),
     to_slot(Seal(CLIENT, "c2lnMg==", issuer="two"), CLIENT)]
)  # fmt: skip
signs = st.one_of(
    st.just({}),
    st.builds(
        lambda key, slot: {key: slot}, st.sampled_from(["thoughtSignature", "thought_signature"]), slots
    ),
)
more = st.sampled_from(
    [{}, {}, {}, {}, {"thought": False}, {"thought": None}, {"later": 1}, {"thought": True}]
)
texts = st.builds(lambda text, sign, more: {"text": text, **sign, **more}, words, signs, more)


def with_id(id: Any, **more: Any) -> dict[str, Any]:
    return more if id is None else {"id": id, **more}


calls = st.builds(
    lambda key, id, name, args, sign: {key: with_id(id, name=name, **args), **sign},
    st.sampled_from(["functionCall", "functionCall", "function_call"]),
    ids,
    names,
    st.sampled_from(
        [{}, {"args": None}, {"args": {"path": "a.py"}}, {"args": {"a": [1.0, {"ü": TRICKY}]}}, {"args": {}}]
    ),
    signs,
)
ANSWERS: list[Any] = [
    {"output": "fine"}, {"result": TRICKY}, {"content": ""}, {"return_value": {"a": [1, 1.5]}},
    {"output": None}, {"error": "no"}, {"error": ""}, {"error": None, "output": "x"}, {},
    {"error": "no", "output": "x"}, {"name": "Read", "content": "x"}, {"name": "Other", "content": "x"},
    {"output": "x", "exit": 1},
]  # fmt: skip
responses = st.builds(
    lambda key, id, name, answer, more: {key: with_id(id, name=name, response=answer, **more)},
    st.sampled_from(["functionResponse", "functionResponse", "function_response"]),
    ids,
    names,
    st.sampled_from(ANSWERS),
    st.sampled_from(
        [{}, {}, {}, {"parts": []}, {"parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}]}]
    ),
)
OTHERS: list[Any] = [
    {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
    {"file_data": {"mime_type": "image/png", "file_uri": "http://a/b.png"}},
    {"executableCode": {"code": "1"}},
    {"thoughtSignature": "c2ln"},
    {"text": "x", "videoMetadata": {"fps": 1}},
    {"functionCall": {"name": "Read", "willContinue": False}, "text": None},
    {"functionCall": None, "function_call": {"name": "Read"}, "text": "x"},
    {"functionResponse": {"name": "Read"}},
]
others = st.sampled_from(OTHERS)
said = st.lists(st.one_of(texts, calls, calls, others), max_size=3)
asked = st.lists(st.one_of(texts, responses, responses, others), max_size=3)
ROLES = st.sampled_from([{"role": "user"}, {"role": "user"}, {"role": "function"}, {}, {"role": ""}])
contents = st.one_of(
    st.builds(lambda parts: {"role": "model", "parts": parts}, said),
    st.builds(lambda role, parts: {**role, "parts": parts}, ROLES, asked),
    st.builds(lambda parts: {"parts": parts, "role": "user"}, asked),
)


def turn(number: int, id: Any, name: str = "Read") -> list[Any]:
    """A call and its response, with or without an id."""
    call = {"functionCall": with_id(id, name=name, args={"n": number, "why": TRICKY})}
    answer = {"functionResponse": with_id(id, name=name, response={"output": f"{number} {TRICKY}"})}
    return [
        {"role": "model", "parts": [{"text": f"I look at {number}."}, {**call, "thoughtSignature": "c2ln"}]},
        {"role": "user", "parts": [answer]},
    ]


pairs = st.builds(turn, st.integers(0, 9), st.sampled_from(["call_1", "call_2", None, None, ""]), names)
talks = st.lists(
    st.one_of(pairs, pairs, pairs, st.builds(lambda one: [one], contents)), min_size=1, max_size=9
)


def body(said: Any, **more: Any) -> dict[str, Any]:
    decoy = {"type": "object", "properties": {"contents": {"enum": [[{"role": "user"}]]}}}
    declared = [
        {"name": "Read", "description": PADDING, "parametersJsonSchema": {"type": "object"}},
        {"name": "Send", "parameters": decoy},
    ]
    system = {"role": "user", "parts": [{"text": TRICKY}]}
    tools = [{"functionDeclarations": declared}]
    return {"contents": said, "systemInstruction": system, "tools": tools, "generationConfig": {}, **more}


def turns(count: int, *, with_ids: bool = True) -> list[Any]:
    said: list[Any] = [{"role": "user", "parts": [{"text": PADDING}]}]
    for number in range(count):
        said += turn(number, f"call_{number}" if with_ids else None)
    return said


def check(data: bytes, path: str = PATH) -> None:
    assert seen(data, CLIENT, path) == carefully(data, CLIENT, path)


@pytest.fixture(autouse=True)
def own_memory() -> None:
    MEMORY.__init__()


@pytest.mark.parametrize("written", WAYS)
@settings(max_examples=40)
@given(talk=talks)
def test_read_in_one_go_or_field_by_field_it_is_the_same(
    written: Callable[[Any], bytes], talk: list[list[Any]]
) -> None:
    check(written(body([*turns(1), *(content for turn in talk for content in turn)])))


@pytest.mark.parametrize("written", WAYS)
@settings(max_examples=40)
@given(talk=talks, cuts=st.lists(st.integers(1, 14), max_size=4))
def test_gone_on_from_any_place_it_is_the_same(
    written: Callable[[Any], bytes], talk: list[list[Any]], cuts: list[int]
) -> None:
    MEMORY.__init__()
    said = [*turns(1), *(content for turn in talk for content in turn)]
    for cut in cuts:
        seen(written({"contents": said[:cut], **body(said[:cut])}), CLIENT, PATH)
        seen(written(body(said[:cut], labels={"a": "b"})), CLIENT, PATH)
        seen(written(body(said[:cut])), CLIENT, PATH)
    for data in (written(body(said)), written(body(said, labels={"a": "b"})), written(body(said[:9]))):
        check(data)


@settings(max_examples=40)
@given(
    odd=st.lists(st.tuples(st.integers(0, 20), contents), max_size=2),
    cuts=st.lists(st.integers(1, 24), max_size=3),
    with_ids=st.booleans(),
)
def test_turns_are_the_same_among_whatever_else_is_said(
    odd: list[tuple[int, Any]], cuts: list[int], with_ids: bool
) -> None:
    MEMORY.__init__()
    said = turns(10, with_ids=with_ids)
    for at, content in odd:
        said.insert(at, content)
    for cut in sorted(cuts):
        check(WAYS[1](body(said[:cut])))
    check(WAYS[1](body(said)))


WRONG: list[Any] = [
    7,
    {"role": "nobody", "parts": [{"text": "x"}]},
    {"role": "user", "parts": [{"text": 7}]},
    {"role": "user", "parts": [{"functionCall": {"name": "Read"}}]},
    {"role": "model", "parts": [{"functionResponse": {"name": "Read", "response": {}}}]},
    {"role": "model", "parts": [{"functionCall": {"name": ""}}]},
    {"role": "model", "parts": [{"functionCall": {"name": "Read", "args": "{}"}}]},
    {"role": "user", "parts": [{"functionResponse": {"id": "nobody", "name": "Read", "response": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "Nobody", "response": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "Read", "response": "x"}}]},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_complained_of_wherever_it_stands(wrong: Any) -> None:
    for count in range(3):
        check(WAYS[1](body([*turns(count), wrong])))
    check(WAYS[1](body([*turns(1), wrong, *turns(4)[3:]])))


@pytest.mark.parametrize("part", OTHERS)
def test_what_is_unusual_is_understood_wherever_it_stands(part: Any) -> None:
    for role in ("user", "model"):
        odd = {"role": role, "parts": [part]}
        for with_ids in (True, False):
            said = turns(4, with_ids=with_ids)
            for more in ([*said[:5], odd], [*said[:5], odd, *said[5:]]):
                check(WAYS[1](body(more)))


@pytest.mark.parametrize("written", WAYS)
@pytest.mark.parametrize("with_ids", [True, False])
def test_what_the_last_request_had_is_not_read_again(written: Callable[[Any], bytes], with_ids: bool) -> None:
    for count in range(1, 12):
        data = written(body(turns(count, with_ids=with_ids)))
        cut = MEMORY.conversations.cut(data, "contents", read_list)
        assert cut is not None
        assert cut.count == (0 if count == 1 else 2 * count - 1)
        check(data)
        request = protocol(CLIENT).read_request(data, PATH)
        assert isinstance(request.messages, History)
        assert all(request.messages.plain_ones(0)[0])


def test_the_same_contents_may_be_posted_elsewhere() -> None:
    for count in (3, 4):
        for path in (PATH, "/v1beta/models/other:generateContent", "", "/v1beta/models/m:unknown"):
            check(WAYS[1](body(turns(count), model="models/in-the-body")), path)


def test_what_is_kept_elsewhere_is_read_with_all_at_hand() -> None:
    answer = {"functionResponse": {"name": "Read", "response": {"output": "x"}}}
    for count in (2, 3):
        check(
            WAYS[1](
                body([{"role": "user", "parts": [answer]}, *turns(count)], cachedContent="cachedContents/a")
            )
        )


def test_an_id_that_was_given_to_another_call_is_not_the_clients() -> None:
    said = turns(5, with_ids=False)
    check(WAYS[1](body(said)))
    check(WAYS[1](body([*said, *turn(7, "call_0_Read"), *turn(8, None)])))


def test_a_conversation_that_took_another_way_is_paired_anew() -> None:
    said = turns(6, with_ids=False)
    check(WAYS[1](body(said)))
    check(WAYS[1](body([*said[:-1], {"role": "user", "parts": [{"text": "Stop."}]}])))
    check(WAYS[1](body([*said[:-2], *turn(9, None, "mcp.tool"), *turn(10, None)])))


@pytest.mark.parametrize("read", [seen, carefully])
def test_calls_without_ids_that_say_the_same_are_answered_each(read: Callable[..., Any]) -> None:
    data = WAYS[1](body([*turns(1, with_ids=False), *turn(0, None) * 3]))
    request, _ = read(data, CLIENT, PATH)
    messages = protocol("openai-chat").write_request(request, TARGETS[0]).body["messages"]
    called = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert len(set(called)) == 4
    assert called == answered


def test_an_upstream_of_the_same_protocol_gets_the_very_bytes() -> None:
    for count in range(1, 9):
        data = WAYS[0](body(turns(count)))
        request = protocol(CLIENT).read_request(data, PATH)
        assert isinstance(request.messages, History)
        outgoing = protocol(CLIENT).write_request(request, TARGETS[0])
        given = b"".join(outgoing.members["contents"].pieces)
        assert given in data
        assert given.endswith(b"]")
