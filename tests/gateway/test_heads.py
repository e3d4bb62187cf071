"""Two user agents in one head are one list of names; nothing else of a connection is touched."""

import asyncio
import json

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from support.captures import CAPTURES
from support.scripted_upstream import ScriptedUpstream
from troubles import config

from dragoman.config import loads
from dragoman.gateway.app import create_app
from dragoman.gateway.heads import Heads
from dragoman.gateway.listening import Site
from dragoman.gateway.state import State

TWICE = b"User-Agent: pydantic-ai/2.62.0\r\nuser-agent: google-genai-sdk/3.1.0 gl-python/3.11.7\r\n"
ONCE = b"user-agent: pydantic-ai/2.62.0 google-genai-sdk/3.1.0 gl-python/3.11.7\r\n"


def request(agent: bytes, body: bytes, *, more: bytes = b"") -> bytes:
    head = b"POST /v1/messages HTTP/1.1\r\n%sHost: localhost\r\n%sContent-Length: %d\r\n\r\n"
    return head % (agent, more, len(body)) + body


def test_two_names_become_one_list() -> None:
    assert Heads().feed(request(TWICE, b"{}")) == request(ONCE, b"{}")


@pytest.mark.parametrize("agent", [b"", b"User-Agent: curl/8\r\n", b"X-User-Agent: a\r\nuser-agent: b\r\n"])
def test_what_is_right_stays_as_it_is(agent: bytes) -> None:
    assert Heads().feed(request(agent, b"{}")) == request(agent, b"{}")


@pytest.mark.parametrize("name", [b"Host", b"Content-Length", b"Content-Type"])
def test_no_other_header_may_come_twice(name: bytes) -> None:
    twice = b"%s: 2\r\n%s: 2\r\n" % (name, name)
    assert Heads().feed(request(b"", b"{}", more=twice)) == request(b"", b"{}", more=twice)


FAKE = request(TWICE, b"")


@given(
    bodies=st.lists(
        st.sampled_from([b"", b"{}", FAKE, b"x" * 50 + FAKE, b"\r\n\r\n"]), min_size=1, max_size=4
    ),
    data=st.data(),
)
def test_a_body_is_never_touched(bodies: list[bytes], data: st.DataObject) -> None:
    """Whatever a body looks like and wherever it is cut, as long as heads come whole."""
    heads, given_, wanted, got = Heads(), b"", b"", b""
    for body in bodies:
        wanted += request(ONCE, body)
        given_ += request(TWICE, body)
        at = data.draw(st.integers(0, len(body)))
        # Everything up to somewhere in this body, together with what was left of the one before.
        cut = len(given_) - at
        got += heads.feed(given_[:cut])
        given_ = given_[cut:]
    assert got + heads.feed(given_) == wanted


def test_where_bodies_cannot_be_counted_everything_passes() -> None:
    chunked = request(TWICE, b"5\r\nhello\r\n0\r\n\r\n", more=b"Transfer-Encoding: chunked\r\n")
    heads = Heads()
    assert heads.feed(chunked).startswith(b"POST /v1/messages HTTP/1.1\r\n" + ONCE)
    assert heads.feed(request(TWICE, b"{}")) == request(TWICE, b"{}")
    torn = Heads()
    assert [torn.feed(b"POST / HT"), torn.feed(FAKE)] == [b"POST / HT", FAKE]


def test_pydantic_ai_with_gemini_is_answered() -> None:
    capture = CAPTURES["pydantic-ai gemini"]
    path, body = capture.asking("c/demo")
    data = json.dumps(body).encode()

    async def scene() -> bytes:
        async with ScriptedUpstream() as upstream:
            state = State(loads(config(upstream.url), env={}), env={})
            runner = web.AppRunner(create_app(state), access_log=None)
            await runner.setup()
            await Site(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n".encode()
            length = f"Content-Length: {len(data)}\r\n\r\n".encode()
            writer.write(head + TWICE + b"content-type: application/json\r\n" + length + data)
            try:
                return await asyncio.wait_for(reader.read(), 10)
            finally:
                writer.close()
                await runner.cleanup()

    got = asyncio.run(scene())
    assert got.startswith(b"HTTP/1.1 200 OK")
    assert b"functionCall" in got
