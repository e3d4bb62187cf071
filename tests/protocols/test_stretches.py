"""A conversation written in stretches is the same as one written whole, however it went on."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import BadRequest
from dragoman.messages import Request
from dragoman.protocols import recall, stretches
from dragoman.protocols.anthropic.request.carry import Carry
from dragoman.protocols.base import Target
from dragoman.protocols.gemini.request.carry import Carrier
from dragoman.protocols.history import History
from dragoman.protocols.listed import LATELY
from dragoman.protocols.memory import MEMORY
from dragoman.protocols.openai_responses.request.write_items import ItemWriter
from dragoman.protocols.pieces import Whole
from dragoman.protocols.registry import protocol
from tests.support.known import PADDING, WAYS

UPSTREAMS = ("anthropic", "openai-responses", "gemini")
TARGETS = [
    Target(model="claude-sonnet-4-5", issuer="one"),
    Target(model="m", issuer="two", strict=True),
]


def call(id: str, text: str = '{"path": "a"}') -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "Read", "arguments": text}}


def said(*calls: Any, content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **({"tool_calls": [*calls]} if calls else {})}


def answer(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": f"what {id} gave"}


MARK = {"cache_control": {"type": "ephemeral"}}
TURNS: list[list[Any]] = [
    [said(call("a"), content="I look."), answer("a")],
    [said(call("a")), answer("a")],
    [said(call("b"), call("c")), answer("c"), answer("b")],
    [said(call("a")), answer("a"), {"role": "system", "content": "Careful."}],
    [said(call("a")), answer("a"), {"role": "user", "content": "Go on."}],
    [said(call("b"), call("c")), answer("c")],
    [said(call("d"))],
    [said(call("e", "{broken")), answer("e")],
    [said(content="Done."), {"role": "user", "content": "Go on."}],
    [{"role": "user", "content": " "}],
    [said(content="Done."), {"role": "user", "content": " "}],
    [said(content=" ")],
    [{"role": "assistant", "reasoning_content": "Hm."}],
    [{"role": "system", "content": "Careful."}],
    [{"role": "user", "content": [{"type": "text", "text": "Look.", **MARK}]}],
    [said(call("a")), {"role": "system", "content": "Careful."}, answer("a")],
    [{"role": "user", "content": "Now.", "name": "me"}],
    [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b.png"}}]}],
    [said(call("d")), {"role": "user", "content": "Wait."}, answer("d")],
]
turns = st.one_of(st.sampled_from(TURNS[:5]), st.sampled_from(TURNS[:5]), st.sampled_from(TURNS))


def body(messages: list[Any], **more: Any) -> bytes:
    read = {"name": "Read", "parameters": {"type": "object", "oneOf": [{}]}, "description": PADDING}
    tools = [{"type": "function", "function": read}]
    return WAYS[1]({"model": "m", "messages": messages, "tools": tools, **more})


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=60)
@given(
    spoken=st.lists(turns, min_size=4, max_size=14),
    steps=st.lists(st.integers(1, 9), max_size=6),
    more=st.sampled_from([{}, {"reasoning_effort": "high"}, {"tool_choice": "none"}]),
)
def test_in_stretches_or_whole_it_is_the_same(
    target: Target, spoken: list[list[Any]], steps: list[int], more: dict[str, Any]
) -> None:
    MEMORY.__init__()
    messages = [message for turn in spoken for message in turn]
    size = 0
    for step in [*steps, len(messages)]:
        size += step
        check(body(messages[:size], **more), target)


def check(data: bytes, target: Target) -> None:
    read = protocol("openai-chat").read_request
    try:
        known = read(data, "")
    except BadRequest:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "WORTH_IT", len(data) + 1)
        whole = read(data, "")
    assert isinstance(known.messages, History)
    assert isinstance(whole.messages, tuple)
    for upstream in UPSTREAMS:
        assert sent(known, upstream, target) == sent(whole, upstream, target)


def sent(request: Request, upstream: str, target: Target) -> Any:
    """The very bytes, or the complaint."""
    try:
        outgoing = protocol(upstream).write_request(request, target)
    except BadRequest as error:
        return f"{error.path}: {error.message}"
    return b"".join(outgoing.written()), outgoing.notices, outgoing.stop


@pytest.mark.parametrize("odd", TURNS)
@pytest.mark.parametrize("often", [1, 6])
def test_whatever_stands_among_the_turns_and_however_often(odd: list[Any], often: int) -> None:
    for before in range(3):
        MEMORY.__init__()
        messages = [{"role": "user", "content": "Begin."}, *TURNS[0] * before]
        for _ in range(often):
            messages += [*odd, *TURNS[1]]
        for _ in range(9):
            messages += TURNS[2]
            check(body(messages), TARGETS[0])


@pytest.mark.parametrize("anew", [False, True])
def test_what_has_its_result_late_is_not_said_to_have_none(anew: bool) -> None:
    messages = [{"role": "user", "content": "Begin."}, said(call("d")), {"role": "user", "content": "Wait."}]
    late = [*TURNS[2] * 9, answer("d"), *TURNS[2] * 9]
    for size in range(len(late)):
        if anew:
            MEMORY.__init__()
        check(body([*messages, *late[:size]]), TARGETS[0])


def test_the_result_of_a_freeform_tool_is_one_wherever_it_stands() -> None:
    custom = {"id": "f", "type": "custom", "custom": {"name": "patch", "input": "*"}}
    for before in (0, 9):
        messages = [{"role": "user", "content": "Begin."}, *TURNS[2] * before, said(custom), answer("f")]
        for _ in range(9):
            messages += TURNS[2]
            check(body(messages), TARGETS[0])


@pytest.mark.parametrize("behind", [None, "system", "user"])
@pytest.mark.parametrize(
    ("upstream", "writer", "name"),
    [
        ("anthropic", Carry, "message"),
        ("openai-responses", ItemWriter, "_written"),
        ("gemini", Carrier, "message"),
    ],
)
def test_what_was_written_before_is_not_written_again(
    monkeypatch: pytest.MonkeyPatch, upstream: str, writer: Any, name: str, behind: str | None
) -> None:
    written_now: list[Any] = []
    write = getattr(writer, name)

    def counted(self: Any, message: Any, *others: Any) -> Any:
        written_now.append(message)
        return write(self, message, *others)

    monkeypatch.setattr(writer, name, counted)
    for count in range(1, 60):
        messages = [{"role": "user", "content": PADDING}]
        for turn in range(count):
            messages += [said(call(f"call_{turn}")), answer(f"call_{turn}")]
            messages += [{"role": behind, "content": f"So far: {turn}."}] if behind else []
        request = protocol("openai-chat").read_request(body(messages), "")
        assert isinstance(request.messages, History)
        written_now.clear()
        outgoing = protocol(upstream).write_request(request, TARGETS[0])
        assert len(written_now) <= 4 * LATELY
        assert len(outgoing.written()) < 12
    assert Whole in map(type, outgoing.members.values())


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_where_to_cut_is_not_looked_for_again_in_what_was_looked_at(
    upstream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody calls anything any more: there is no such place in all that follows."""
    looked: list[int] = []

    def is_sure(*given: Any, found: Any = stretches._is_sure, **more: Any) -> bool:
        looked[-1] += 1
        return found(*given, **more)

    monkeypatch.setattr(stretches, "_is_sure", is_sure)
    messages: list[Any] = [{"role": "user", "content": "Go."}, *TURNS[2], *TURNS[1]]
    for _ in range(40):
        messages += TURNS[6]
        looked.append(0)
        read = protocol("openai-chat").read_request(body(messages), "/v1/chat/completions")
        protocol(upstream).write_request(read, TARGETS[0])
    assert max(looked[8:]) <= 4 * LATELY
