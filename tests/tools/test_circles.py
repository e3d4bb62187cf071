"""Agents that go in circles: noticed always, told or stopped only when asked."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import BadRequest
from dragoman.messages import Message, Request, Text, ToolCall, ToolResult
from dragoman.protocols.base import Target
from dragoman.protocols.history import History
from dragoman.protocols.memory import MEMORY
from dragoman.protocols.registry import PROTOCOLS
from dragoman.tools.circles import Answers, guarded, noticed
from dragoman.tools.loops import repeated


def round_trip(number: int, result: str = "same", arguments: str = '{"a": 1}') -> tuple[Message, ...]:
    call = ToolCall(id=f"c{number}", name="Read", arguments=arguments)
    answer = ToolResult(call_id=f"c{number}", parts=(Text(result),))
    return Message("assistant", (call,)), Message("user", (answer,))


def conversation(*rounds: tuple[Message, ...]) -> Request:
    return Request(model="m", messages=(Message("user", (Text("go"),)), *(m for r in rounds for m in r)))


CIRCLE = conversation(*(round_trip(n) for n in range(4)))


def test_a_circle_is_noticed_whatever_the_spelling_of_its_arguments() -> None:
    found = noticed(conversation(round_trip(0), round_trip(1, arguments='{ "a":1 }')))
    assert found is not None
    assert found.count == 2


@pytest.mark.parametrize(
    "rounds",
    [
        [round_trip(0), round_trip(1, result="other")],
        [round_trip(0), round_trip(1, arguments='{"a": 2}')],
        [round_trip(0)],
    ],
)
def test_polling_that_gets_somewhere_is_no_circle(rounds: list[tuple[Message, ...]]) -> None:
    assert noticed(conversation(*rounds)) is None


def test_nothing_is_done_about_it_unless_asked() -> None:
    found = noticed(CIRCLE)
    assert found is not None
    assert guarded(CIRCLE, found) is CIRCLE
    assert guarded(CIRCLE, found, note_after=5, stop_after=5) is CIRCLE


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_note_keeps_calls_and_results_together(upstream: str) -> None:
    found = noticed(CIRCLE)
    assert found is not None
    noted = guarded(CIRCLE, found, note_after=3)
    assert list(Answers(noted.messages)) == list(Answers(CIRCLE.messages))
    assert "called 4 times" in noted.messages[-1].parts[-1].text
    write = PROTOCOLS[upstream].write_request
    before, after = (str(write(r, Target(model="m")).body) for r in (CIRCLE, noted))
    assert after.count("called 4 times") == 1
    assert after.count("'same'") == before.count("'same'")


def test_it_can_be_stopped_with_a_sentence() -> None:
    found = noticed(CIRCLE)
    assert found is not None
    with pytest.raises(BadRequest, match="Read was called 4 times"):
        guarded(CIRCLE, found, stop_after=4)


INPUTS = [{}, {"a": 1}, {"a": 1.0}, {"a": 1, "b": "x"}, {"b": "x", "a": 1}]


RESULTS = ["x", "y", "", [], [{"type": "text", "text": "x"}], [{"type": "text", "text": "y"}]]


def sent(rounds: list[tuple[Any, Any]]) -> Request:
    """As a client of Anthropic's sends it: calls of one function, with arguments and results."""
    spoken: list[Any] = [{"role": "user", "content": "go " * 300}]
    for number, (arguments, result) in enumerate(rounds):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": result}
        spoken += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    data = msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": spoken})
    return PROTOCOLS["anthropic"].read_request(data, "/v1/messages")


@given(st.lists(st.tuples(st.sampled_from(INPUTS), st.sampled_from(RESULTS)), max_size=12))
def test_a_conversation_that_is_not_made_into_messages_tells_the_same(rounds: list[tuple[Any, Any]]) -> None:
    request = sent(rounds)
    assert noticed(request) == noticed(request.changed(messages=tuple(request.messages)))


@pytest.mark.parametrize("before", [0, 1, 30, *range(55, 70), 200])
@pytest.mark.parametrize(
    "spellings", [("/", r"\/", "/"), (r"\/", "/", "/"), ("<", r"\u003c", "<"), ("<", "<", r"\u003c")]
)
def test_a_circle_is_noticed_whatever_the_spelling_of_its_results(
    before: int, spellings: tuple[str, ...]
) -> None:
    texts = [msgspec.Raw(f'"{"x" * before}{spelling} and so on"'.encode()) for spelling in spellings]
    found = noticed(sent([({}, [{"type": "text", "text": text}]) for text in texts]))
    assert found is not None
    assert found.count == 3


