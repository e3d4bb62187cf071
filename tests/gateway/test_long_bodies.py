"""Long bodies reuse one buffer: no conversation sees the text of another."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call, post
from support.scripted_upstream import ScriptedUpstream, status

SIZE = 200_000
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/echo:generateContent",
}


@pytest.fixture
def running(upstream: ScriptedUpstream) -> Iterator[Gateway]:
    loop = Loop()
    config = f"""
        [server]
        retries = 0
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        [upstreams.spare]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        [[routes]]
        match = "two"
        to = ["up/m", "spare/m"]
        [[routes]]
        match = "*"
        to = "up/*"
    """
    with gateway(config, loop) as served:
        yield served
    loop.close()


def asks(protocol: str, words: str, more: int = 0) -> bytes:
    """A conversation whose first message repeats `words` up to a fixed length."""
    first = (words * SIZE)[:SIZE]
    turns = [("user", first)]
    for turn in range(more):
        turns += [("assistant", f"{words} said {turn}"), ("user", f"{words} asked {turn}")]
    said: dict[str, Any]
    if protocol == "gemini":
        role = {"user": "user", "assistant": "model"}
        said = {"contents": [{"role": role[who], "parts": [{"text": text}]} for who, text in turns]}
    else:
        name = "input" if protocol == "openai-responses" else "messages"
        said = {"model": "echo", "max_tokens": 9, name: [{"role": r, "content": text} for r, text in turns]}
        if protocol == "openai-responses":
            del said["max_tokens"]
    return json.dumps(said, separators=(",", ":")).encode()


def shown(running: Gateway, id: str) -> dict[str, Any]:
    return call(f"{running.url}/exchanges/{id}/bytes").json


@pytest.mark.parametrize("protocol", PATHS)
def test_conversations_of_equal_length_do_not_mix(
    protocol: str, running: Gateway, upstream: ScriptedUpstream
) -> None:
    """Checks the request, the upstream's request, the next turn, and the exchange view."""
    names = ["a-", "b-", "c-", "d-"]
    told: list[tuple[str, bytes, bytes]] = []
    for more in range(3):
        for words in names:
            body = asks(protocol, words, more)
            got = post(running.url + PATHS[protocol], body)
            assert got.status == 200, got.body
            sent = upstream.last.body
            texts = [message["content"] for message in json.loads(sent)["messages"]]
            assert texts[0] == (words * SIZE)[:SIZE]
            assert len(texts) == 1 + 2 * more
            assert all(words in text for text in texts)
            told.append((got.headers["x-dragoman-exchange"], body, sent))
    for id, body, sent in told:
        bytes_of = shown(running, id)
        assert bytes_of["client_request"]["body"] == body.decode()
        assert [asked["body"] for asked in bytes_of["upstream_requests"]] == [sent.decode()]


def test_the_second_target_gets_the_same_body(running: Gateway, upstream: ScriptedUpstream) -> None:
    for words in ("a-", "b-", "c-"):
        upstream.script(status(500))
        body = asks("anthropic", words, 1).replace(b'"echo"', b'"two"')
        assert post(running.url + PATHS["anthropic"], body).status == 200
        first, second = (json.loads(seen.body)["messages"] for seen in upstream.seen[-2:])
        assert first == second
        assert first[0]["content"] == (words * SIZE)[:SIZE]


def test_the_view_of_an_unreadable_body_shows_its_own_bytes(running: Gateway) -> None:
    wrong: list[tuple[str, bytes]] = []
    for words in ("a-", "b-", "c-"):
        body = asks("anthropic", words)[:-1] + b"]"
        got = post(running.url + PATHS["anthropic"], body)
        assert got.status == 400
        wrong.append((got.headers["x-dragoman-exchange"], body))
    for id, body in wrong:
        assert shown(running, id)["client_request"]["body"] == body.decode()
