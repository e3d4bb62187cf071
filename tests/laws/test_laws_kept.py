"""Between equal protocols nothing is lost: every member that nobody knows comes out once, at its place."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from support.exchanges import exchange, run
from support.marked import Marks, Path, marked_body, marked_stream, marks_in_body, marks_in_stream
from support.sample_streams import CUSTOM_TOOL, SAMPLES, TOOLS

from dragoman.conform import laws
from dragoman.protocols.registry import PROTOCOLS

OFFERED: list[dict[str, Any]] = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]
STREAMS = [(name, kind) for name in PROTOCOLS for kind in SAMPLES[name] if not kind.startswith("error")]
# A call that was cut is not in a body.
BODIES = [(p, k) for p, k in STREAMS if SAMPLES[p][k].whole is not None and k != "max_tokens_tool"]
CALLS = [(name, kind) for name, kind in STREAMS if "tool" in kind or kind == "parallel"]
MODES = ["live", "whole"]
HELD = 5
"""The most events that a sample holds back at a cut: those of a block that the client has not got yet."""


def retyped(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same tools, but each string must be a list of strings: every call must be mended."""
    result: list[dict[str, Any]] = []
    for tool in tools:
        schema = tool.get("parameters")
        if schema:
            listed = {
                name: {"type": "array", "items": member} if member.get("type") == "string" else member
                for name, member in schema["properties"].items()
            }
            tool = {**tool, "parameters": {**schema, "properties": listed}}
        result.append(tool)
    return result


def streamed(protocol: str, kind: str, tools: list[dict[str, Any]], **options: Any) -> tuple[Marks, bytes]:
    frames, marks = marked_stream(SAMPLES[protocol][kind].stream)
    got = run(exchange(protocol, protocol, tools, **options), frames)
    return {mark: place for found in marks for mark, place in found.items()}, got


def check(expected: Marks, got: Sequence[tuple[str, Path]]) -> None:
    names = [mark for mark, _ in got]
    assert {mark: place for mark, place in expected.items() if mark not in names} == {}, "lost"
    assert sorted({mark for mark in names if names.count(mark) > 1}) == [], "doubled"
    moved = {mark: (expected[mark], place) for mark, place in got if expected[mark] != place}
    assert moved == {}, "moved"
    assert expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("protocol", "kind"), STREAMS)
def test_a_stream_keeps_members_that_nobody_knows(protocol: str, kind: str, mode: str) -> None:
    expected, got = streamed(protocol, kind, OFFERED, mode=mode)
    check(expected, marks_in_stream(got))
    assert laws.check(protocol, got, stream=True) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("protocol", "kind"), CALLS)
def test_a_mended_stream_keeps_members_that_nobody_knows(protocol: str, kind: str, mode: str) -> None:
    expected, got = streamed(protocol, kind, retyped(OFFERED), mode=mode)
    check(expected, marks_in_stream(got))
    assert laws.check(protocol, got, stream=True) == []


@pytest.mark.parametrize(("protocol", "kind"), CALLS)
def test_a_stream_that_may_be_asked_again_keeps_members_that_nobody_knows(protocol: str, kind: str) -> None:
    expected, got = streamed(protocol, kind, OFFERED, invalid="reask")
    check(expected, marks_in_stream(got))


@pytest.mark.parametrize(("protocol", "kind"), STREAMS)
def test_a_cut_stream_keeps_what_came_before_the_cut(protocol: str, kind: str) -> None:
    """Only the members of a block that the client has not got yet are lost with it."""
    frames, marks = marked_stream(SAMPLES[protocol][kind].stream)
    whole = run(exchange(protocol, protocol, OFFERED), frames)
    for size in range(1, len(frames)):
        it = exchange(protocol, protocol, OFFERED)
        got = b"".join([it.feed(frame) for frame in frames[:size]])
        assert whole.startswith(got)
        ended = got + it.close()
        names = [mark for mark, _ in marks_in_stream(ended)]
        assert len(names) == len(set(names))
        # Interleaved calls wait for each other.
        sure = [] if kind == "interleaved" else marks[: max(0, size - HELD)]
        assert {mark for found in sure for mark in found} <= set(names)
        assert laws.check(protocol, ended, stream=True) == []


@pytest.mark.parametrize("tools", ["as is", "mended"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("protocol", "kind"), BODIES)
def test_a_body_keeps_members_that_nobody_knows(protocol: str, kind: str, mode: str, tools: str) -> None:
    body = SAMPLES[protocol][kind].whole
    assert body is not None
    data, expected = marked_body(body)
    offered = OFFERED if tools == "as is" else retyped(OFFERED)
    got = run(exchange(protocol, protocol, offered, stream=False, mode=mode), [data])
    check(expected, marks_in_body(got))
