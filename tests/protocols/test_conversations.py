"""A long request is read in one go, and a known beginning not at all: neither makes it another request."""

import gc
import json
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import BadRequest
from dragoman.messages import Request, Seal
from dragoman.protocols import conversations, listed, memory, recall
from dragoman.protocols.anthropic.request.plain_shapes import read_list
from dragoman.protocols.anthropic.request.read_plain import read_history
from dragoman.protocols.base import Target
from dragoman.protocols.conversations import Conversation, Conversations
from dragoman.protocols.history import History
from dragoman.protocols.listed import LATELY
from dragoman.protocols.memory import MEMORY
from dragoman.protocols.openai_chat.request import write, write_messages
from dragoman.protocols.pieces import Whole
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.protocols.seals import to_slot
from dragoman.store.lookups import Carriage, lookups

PADDING = "as long as a prompt is, so that it is worth remembering. " * 12
TARGETS = [
    Target(model="claude-m", issuer="one"),
    Target(model="m", issuer="two", chat_compatible=True),
    Target(model="m", issuer="one", chat_compatible=True, reasoning_field="reasoning_content"),
]
WAYS: list[Callable[[Any], bytes]] = [
    lambda body: json.dumps(body).encode(),
    lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(),
    lambda body: json.dumps(body, indent=2).encode(),
    lambda body: json.dumps(body, ensure_ascii=False, sort_keys=True).encode(),
]
MARKS_LAST = WAYS[:3]
"""Those with what was put in last at the end."""
ORDERS = {
    "as an agent of Anthropic's": [
        "model",
        "messages",
        "system",
        "tools",
        "metadata",
        "max_tokens",
        "stream",
    ],
    "as Anthropic's SDK": ["max_tokens", "messages", "model", "stop_sequences", "stream", "system", "tools"],
    "prompt last": ["messages", "tools", "model", "max_tokens", "system"],
    "tools first": ["tools", "model", "system", "max_tokens", "messages", "stream"],
    "prompt and messages first": ["model", "system", "messages", "tools", "stream", "max_tokens"],
}
MORE = {"stream": True, "metadata": {"user_id": '{"a":[{"b":1}]}'}, "stop_sequences": ["}]", "["]}
# What looks like the list of messages, and is not.
DECOY = {"name": "Send", "input_schema": {"type": "object", "properties": {"messages": {"enum": [[1]]}}}}
TRICKY = 'He wrote "messages":[{"role":"user"}] and \\"messages\\":[ and \U0001f600, "\t\n'

words = st.sampled_from(["", "Hello.", "Grüße", TRICKY, "\u2028"])
ids = st.sampled_from(["toolu_1", "toolu_2", "dgm-a-3ab", "dgmh-abc", "functions.Bash:0", ""])
caches = st.sampled_from([{}, {}, {}, {"cache_control": {"type": "ephemeral"}}, {"later": 1}])
cited = st.sampled_from([{}, {}, {"citations": None}, {"citations": []}])
texts = st.builds(
    lambda text, more, cited: {"type": "text", "text": text, **more, **cited}, words, caches, cited
)
callers = st.sampled_from([{}, {}, {"caller": {"type": "direct"}}, {"caller": None}])
calls = st.builds(
    lambda id, name, given, more, by: {
        "type": "tool_use",
        "id": id,
        "name": name,
        "input": given,
        **more,
        **by,
    },
    ids,
    st.sampled_from(["Read", "mcp.tool", ""]),
    st.sampled_from(
        [{}, {"path": "a.py"}, {"b": [1.0, 1e22, None], "a": TRICKY}, {"a": [{"role": 1}]}, None, [1]]
    ),
    caches,
    callers,
)
results = st.builds(
    lambda id, content, more: {"type": "tool_result", "tool_use_id": id, **content, **more},
    ids,
    st.one_of(
        st.just({}),
        st.builds(lambda content: {"content": content}, st.one_of(words, st.lists(texts, max_size=2))),
        st.builds(lambda failed: {"content": "x", "is_error": failed}, st.sampled_from([True, False, None])),
        st.just({"content": [{"type": "image", "source": {"type": "url", "url": "http://a/b.png"}}]}),
    ),
    caches,
)
signatures = st.sampled_from(
    ["abc", "", *(to_slot(Seal(p, "abc", issuer="one"), "anthropic") for p in ("gemini", "openai-chat"))]
)
thoughts = st.builds(
    lambda text, more: {"type": "thinking", "thinking": text, **more},
    st.sampled_from(["Hm.", "", TRICKY, 7]),
    st.one_of(
        st.builds(lambda slot: {"signature": slot}, signatures),
        st.sampled_from([{}, {"signature": None}, {"signature": 7}, {"signature": "abc", "later": 1}]),
    ),
)
redacted = st.builds(lambda slot: {"type": "redacted_thinking", "data": slot}, signatures)
blocks = st.lists(st.one_of(texts, calls, results, thoughts, thoughts, redacted, st.just(7)), max_size=4)
messages = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", "assistant", "system", "nobody"]),
    st.one_of(words, blocks),
)
told = st.builds(
    lambda content, more: {"role": "system", "content": content, **more},
    st.one_of(words, st.lists(texts, max_size=2)),
    st.sampled_from([{}, {}, {}, {"output_config": {"effort": "low"}}, {"later": 1}]),
)
messages = st.one_of(messages, told)


def body(spoken: list[Any], **more: Any) -> dict[str, Any]:
    tools = [{"name": "Read", "input_schema": {"type": "object"}, "description": PADDING}, DECOY]
    return {"model": "m", "max_tokens": 9, "system": TRICKY, "tools": tools, "messages": spoken, **more}