def test_results_of_calls_of_a_kind_nobody_knows_are_not_counted() -> None:
    def read(id: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": "Read", "input": {}}

    def asked(id: str, word: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": word}]}

    said = {"role": "assistant", "content": "Well."}
    strange = [{"type": "new_use", "id": id} for id in ("s1", "s2")]
    spoken: list[Any] = [
        {"role": "user", "content": "go " * 300},
        {"role": "assistant", "content": [read("a")]},
        asked("a", "x"),
        {"role": "assistant", "content": strange},
        {"role": "user", "content": "And?"},
        said,
        asked("s1", "y"),
        said,
        asked("s2", "z"),
        {"role": "assistant", "content": [read("b")]},
        asked("b", "x"),
    ]
    data = msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": spoken})
    found = noticed(PROTOCOLS["anthropic"].read_request(data, "/v1/messages"))
    assert found is not None
    assert found.count == 2


@given(st.lists(st.tuples(st.sampled_from([True, False, None]), st.integers(0, 3), st.sampled_from("xy"))))
@example(
    # The result of a call from before the last six messages makes the circle.
    [(True, 0, "x"), (True, 1, "x"), *[(False, 1, "y")] * 2, (False, 0, "x"), (True, 2, "x"), (False, 2, "x")]
)
@example(
    # Two by turns, and between them much is said.
    [(True, 0, "x"), (False, 0, "x"), (True, 1, "y"), (False, 1, "y"), *[(None, 0, "x")] * 14] * 2
)
def test_the_last_few_calls_tell_the_same_as_all_in_whatever_order_they_are_answered(
    said: list[tuple[bool | None, int, str]],
) -> None:
    def message(asks: bool | None, number: int, word: str) -> Message:
        if asks is None:
            return Message("user", (Text(word),))
        if asks:
            return Message("assistant", (ToolCall(id=f"c{number}", name="Read", arguments=f'["{word}"]'),))
        return Message("user", (ToolResult(call_id=f"c{number}", parts=(Text(word),)),))

    messages = tuple(message(*one) for one in said)
    assert noticed(Request(model="m", messages=messages)) == repeated(Answers(messages))


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3), st.sampled_from("xy"), st.booleans()),
        min_size=6,
        max_size=20,
    )
)
def test_a_conversation_that_goes_on_tells_the_same_as_one_that_is_new(
    said: list[tuple[bool, int, str, bool]],
) -> None:
    """Calls and results in any order, the same ids again, and cache marks that move along."""
    spoken: list[Any] = [{"role": "user", "content": "go " * 300}]
    asked: set[int] = set()
    MEMORY.__init__()
    for asks, number, word, sent in said:
        if asks or number not in asked:
            asked.add(number)
            part = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"a": word}}
            spoken.append({"role": "assistant", "content": [part]})
        else:
            part = {"type": "tool_result", "tool_use_id": f"c{number}", "content": word}
            spoken.append({"role": "user", "content": [part]})
        if number == 3:
            spoken.append({"role": "system", "content": word if sent else [{"type": "text", "text": word}]})
            part = {"type": "text", "text": word}
        if not sent:
            continue
        marked = {"role": spoken[-1]["role"], "content": [{**part, "cache_control": {"type": "ephemeral"}}]}
        body = {"model": "m", "max_tokens": 9, "messages": [*spoken[:-1], marked]}
        request = PROTOCOLS["anthropic"].read_request(msgspec.json.encode(body), "/v1/messages")
        assert noticed(request) == noticed(request.changed(messages=tuple(request.messages)))
        # What was written of it is known, and need not be at hand any longer.
        PROTOCOLS["openai-chat"].write_request(request, Target(model="m"))
        assert noticed(request) == noticed(request.changed(messages=tuple(request.messages)))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", r"\/", "image"])), max_size=24))
@example([(0, "x"), (0, "y"), (0, "z"), (1, "y"), (0, "y")])
@example([(0, "x"), (0, "y"), (0, "image"), (0, "x"), (0, "x")])
def test_a_conversation_that_is_taken_up_earlier_tells_the_same(turns: list[tuple[int, str]]) -> None:
    """Each turn is sent after so many of the last ones were taken back."""
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    rounds: list[tuple[Any, Any]] = []
    MEMORY.__init__()
    for back, word in turns:
        del rounds[len(rounds) - min(back, len(rounds)) :]
        text = {"type": "text", "text": msgspec.Raw(f'"{word}"'.encode())}
        rounds.append(({}, [image if word == "image" else text]))
        request = sent(rounds)
        assert noticed(request) == noticed(request.changed(messages=tuple(request.messages)))
        PROTOCOLS["openai-chat"].write_request(request, Target(model="m"))


@pytest.mark.parametrize("results", ["xyxx", "xyzw"])
def test_a_conversation_with_a_changed_message_tells_the_same(results: str) -> None:
    """As when kept reasoning was put back into it."""
    request = sent([({}, result) for result in results])
    assert isinstance(request.messages, History)
    for index, message in enumerate(request.messages):
        changed = request.changed(messages=request.messages.changed({index: message}))
        assert noticed(changed) == noticed(request)


@pytest.mark.parametrize("answered", [0, 1, 2, 3, 4])
def test_of_a_conversation_that_goes_on_only_what_is_new_is_read(
    answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few results it holds."""
    MEMORY.__init__()
    rounds: list[Any] = [{"role": "user", "content": "go " * 300}]
    for number in range(answered):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"a": number}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"{number}"}
        rounds += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    again: list[int] = []
    whole = History.json
    monkeypatch.setattr(History, "json", lambda history: again.append(len(history)) or whole(history))
    for number in range(40):
        rounds += [{"role": "assistant", "content": f"{number}?"}, {"role": "user", "content": f"{number}!"}]
        body = msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": rounds})
        request = PROTOCOLS["anthropic"].read_request(body, "/v1/messages")
        assert noticed(request) is None
        PROTOCOLS["openai-chat"].write_request(request, Target(model="m"))
    assert not again
