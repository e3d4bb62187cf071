"""`streamGenerateContent` without `alt=sse`: one JSON array, element by element, as Google gives it."""

import asyncio
import doctest
import json

import pytest
from support.scripted_upstream import Cut, ScriptedUpstream, Wait, status
from support.wires import GEMINI, PROTOCOLS
from test_faults_midstream import in_the_euro, spoken
from troubles import SHORT, Got, Leaving, asking, before, post

from dragoman.wire import arrays

UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)


def array_asking(name: str) -> tuple[str, bytes]:
    path, body = asking(GEMINI, f"{name}/m")
    return path.replace("?alt=sse", ""), body


def as_events(got: Got) -> Got:
    """The same elements as the stream they would have been, for the laws to judge."""
    assert got.status == 200
    assert got.headers["content-type"].startswith("application/json")
    frames = [b"data: " + json.dumps(element).encode() + b"\r\n\r\n" for element in json.loads(got.body)]
    return Got(GEMINI, True, 200, {**got.headers, "content-type": "text/event-stream"}, b"".join(frames))


def test_the_writer() -> None:
    assert doctest.testmod(arrays).failed == 0
    assert json.loads(arrays.ArrayWriter().close()) == []


@UPSTREAMS
def test_the_answer_is_one_array(upstream: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script(spoken(upstream))
            got = as_events(await post(here, GEMINI, *array_asking(SHORT[upstream]), stream=True))
            assert got.said["stop"] == "end_turn"
            assert "5 €" in got.said["text"]

    asyncio.run(scene())


@UPSTREAMS
def test_a_break_is_an_element_too(upstream: str) -> None:
    at = in_the_euro(upstream).rindex(b"\n\n") + 2

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script([spoken(upstream)[:at], Wait(0.02), Cut()])
            got = await post(here, GEMINI, *array_asking(SHORT[upstream]), stream=True)
            assert "broke" in as_events(got).is_broken_off()
            assert json.loads(got.body)[-1]["error"]["code"] == 502

    asyncio.run(scene())


def test_elements_come_as_they_are_said() -> None:
    at = in_the_euro(GEMINI).rindex(b"\n\n") + 2

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script([spoken(GEMINI)[:at], Wait(5), spoken(GEMINI)[at:]])
            async with Leaving(here) as plain:
                await plain.post(*array_asking("g"))
                await plain.until(b"costs")
                assert b"\r\n[{" in plain.got

    asyncio.run(scene())


@pytest.mark.parametrize("way", ["alt=sse", "$alt=sse", "accept"])
def test_who_asks_for_events_gets_them(way: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script(spoken(GEMINI))
            path, body = array_asking("g")
            headers = {"accept": "text/event-stream"} if way == "accept" else {}
            path += "" if way == "accept" else f"?{way}"
            got = await post(here, GEMINI, path, body, stream=True, **headers)
            assert got.headers["content-type"].startswith("text/event-stream")
            assert got.said["stop"] == "end_turn"

    asyncio.run(scene())


def test_before_the_first_word_an_error_is_a_status() -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script(status(400, b'{"error": {"message": "too wide", "code": 400}}'))
            got = await post(here, GEMINI, *array_asking("g"), stream=True)
            assert "too wide" in got.is_refusal(400)

    asyncio.run(scene())