def seen(data: bytes) -> tuple[Request | str, list[Any]]:
    """What is read, or the complaint, and what every upstream is then sent and told."""
    try:
        request = protocol("anthropic").read_request(data, "/v1/messages")
    except BadRequest as error:
        return f"{error.path}: {error.message}", []
    if isinstance(request.messages, History) and request.messages.body is not None:
        assert b"".join(request.messages.body.pieces) == data
    return request, [sent(request, upstream, target) for upstream in PROTOCOLS for target in TARGETS]


def sent(request: Request, upstream: str, target: Target) -> Any:
    try:
        outgoing = protocol(upstream).write_request(request, target)
    except BadRequest as error:
        return f"{error.path}: {error.message}"
    return outgoing.body, outgoing.notices, outgoing.stop


def carefully(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Request | str, list[Any]]:
    with monkeypatch.context() as patch:
        patch.setattr(recall, "WORTH_IT", len(data) + 1)
        return seen(data)


@pytest.fixture(autouse=True)
def own_memory() -> None:
    MEMORY.__init__()


@pytest.mark.parametrize("written", WAYS)
@given(spoken=st.lists(messages, min_size=1, max_size=9))
def test_read_in_one_go_or_field_by_field_it_is_the_same(
    written: Callable[[Any], bytes], spoken: list[Any]
) -> None:
    data = written(body(spoken))
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert seen(data) == carefully(data, monkeypatch)


@given(spoken=st.lists(messages, min_size=1, max_size=9))
def test_what_was_kept_is_looked_up_under_the_same_keys(spoken: list[Any]) -> None:
    try:
        request = protocol("anthropic").read_request(WAYS[1](body(spoken)), "/v1/messages")
    except BadRequest:
        return
    for carriage in (
        Carriage(client="anthropic", issuer="up", asked=False),
        Carriage(client="anthropic", issuer="up", same=True),
        Carriage(client="anthropic", issuer="up", same=True, named=False),
        Carriage(client="gemini", issuer="up"),
    ):
        assert lookups(request.messages, carriage) == lookups(tuple(request.messages), carriage)


@pytest.mark.parametrize("written", WAYS)
@given(spoken=st.lists(messages, min_size=1, max_size=9), cuts=st.lists(st.integers(1, 9), max_size=4))
def test_gone_on_from_any_place_it_is_the_same(
    written: Callable[[Any], bytes], spoken: list[Any], cuts: list[int]
) -> None:
    """Earlier requests had less of it, or marks in other places: whatever is known of them does not show."""
    MEMORY.__init__()
    for cut in cuts:
        some = spoken[:cut]
        seen(written(body([*some[:-1], {**some[-1], "content": [{"type": "text", "text": "else"}]}])))
        seen(written({"messages": some, **body(some)}))
        seen(written(body(some, stream=True)))
        seen(written(body(some)))
    for data in (written(body(spoken)), written(body(spoken, stream=True)), written(body(spoken[:5]))):
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


LIST_ENDS = [
    b"]",
    b"",
    b",]",
    b',{"role":"user","content":"more"}]',
    b' , {"role":"user","content":"more"} ] ',
    b'],"stream":[true]',
    b'],"stream":true,"x":[1]',
    b'],"messages":[{"role":"user","content":"others"}]',
    b',{"role":"user","content":"more"}],"messages":[{"role":"user","content":"others"}]',
    b"]]",
    b',"\xff"]',
    b'],"system":"\xff","x":[1]',
]


@pytest.mark.parametrize("end", LIST_ENDS)
@pytest.mark.parametrize("around", [(b"{", b"}"), (b"{\n", b"} \n"), (b'{"x":', b',"stream":true}')])
def test_whatever_follows_what_is_known_is_what_it_is_alone(around: tuple[bytes, bytes], end: bytes) -> None:
    """Also where the bytes around the list are the same, and what is between them is another thing."""
    start, stop = around
    start += b'7,"y":' if start.endswith(b":") else b'"y":'
    written = WAYS[1](body(turns(4)))
    head, known = written[1 : written.index(b'"messages"')], written[written.index(b'"messages"') : -2]
    for first in range(2):
        MEMORY.__init__()
        seen(start + b"1," + head + known + b"]" + stop)
        if first:  # then it is sure where the list begins, however it is written
            seen(start + b"1," + head + known + b"]" + stop)
        data = start + b"1," + head + known + end + stop
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def turns(count: int) -> list[Any]:
    spoken: list[Any] = [{"role": "user", "content": PADDING}]
    for number in range(count):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"{number}"}}
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"{number} {TRICKY}"}
        spoken += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return spoken


@given(
    odd=st.lists(st.tuples(st.integers(0, 17), messages), max_size=3),
    gone=st.integers(0, 17),
    answered=st.integers(0, 2),
    first=st.lists(st.sampled_from(["messages", "model", "system", "tools"]), unique=True),
)
def test_whole_turns_are_the_same_among_whatever_else_is_said(
    odd: list[tuple[int, Any]], gone: int, answered: int, first: list[str]
) -> None:
    MEMORY.__init__()
    spoken = turns(8)
    spoken[1:3] = [
        {"role": "assistant", "content": [*spoken[1]["content"], *spoken[3]["content"]]},
        {"role": "user", "content": [*spoken[4]["content"], *spoken[2]["content"]][:answered]},
    ]
    for at, message in odd:
        spoken.insert(at, message)
    del spoken[gone : gone + 1]
    said = body(spoken)
    data = WAYS[1]({key: said.pop(key) for key in first} | said)
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert seen(data) == carefully(data, monkeypatch)


