"""Every official SDK as a client, over every protocol as an upstream, through a gateway on real sockets."""

from collections.abc import Iterator

import pytest
from support.gateways import Gateway, Loop, gateway
from support.sdk_talk import QUESTION, TALKS
from support.wires import PROTOCOLS

from dragoman.conform.scripted import serve

UPSTREAM = '[upstreams.{0}]\nprotocol = "{0}"\nbase_url = "{1}"\ncredential = "none"\n'
STREAM_AND_WHOLE = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EVERY_PAIR = [
    pytest.mark.parametrize("upstream", PROTOCOLS),
    pytest.mark.parametrize("client", PROTOCOLS),
    STREAM_AND_WHOLE,
]


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    loop = Loop()
    url, stop = loop.run(serve(pace=0))
    try:
        with gateway("".join(UPSTREAM.format(name, url) for name in PROTOCOLS), loop) as served:
            yield served
    finally:
        loop.run(stop())
        loop.close()


def every_pair(test: object) -> object:
    for mark in EVERY_PAIR:
        test = mark(test)
    return test


@every_pair
def test_text(client: str, upstream: str, stream: bool, running: Gateway) -> None:
    talk = TALKS[client](running.url, f"{upstream}/demo", stream=stream)
    assert "You said: “Hello there”" in talk.ask("Hello there", tools=False).text


@every_pair
def test_a_call_and_its_result(client: str, upstream: str, stream: bool, running: Gateway) -> None:
    talk = TALKS[client](running.url, f"{upstream}/demo", stream=stream)
    called = talk.ask(QUESTION)
    assert called.calls == [("get_weather", {"city": "Rome", "days": 3})]
    assert called.text == "I will use get_weather for that.\n"
    assert "get_weather answered: “Sunny”" in talk.answer(called, "Sunny").text


@every_pair
def test_signed_reasoning_comes_back_to_its_issuer(
    client: str, upstream: str, stream: bool, running: Gateway
) -> None:
    """Like real models, the scripted one refuses lost or foreign signatures in a history."""
    talk = TALKS[client](running.url, f"{upstream}/demo-sealed", stream=stream)
    called = talk.ask(QUESTION, think=True)
    assert "choose the first thing that fits" in called.thinking
    assert called.calls == [("get_weather", {"city": "Rome", "days": 3})]
    told = talk.answer(called, "Sunny")
    assert "get_weather answered: “Sunny”" in told.text
    again = talk.ask("And what is the weather in Paris, for 2 days?", think=True)
    assert [name for name, _ in again.calls] == ["get_weather"]


@every_pair
def test_two_calls_at_once(client: str, upstream: str, stream: bool, running: Gateway) -> None:
    talk = TALKS[client](running.url, f"{upstream}/demo-interleaved", stream=stream)
    called = talk.ask(QUESTION)
    assert [name for name, _ in called.calls] == ["get_weather", "get_weather"]
    assert len(set(called.ids)) == 2
    assert talk.answer(called, "Sunny").text.count("“Sunny”") == 2
