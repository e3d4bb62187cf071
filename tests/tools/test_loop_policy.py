"""Agents in a loop always give a notice. A note or an error is given only if it is configured."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.model.errors import BadRequest
from dragoman.model.messages import Message, Request, Text, ToolCall, ToolResult
from dragoman.protocols.base import Target
from dragoman.protocols.registry import PROTOCOLS
from dragoman.tools.loop_detection import Turn, canonical, repeated
from dragoman.tools.loop_policy import apply_policy, find_loop


def round_trip(number: int, result: str = "same", arguments: str = '{"a": 1}') -> tuple[Message, ...]:
    call = ToolCall(id=f"c{number}", name="Read", arguments=arguments)
    answer = ToolResult(call_id=f"c{number}", parts=(Text(result),))
    return Message("assistant", (call,)), Message("user", (answer,))


def conversation(*rounds: tuple[Message, ...]) -> Request:
    return Request(model="m", messages=(Message("user", (Text("go"),)), *(m for r in rounds for m in r)))


def answered(messages: tuple[Message, ...]) -> list[Turn]:
    """All calls with their results, in the order of results."""
    calls: dict[str, ToolCall] = {}
    turns: list[Turn] = []
    for part in (part for message in messages for part in message.parts):
        if isinstance(part, ToolCall):
            calls[part.id] = part
        elif isinstance(part, ToolResult) and part.call_id in calls:
            call = calls[part.call_id]
            text = "\n".join(inner.text or "" for inner in part.parts)
            turns.append((call.name, canonical(call.arguments), text))
    return turns


LOOP = conversation(*(round_trip(n) for n in range(4)))


def test_a_loop_is_detected_for_every_spelling_of_its_arguments() -> None:
    found = find_loop(conversation(round_trip(0), round_trip(1, arguments='{ "a":1 }')))
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
def test_polling_with_progress_is_no_loop(rounds: list[tuple[Message, ...]]) -> None:
    assert find_loop(conversation(*rounds)) is None


def test_a_loop_changes_nothing_unless_configured() -> None:
    found = find_loop(LOOP)
    assert found is not None
    assert apply_policy(LOOP, found) is LOOP
    assert apply_policy(LOOP, found, note_after=5, stop_after=5) is LOOP


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_note_keeps_calls_and_results_together(upstream: str) -> None:
    found = find_loop(LOOP)
    assert found is not None
    noted = apply_policy(LOOP, found, note_after=3)
    assert answered(noted.messages) == answered(LOOP.messages)
    assert "called 4 times" in noted.messages[-1].parts[-1].text
    write = PROTOCOLS[upstream].write_request
    before, after = (str(write(r, Target(model="m")).body) for r in (LOOP, noted))
    assert after.count("called 4 times") == 1
    assert after.count("'same'") == before.count("'same'")


def test_stop_after_refuses_the_request() -> None:
    found = find_loop(LOOP)
    assert found is not None
    with pytest.raises(BadRequest, match="Read was called 4 times"):
        apply_policy(LOOP, found, stop_after=4)


def sent(rounds: list[tuple[Any, Any]]) -> Request:
    """A request of an Anthropic client: calls of one function with these arguments and results."""
    spoken: list[Any] = [{"role": "user", "content": "go " * 300}]
    for number, (arguments, result) in enumerate(rounds):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": f"c{number}", "content": result}
        spoken += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    data = msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": spoken})
    return PROTOCOLS["anthropic"].read_request(data, "/v1/messages")


@pytest.mark.parametrize("before", [0, 1, 30, *range(55, 70), 200])
@pytest.mark.parametrize(
    "spellings", [("/", r"\/", "/"), (r"\/", "/", "/"), ("<", r"\u003c", "<"), ("<", "<", r"\u003c")]
)
def test_a_loop_is_detected_for_every_spelling_of_its_results(
    before: int, spellings: tuple[str, ...]
) -> None:
    texts = [msgspec.Raw(f'"{"x" * before}{spelling} and so on"'.encode()) for spelling in spellings]
    found = find_loop(sent([({}, [{"type": "text", "text": text}]) for text in texts]))
    assert found is not None
    assert found.count == 3


def test_results_of_unknown_calls_are_not_counted() -> None:
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
    found = find_loop(PROTOCOLS["anthropic"].read_request(data, "/v1/messages"))
    assert found is not None
    assert found.count == 2


@given(st.lists(st.tuples(st.sampled_from([True, False, None]), st.integers(0, 3), st.sampled_from("xy"))))
@example(
    # The loop includes a call from before the last six messages.
    [(True, 0, "x"), (True, 1, "x"), *[(False, 1, "y")] * 2, (False, 0, "x"), (True, 2, "x"), (False, 2, "x")]
)
@example(
    # Two alternating calls with much text between them.
    [(True, 0, "x"), (False, 0, "x"), (True, 1, "y"), (False, 1, "y"), *[(None, 0, "x")] * 14] * 2
)
def test_the_last_calls_are_enough_for_every_order_of_results(
    said: list[tuple[bool | None, int, str]],
) -> None:
    def message(asks: bool | None, number: int, word: str) -> Message:
        if asks is None:
            return Message("user", (Text(word),))
        if asks:
            return Message("assistant", (ToolCall(id=f"c{number}", name="Read", arguments=f'["{word}"]'),))
        return Message("user", (ToolResult(call_id=f"c{number}", parts=(Text(word),)),))

    messages = tuple(message(*one) for one in said)
    assert find_loop(Request(model="m", messages=messages)) == repeated(answered(messages))