def known(data: bytes) -> int:
    """How many of its messages are known."""
    cut = MEMORY.conversations.cut(data, "messages", read_list)
    return cut.count if cut is not None else 0


@pytest.mark.parametrize("written", MARKS_LAST)
def test_what_the_last_request_had_is_not_read_again(written: Callable[[Any], bytes]) -> None:
    for count in range(1, 12):
        data = written(body(turns(count)))
        assert known(data) == (0 if count == 1 else 2 * count - 1)
        seen(data)
        moved = turns(count)
        moved[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        assert known(written(body(moved))) == 2 * count
        assert known(written({**body(turns(count + 1)), "model": "a longer name"})) == 2 * count + 1


@pytest.mark.parametrize("written", WAYS)
def test_what_is_said_around_the_messages_is_not_read_again(written: Callable[[Any], bytes]) -> None:
    seen(written(body(turns(3))))
    seen(written(body(turns(4))))
    before = protocol("anthropic").read_request(written(body(turns(5))), "/v1/messages")
    cut = MEMORY.conversations.cut(written(body(turns(6))), "messages", read_list)
    assert cut is not None
    assert (cut.members, len(cut.messages)) == (None, 2)
    MEMORY.read(written(body([], more="x" * memory.DEFAULT_MOST)))
    MEMORY.read(written(body([], more="y" * memory.DEFAULT_MOST)))
    after = protocol("anthropic").read_request(written(body(turns(6))), "/v1/messages")
    assert after.tools is before.tools, "what is known of them is not forgotten as long as they come"
    cut = MEMORY.conversations.cut(written(body(turns(7), stream=True)), "messages", read_list)
    assert cut is not None
    assert cut.members is not None
    assert cut.count == 13


@pytest.mark.parametrize("change", [{}, {"stream": True}])
@pytest.mark.parametrize("written", WAYS)
def test_a_long_conversation_is_held_once_and_in_few_pieces(
    written: Callable[[Any], bytes], change: dict[str, Any]
) -> None:
    """Of a request that goes on with another one, only what is new is held."""
    most = 0
    for count in range(1, 80):
        data = written(body(turns(count), **(change if count % 3 == 0 else {})))
        before = sys.getrefcount(data)
        request = protocol("anthropic").read_request(data, "/v1/messages")
        messages = cast(History, request.messages)
        sending = protocol("openai-chat").write_request(request, TARGETS[1]).members["messages"].pieces
        assert count == 1 or sys.getrefcount(data) == before
        assert count == 1 or b"".join(cast(Whole, messages.body).pieces) == data
        most = max(most, len(messages.json().pieces), len(sending))
        del request, messages, sending
    assert most < 16


def test_what_follows_the_messages_is_not_looked_for_in_them() -> None:
    """The last message ends like the whole request."""
    whole = WAYS[1](body(turns(4)))
    assert whole.endswith(b"]}]}")
    seen(whole)
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert seen(whole[:-2]) == carefully(whole[:-2], monkeypatch)


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("written", WAYS)
def test_another_list_behind_the_messages_is_not_taken_for_their_end(
    written: Callable[[Any], bytes], count: int
) -> None:
    servers = [{"type": "url", "name": "one", "url": "https://one.example"}]
    first, second = (written(body(turns(n), mcp_servers=servers)) for n in (count, count + 1))
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert seen(first) == carefully(first, monkeypatch)
    assert known(second) == 2 * count + 1, "what the first one said is known from it"


def test_a_message_that_is_plain_is_not_made_a_neutral_one() -> None:
    request = protocol("anthropic").read_request(WAYS[0](body(turns(5))), "/v1/messages")
    assert isinstance(request.messages, History)
    protocol("openai-chat").write_request(request, TARGETS[0])
    assert not request.messages._made  # pyright: ignore[reportPrivateUsage]


def test_what_was_written_is_held_as_bytes_and_read_again_for_another_target() -> None:
    data = WAYS[0](body([*turns(20), {"role": "assistant", "content": [THOUGHT]}, *turns(20)[1:]]))
    request = protocol("anthropic").read_request(data, "/v1/messages")
    assert isinstance(request.messages, History)
    for target in TARGETS:
        outgoing = protocol("openai-chat").write_request(request, target)
        held = [plain for plain in request.messages._held[0] if plain is not None]  # pyright: ignore[reportPrivateUsage]
        assert len(held) <= LATELY
        MEMORY.__init__()
        again = protocol("anthropic").read_request(data, "/v1/messages")
        assert outgoing.body == protocol("openai-chat").write_request(again, target).body
    assert request.messages == again.messages


@pytest.mark.parametrize("first", ["a string", "a list"])
@pytest.mark.parametrize("written", WAYS)
def test_results_are_plain_whether_they_are_strings_or_lists(
    written: Callable[[Any], bytes], first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also among each other, and beside one that shows something."""
    spoken = turns(20)
    for place in range(2 if first == "a list" else 4, len(spoken), 8):
        (result,) = spoken[place]["content"]
        result["content"] = [{"type": "text", "text": result["content"]}, {"type": "text", "text": "Grüße"}]
    spoken[18]["content"] += [{"type": "text", "text": "Look."}]
    spoken[20]["content"][0]["content"] = [
        {"type": "image", "source": {"type": "url", "url": "http://a/b.png"}}
    ]
    for data in (written(body(spoken[:-2])), written(body(spoken))):
        assert seen(data) == carefully(data, monkeypatch)
    MEMORY.__init__()
    request = protocol("anthropic").read_request(data, "/v1/messages")
    assert isinstance(request.messages, History)
    assert list(request.messages.unusual()) == [20]


def test_a_cache_mark_does_not_make_a_message_another_one_for_who_writes_none() -> None:
    spoken = turns(5)
    for block in (spoken[2]["content"][0], spoken[-1]["content"][0]):
        block["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    request = protocol("anthropic").read_request(WAYS[0](body(spoken)), "/v1/messages")
    assert isinstance(request.messages, History)
    plain, marked = [protocol("openai-chat").write_request(request, target).body for target in TARGETS[1::-1]]
    assert "breakpoint" not in json.dumps(plain)
    assert json.dumps(marked).count("breakpoint") == 2
    request = protocol("anthropic").read_request(WAYS[1](body(spoken)), "/v1/messages")
    protocol("openai-chat").write_request(request, TARGETS[1])
    assert not cast(History, request.messages)._made  # pyright: ignore[reportPrivateUsage]


MARK = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def marked(count: int, *marks: tuple[int, int, Any], written: Callable[[Any], bytes] = WAYS[1]) -> bytes:
    """A conversation with several parts in its messages, and marks on some of them."""
    spoken = turns(count)
    for message in spoken[2::2]:
        message["content"] += [{"type": "text", "text": "one"}, {"type": "text", "text": "more"}]
    for at, part, mark in marks:
        content = spoken[at]["content"]
        if isinstance(content, list):
            content[part]["cache_control"] = mark
    return written(body(spoken))


@pytest.mark.parametrize(
    "marks",
    [
        [(-1, -1, MARK)],
        [(-1, -1, LONG)],
        [(-1, -1, None)],
        [(-1, 0, MARK)],
        [(-1, 0, MARK), (-1, -1, MARK)],
        [(-1, 1, LONG), (-1, 2, MARK)],
        [(-3, -1, MARK), (-1, -1, MARK)],
        [(-3, -1, MARK), (-2, -1, MARK), (-1, -1, LONG)],
        [(-2, -1, MARK)],
        [(2, -1, MARK), (4, -1, MARK), (6, -1, MARK), (-3, -1, MARK), (-1, -1, MARK)],
    ],
)
@pytest.mark.parametrize("written", WAYS)
def test_marks_that_move_along_make_no_other_requests(
    written: Callable[[Any], bytes], marks: list[tuple[int, int, Any]]
) -> None:
    for count in range(4, 12):
        data = marked(count, *marks, written=written)
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


@pytest.mark.parametrize("mark", [MARK, LONG])
@pytest.mark.parametrize("written", MARKS_LAST)
def test_a_message_that_only_lost_its_mark_is_known(
    written: Callable[[Any], bytes], mark: dict[str, str]
) -> None:
    for count in range(1, 9):
        data = marked(count, (-1, -1, mark), written=written)
        assert known(data) == (0 if count == 1 else 2 * count - 1)
        seen(data)
    other = marked(9, (-1, -1, mark), written=written).replace(b"more", b"mere")
    assert known(other) == 0
    twice = marked(8, (-1, 0, mark), (-1, -1, mark), written=written)
    seen(twice)
    assert known(marked(9, (-3, 0, mark), written=written)) == 16, "one of its marks is still there"


def test_a_message_that_is_unusual_anyway_is_read_again_without_its_mark() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://one.example/a.png"}}
    for more in ({"cache_control": MARK}, {}):
        said = [{"type": "text", "text": "Look.", "cache_control": MARK}, {**picture, **more}]
        data = WAYS[1](body([*turns(3), {"role": "user", "content": said}]))
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def test_what_looks_like_a_mark_is_none() -> None:
    """The last part of a message is a call, and in what it is given stands what the next one lacks."""
    for asked in ({"a": 1, "cache_control": MARK}, {"a": 1}):
        call = {"type": "tool_use", "id": "toolu_x", "name": "Read", "input": asked}
        data = WAYS[1](body([*turns(3), {"role": "assistant", "content": [call]}]))
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def test_what_is_dropped_around_the_messages_is_said_every_time() -> None:
    for count in range(1, 5):
        request = protocol("anthropic").read_request(WAYS[1](body(turns(count), top_k=3)), "/v1/messages")
        outgoing = protocol("openai-chat").write_request(request, TARGETS[1])
        assert [notice.rule for notice in outgoing.notices] == ["top-k-dropped"]


def test_what_is_dropped_is_said_every_time_but_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}}
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    spoken = turns(20)
    spoken[1]["content"].insert(0, search)

    def asked(count: int) -> bytes:
        said = body(spoken[: 2 * count + 1], top_k=3)
        return WAYS[1]({**said, "tools": [*said["tools"], hosted]})

    def told(data: bytes) -> Any:
        return sent(protocol("anthropic").read_request(data, "/v1/messages"), "openai-chat", TARGETS[1])

    counts = range(17, 21)
    with monkeypatch.context() as patch:
        patch.setattr(recall, "WORTH_IT", sys.maxsize)
        alone = [told(asked(count)) for count in counts]
    assert {notice.path.partition("[")[0] for notice in alone[0][1]} >= {
        "messages",
        "tools",
        "settings.top_k",
    }
    assert told(asked(16))
    monkeypatch.setattr(write_messages, "assistant_message", None)  # only the first is not plain
    monkeypatch.setattr(write, "write_tools", None)
    assert [told(asked(count)) for count in counts] == alone


def test_another_target_is_not_sent_what_was_written_around_the_messages_for_the_last() -> None:
    targets = [*TARGETS, Target(model="other", issuer="two", max_tokens_field="max_tokens")]
    for count in range(1, 5):
        request = protocol("anthropic").read_request(WAYS[1](body(turns(count))), "/v1/messages")
        for target in targets:
            sent = protocol("openai-chat").write_request(request, target).body
            assert (sent["model"], sent[target.max_tokens_field]) == (target.model, 9)
            assert len(sent["messages"]) == 2 * count + 2


def test_a_list_that_is_given_twice_counts_as_it_is_given_last() -> None:
    first = WAYS[1](body(turns(4)))
    seen(first)
    for twice in (
        first[:-1] + b',"messages":[{"role":"user","content":"last"}]}',
        first[:-1] + b',"messages":[]}',
    ):
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(twice) == carefully(twice, monkeypatch)


@pytest.mark.parametrize("broken", [b"\xff", b"\\ud83d", b"\\q", b"\x01"])
def test_what_is_no_text_is_refused_wherever_it_stands(broken: bytes) -> None:
    good = WAYS[1](body(turns(4)))
    seen(good)
    for place in (b"0 He wrote", b"3 He wrote", b"as long as", b'0"}', b'3"}'):
        data = good.replace(place, broken + place)
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def test_a_call_of_another_end_of_the_same_conversation_is_not_known() -> None:
    begun, ends = turns(4), turns(7)[9:]
    seen(WAYS[1](body(begun)))
    nobody = {"type": "tool_result", "tool_use_id": "toolu_nobody", "content": "?"}
    asked = [ends[0], {"role": "user", "content": [nobody]}]
    assert "toolu_nobody" in str(seen(WAYS[1](body(begun + asked)))[0])
    said = {"role": "user", "content": "Go on."}
    assert known(WAYS[1](body([*begun, said]))) == len(begun)
    for tried in ([said, ends[1]], [said, *ends[2:]], [said, said, said, ends[3]], [said, *ends[4:]]):
        data = WAYS[1](body(begun + tried))
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def test_a_turn_in_which_nothing_is_said_is_still_the_last() -> None:
    silent = {"role": "assistant", "content": ""}
    spoken = turns(6)
    for said in (spoken[:9], spoken[:11], [*spoken[:11], silent], [*spoken, silent], spoken):
        data = WAYS[1](body(said))
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def test_conversations_are_bounded() -> None:
    few = Conversations(most=3, most_bytes=5_000)
    bodies = [WAYS[0](body([{"role": "user", "content": f"{number} {PADDING}"}])) for number in range(9)]
    for data in bodies:
        cut = few.cut(data, "messages", read_list)
        assert cut is not None
        history = read_history(cut, ())
        few.keep("messages", cut, history, Request(model="m", messages=history))
    kept = [data for data in bodies if (cut := few.cut(data, "messages", read_list)) and cut.count]
    assert kept == bodies[-2:]
    assert sum(map(len, kept)) <= 5_000 < sum(map(len, bodies[-3:]))


@pytest.mark.parametrize("late", [0, 1], ids=["after a result", "after a call"])
def test_conversations_whose_messages_end_alike_are_told_apart_at_a_glance(
    late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoken(who: int, count: int) -> list[Any]:
        said: list[Any] = [{"role": "user", "content": f"{who} begins. {PADDING}"}]
        for turn in range(count):
            id = f"toolu_{who}_{turn:03}"
            call = {"type": "tool_use", "id": id, "name": "Read", "input": {"words": PADDING}}
            result = {"type": "tool_result", "tool_use_id": id, "content": PADDING}
            said += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        return said[: len(said) - late]

    compared: list[Conversation] = []
    gone_on = Conversation.gone_on

    def counted(self: Conversation, *args: Any) -> Any:
        compared.append(self)
        return gone_on(self, *args)

    monkeypatch.setattr(Conversation, "gone_on", counted)
    for who in range(8):
        seen(WAYS[1](body(spoken(who, 9))))
    assert not compared
    for who in range(8):
        seen(WAYS[1](body(spoken(who, 10))))
    assert len(compared) == 8


def test_threads_may_read_the_same_conversations_at_once() -> None:
    def work(number: int) -> None:
        for step in range(60):
            count = 1 + (step * (number + 3)) % 39
            spoken = [*turns(count), {"role": "user", "content": f"{number} asks."}]
            request = protocol("anthropic").read_request(WAYS[1](body(spoken)), "/v1/messages")
            said = protocol("openai-chat").write_request(request, TARGETS[number % 2]).body["messages"]
            assert len(said) == 2 * count + 3
            assert said[-1]["content"] == f"{number} asks."

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            assert len(list(pool.map(work, range(6)))) == 6
    finally:
        sys.setswitchinterval(interval)


def test_what_is_forgotten_is_gone_at_once() -> None:
    """The collector runs seldom, and a conversation is large: nothing in one may hold itself."""
    request = protocol("anthropic").read_request(WAYS[1](body(turns(9))), "/v1/messages")
    for target in TARGETS:
        protocol("openai-chat").write_request(request, target)
    held = weakref.ref(request.messages)
    del request
    gc.disable()
    try:
        assert held() is not None
        MEMORY.__init__()
        assert held() is None
    finally:
        gc.enable()


SPELLINGS = [
    ('{"a":1.0,"b":1e5,"c":0.30000000000000000004,"d":12345678901234567890123}', None),
    ('{ "a" : [ 1 ,\n 2 ] }', None),
    ('{"a":1,"b":3,"a":2}', None),
    ("{}", None),
    ('{"a":"tab \\t, quote \\", slash \\\\ and \U0001f600"}', None),
    (
        '{"a":"\\u003cb\\u003e Gr\\u00fc\\u00dfe \\ud83d\\ude00 \\u001b"}',
        '{"a":"<b> Grüße \U0001f600 \\u001b"}',
    ),
    ('{"a":"a path: C:\\\\users"}', None),
    ("null", "{}"),
]
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": ""}


@pytest.mark.parametrize("beside", [[], [THOUGHT]])
@pytest.mark.parametrize("padding", ["", PADDING])
@pytest.mark.parametrize(("spelled", "meant"), SPELLINGS)
def test_arguments_are_what_the_client_spelled(
    spelled: str, meant: str | None, padding: str, beside: list[Any]
) -> None:
    """In a short request and in a long one, in a plain message and in one that is not: else a prompt that an
    upstream has in its cache would be another one in the next turn."""
    call = {"type": "tool_use", "id": "a", "name": "b", "input": 0}
    spoken = [
        {"role": "assistant", "content": [*beside, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": padding}]},
    ]
    data = WAYS[1]({"model": "m", "max_tokens": 9, "messages": spoken}).replace(
        b":0}", f":{spelled}}}".encode()
    )
    request = protocol("anthropic").read_request(data, "/v1/messages")
    assert isinstance(request.messages, History) == bool(padding)
    outgoing = protocol("openai-chat").write_request(request, TARGETS[1])
    assert outgoing.body["messages"][0]["tool_calls"][0]["function"]["arguments"] == (meant or spelled)
    assert request.messages[0].parts[-1].arguments == (meant or spelled)


def test_a_number_that_is_too_large_is_left_to_who_does_not_read_it() -> None:
    data = WAYS[1](body(turns(2))).replace(b'{"path":"1"}', b'{"path":1e400}')
    request = protocol("anthropic").read_request(data, "/v1/messages")
    outgoing = protocol("openai-chat").write_request(request, TARGETS[1])
    assert outgoing.body["messages"][4]["tool_calls"][0]["function"]["arguments"] == '{"path":1e400}'
    assert lookups(request.messages, Carriage(client="anthropic", issuer="up", asked=False)).turns
    with pytest.raises(BadRequest, match="out of range") as refused:
        protocol("gemini").write_request(request, TARGETS[1])
    assert refused.value.path == "messages[3]"


@pytest.mark.parametrize("end", ["}}", '},"max_tokens":9}'])
def test_no_list_is_taken_for_the_messages_because_they_began_there_before(end: str) -> None:
    said = json.dumps(turns(3), separators=(",", ":"))
    begins = f'{{"messages":{said},"model":"m","max_tokens":9,"x":{{'
    data = (begins + '"messages":[{"role":"user","content":"another"}]' + end).encode()
    before = '{"model":"m","max_tokens":9,"system":"'.ljust(len(begins) - 2, "x") + '",'
    seen(f'{before}"messages":{said}}}'.encode())
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert seen(data) == carefully(data, monkeypatch)


_TOOLS = [{"name": "Read", "input_schema": {"type": "object", "anyOf": [{"a": 1}], "b": 1}}, DECOY]
_LAYOUTS: dict[str, list[tuple[str, Any]]] = {
    "next to the messages": [("system", "s"), ("tools", _TOOLS), ("messages", ...)],
    "behind them": [("messages", ...), ("system", [{"type": "text", "text": "s"}]), ("tools", _TOOLS)],
    "between": [("system", "s"), ("tools", _TOOLS), ("stop_sequences", ["x"]), ("messages", ...)],
    "before the prompt": [("tools", _TOOLS), ("system", [{"type": "text", "text": "s"}]), ("messages", ...)],
    "without one": [("tools", _TOOLS), ("messages", ...)],
    "before another list": [("system", "s"), ("tools", _TOOLS), ("more", [{"a": 1}]), ("messages", ...)],
    "before another list at the end": [
        ("messages", ...), ("system", "s"), ("tools", _TOOLS), ("more", [{"a": 1}]), ("stream", True)
    ],
    "inside of something else": [("system", "s"), ("metadata", {"tools": _TOOLS}), ("messages", ...)],
    "twice": [("system", "s"), ("tools", _TOOLS), ("tools", [{**DECOY, "name": "Other"}]), ("messages", ...)],
    "broken off": [("system", "s"), ("tools", "[{,}]"), ("messages", ...)],
    "nothing": [("system", "s"), ("tools", []), ("messages", ...)],
    "of another kind": [("system", "s"), ("tools", [7, {"type": "web_search_20250305"}]), ("messages", ...)],
}  # fmt: skip


@pytest.mark.parametrize("layout", _LAYOUTS.values(), ids=_LAYOUTS)
def test_tools_are_the_same_wherever_they_stand(layout: list[tuple[str, Any]]) -> None:
    def request(count: int) -> bytes:
        members = [("model", "m"), ("max_tokens", 9), *layout]
        values = [(key, turns(count) if value is ... else value) for key, value in members]
        said = ",".join(f'"{key}":{json.dumps(value, separators=(",", ":"))}' for key, value in values)
        return f"{{{said}}}".replace('"[{,}]"', "[{,}]").encode()

    for data in (request(4), request(5)):
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def ordered(order: list[str], spoken: list[Any]) -> dict[str, Any]:
    said = {**body(spoken), **MORE}
    return {key: said[key] for key in order}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("written", WAYS)
def test_a_long_request_is_gone_through_once(
    written: Callable[[Any], bytes], order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever order its members stand, and however they are spelled."""
    read: list[bytes] = []

    def counted(module: Any, name: str) -> None:
        inner = getattr(module, name)
        monkeypatch.setattr(module, name, lambda given: read.append(bytes(given)) or inner(given))

    for module, name in ((conversations, "_members"), (listed, "_items")):
        counted(module, name)
    spoken = turns(40)
    data = written(ordered(order, spoken))
    tools: list[bytes] = []
    cut = MEMORY.conversations.cut(data, "messages", read_list, lambda given: tools.append(bytes(given)))
    assert cut is not None
    assert len(cut.messages) == len(spoken)
    assert [json.loads(given) for given in tools] == [body([])["tools"]]
    assert sum(map(len, read)) < len(data) // 4


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("written", WAYS)
def test_in_whatever_order_it_is_the_same(written: Callable[[Any], bytes], order: list[str]) -> None:
    for count in (1, 3, 4, 9, 10):
        data = written(ordered(order, turns(count)))
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def test_what_is_written_like_a_token_is_none() -> None:
    """What stands for the messages while the rest of a request is read is nobody's words."""
    said = WAYS[1](turns(4))
    for token in (conversations._token("messages"), conversations._token("tools")):  # pyright: ignore[reportPrivateUsage]
        for one, other in ((said, token), (token, said)):
            data = b'{"x":{"messages":%b},"messages":%b,"model":"m","max_tokens":9}' % (one, other)
            with pytest.MonkeyPatch.context() as monkeypatch:
                assert seen(data) == carefully(data, monkeypatch)


_MARKED = {"cache_control": {"type": "ephemeral"}}
_SAID = {"type": "text", "text": "I look."}
_CALL = {"type": "tool_use", "id": "toolu_odd", "name": "Read", "input": {"path": "a.py"}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_odd", "content": [{"type": "text", "text": "x = 1"}]}
_THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
_ODD_TURNS: dict[str, tuple[Any, Any]] = {
    "usual": ([_SAID, _CALL], [_RESULT]),
    "without words": ([_CALL], [_RESULT]),
    "a text as the result": ([_SAID, _CALL], [{**_RESULT, "content": "x = 1"}]),
    "failed": ([_SAID, _CALL], [{**_RESULT, "is_error": True}]),
    "failed with a text": ([_SAID, _CALL], [{**_RESULT, "content": "No.", "is_error": True}]),
    "failed with an empty text": ([_SAID, _CALL], [{**_RESULT, "content": "", "is_error": True}]),
    "failed with two texts": ([_SAID, _CALL], [{**_RESULT, "content": [_SAID, _SAID], "is_error": True}]),
    "failed without a text": ([_SAID, _CALL], [{**_RESULT, "content": [], "is_error": True}]),
    "failed, and told nothing": (
        [_SAID, _CALL],
        [{"type": "tool_result", "tool_use_id": "toolu_odd", "is_error": True}],
    ),
    "failed, and perhaps not": ([_SAID, _CALL], [{**_RESULT, "is_error": None}]),
    "no object": ([_SAID, {**_CALL, "input": [1]}], [_RESULT]),
    "no words": ([{**_SAID, "text": 7}, _CALL], [_RESULT]),
    "no words in the result": ([_SAID, _CALL], [{**_RESULT, "content": [{**_SAID, "text": 7}]}]),
    "nothing in the result": ([_SAID, _CALL], [{**_RESULT, "content": []}]),
    "two texts in the result": ([_SAID, _CALL], [{**_RESULT, "content": [_SAID, _SAID]}]),
    "marked words": ([{**_SAID, **_MARKED}, _CALL], [_RESULT]),
    "a marked call": ([_SAID, {**_CALL, **_MARKED}], [_RESULT]),
    "a marked result": ([_SAID, _CALL], [{**_RESULT, **_MARKED}]),
    "marks inside of the result": ([_SAID, _CALL], [{**_RESULT, "content": [{**_SAID, **_MARKED}]}]),
    "an id of ours": ([{**_CALL, "id": "dgm-a-3ab"}], [{**_RESULT, "tool_use_id": "dgm-a-3ab"}]),
    "another call's result": ([_SAID, _CALL], [{**_RESULT, "tool_use_id": "toolu_before"}]),
    "nobody's result": ([_SAID, _CALL], [{**_RESULT, "tool_use_id": "toolu_nobody"}]),
    "words behind the call": ([_CALL, _SAID], [_RESULT]),
    "two calls": ([{**_CALL, "id": "toolu_other"}, _CALL], [_RESULT]),
    "two calls, both answered": (
        [_SAID, {**_CALL, "id": "toolu_other"}, _CALL],
        [{**_RESULT, "tool_use_id": "toolu_other"}, _RESULT],
    ),
    "two calls, answered in another order": (
        [_SAID, {**_CALL, "id": "toolu_other"}, _CALL],
        [_RESULT, {**_RESULT, "tool_use_id": "toolu_other"}],
    ),
    "two results of one call": ([_SAID, _CALL], [_RESULT, _RESULT]),
    "the same call twice": ([_SAID, _CALL, _CALL], [_RESULT, _RESULT]),
    "thoughts": ([_THOUGHT, _SAID, _CALL], [_RESULT]),
    "thoughts and no words": ([_THOUGHT, _CALL], [_RESULT]),
    "nothing but thoughts": ([_THOUGHT], [_RESULT]),
    "two thoughts": ([_THOUGHT, {**_THOUGHT, "signature": ""}, _CALL], [_RESULT]),
    "thoughts between words": ([_SAID, _THOUGHT, _SAID, _CALL], [_RESULT]),
    "thoughts that are no text": ([{**_THOUGHT, "thinking": 7}, _CALL], [_RESULT]),
    "two texts": ([_SAID, _SAID, _CALL], [_RESULT]),
    "words behind the result": ([_SAID, _CALL], [_RESULT, _SAID]),
    "two texts behind the result": ([_SAID, _CALL], [_RESULT, _SAID, _SAID]),
    "marked words behind the result": ([_SAID, _CALL], [_RESULT, {**_SAID, **_MARKED}]),
    "no words behind the result": ([_SAID, _CALL], [_RESULT, {**_SAID, "text": 7}]),
    "words before the result": ([_SAID, _CALL], [_SAID, _RESULT]),
    "words of one letter": ("I", "x"),
}


@pytest.mark.parametrize("odd", _ODD_TURNS.values(), ids=_ODD_TURNS)
def test_a_turn_that_is_nearly_usual_is_not_taken_for_one(odd: tuple[Any, Any]) -> None:
    def turn(said: Any, asked: Any) -> list[Any]:
        return [{"role": "assistant", "content": said}, {"role": "user", "content": asked}]

    before = turn([_SAID, {**_CALL, "id": "toolu_before"}], [{**_RESULT, "tool_use_id": "toolu_before"}])
    after = turn([_SAID, {**_CALL, "id": "toolu_after"}], [{**_RESULT, "tool_use_id": "toolu_after"}])
    spoken = [{"role": "user", "content": "Begin."}, *before, *turn(*odd)]
    for data in (
        WAYS[1](body(spoken)),
        WAYS[1](body([*spoken, *after])),
        WAYS[1](body([*spoken, *after * 4])),
    ):
        MEMORY.__init__()
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def test_the_effort_is_what_a_system_message_changed_it_to_last() -> None:
    """Also where the conversation is taken up before that, or goes on behind it."""

    def changed(effort: str) -> dict[str, Any]:
        return {"role": "system", "content": "More.", "output_config": {"effort": effort}}

    spoken = [*turns(4), changed("low"), *turns(2)[1:], changed("max"), *turns(3)[1:]]
    for count, effort in (
        (10, "low"),
        (20, "max"),
        (18, "max"),
        (10, "low"),
        (13, "low"),
        (8, None),
        (20, "max"),
    ):
        data = WAYS[1](body([*spoken[:count], {"role": "user", "content": f"{count}"}]))
        request = protocol("anthropic").read_request(data, "/v1/messages")
        reasoning = request.settings.reasoning
        assert (reasoning.effort if reasoning is not None else None) == effort, count
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert seen(data) == carefully(data, monkeypatch)


def _talk(*odd: Any) -> list[Any]:
    """Strings from both sides, with `odd` contents of the model's and of the user's among them."""
    said = ["Sure.", *odd, "And then?", "", "So."]
    return [
        {"role": ("user", "assistant")[at % 2], "content": content}
        for at, content in enumerate(["Begin.", *said, *(f"{number}: {TRICKY}" for number in range(20))])
    ]


_ODD_CONTENTS = {
    "none": (),
    "an empty one": ("", ""),
    "parts": ([_SAID], [_SAID, _SAID]),
    "a call and its result": ([_SAID, _CALL], [_RESULT]),
    "a result that is parts": ([_CALL], [{**_RESULT, "content": [_SAID]}]),
    "a picture": ("Yes?", [{"type": "image", "source": {"type": "url", "url": "http://a/b.png"}}]),
    "thoughts": ([{"type": "thinking", "thinking": "Hm.", "signature": "abc"}, _SAID], "Go on."),
    "no parts": ([], []),
    "marks": ([{**_SAID, "cache_control": {"type": "ephemeral"}}], "Go on."),
    "nothing": ("Yes?", None),
    "a number": (7, "Go on."),
    "an object": ("Yes?", {}),
    "a part that is none": ("Yes?", [7]),
}


@pytest.mark.parametrize("odd", _ODD_CONTENTS.values(), ids=_ODD_CONTENTS)
@pytest.mark.parametrize("written", WAYS)
def test_who_speaks_in_strings_is_understood_whatever_is_among_them(
    written: Callable[[Any], bytes], odd: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken = _talk(*odd)
    for count in (6, len(spoken) - 2, len(spoken)):
        data = written(body(spoken[:count]))
        assert seen(data) == carefully(data, monkeypatch)
    MEMORY.__init__()
    assert seen(data) == carefully(data, monkeypatch)


def test_a_string_reaches_chat_as_the_client_spelled_it() -> None:
    given = [rb'"Gr\u00fc\u00dfe \/ \u003cb\u003e"', rb'"\ud83d\ude00 \n"', '"Grüße"'.encode()]
    spoken = [
        b'{"role":"%b","content":%b}' % (role, content)
        for content in given
        for role in (b"user", b"assistant")
    ]
    data = b'{"model":"m","max_tokens":9,"messages":[%b]}' % b",".join(spoken * 20)
    request = protocol("anthropic").read_request(data, "/v1/messages")
    assert isinstance(request.messages, History)
    assert not request.messages.unusual()
    written = b"".join(protocol("openai-chat").write_request(request, TARGETS[0]).written())
    assert [written.count(content) for content in given] == [40, 40, 40]
