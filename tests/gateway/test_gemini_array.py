"""`streamGenerateContent` without `alt=sse`: one JSON array, element by element, as Google sends it."""

import asyncio
import json

import pytest
from gateway_harness import SHORT, Got, RawClient, asking, before, post
from support.scripted_upstream import Cut, ScriptedUpstream, Wait, status
from support.wires import GEMINI, PROTOCOLS
from test_faults_midstream import cut_within_a_character, spoken

from dragoman.wire import arrays

UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)


def array_asking(name: str) -> tuple[str, bytes]:
    path, body = asking(GEMINI, f"{name}/m")
    return path.replace("?alt=sse", ""), body


def as_events(got: Got) -> Got:
    """The same elements as server-sent events, for the judges."""
    assert got.status == 200
    assert got.headers["content-type"].startswith("application/json")
    frames = [b"data: " + json.dumps(element).encode() + b"\r\n\r\n" for element in json.loads(got.body)]
    return Got(GEMINI, True, 200, {**got.headers, "content-type": "text/event-stream"}, b"".join(frames))


def test_an_array_without_elements() -> None:
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
def test_a_cut_stream_ends_with_an_error_element(upstream: str) -> None:
    at = cut_within_a_character(upstream).rindex(b"\n\n") + 2

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script([spoken(upstream)[:at], Wait(0.02), Cut()])
            got = await post(here, GEMINI, *array_asking(SHORT[upstream]), stream=True)
            assert "broke" in as_events(got).is_broken_off()
            assert json.loads(got.body)[-1]["error"]["code"] == 502

    asyncio.run(scene())


def test_elements_arrive_when_they_are_sent() -> None:
    at = cut_within_a_character(GEMINI).rindex(b"\n\n") + 2

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script([spoken(GEMINI)[:at], Wait(5), spoken(GEMINI)[at:]])
            async with RawClient(here) as plain:
                await plain.post(*array_asking("g"))
                await plain.until(b"costs")
                assert b"\r\n[{" in plain.got

    asyncio.run(scene())


@pytest.mark.parametrize("way", ["alt=sse", "$alt=sse", "accept"])
def test_alt_sse_gives_server_sent_events(way: str) -> None:
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


def test_an_error_before_the_first_text_is_an_http_status() -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            served.script(status(400, b'{"error": {"message": "too wide", "code": 400}}'))
            got = await post(here, GEMINI, *array_asking("g"), stream=True)
            assert "too wide" in got.is_refusal(400)

    asyncio.run(scene())
