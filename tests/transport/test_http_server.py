"""The HTTP server: requests are read for every chunking, bad ones are refused, answers are delivered."""

import asyncio
import gzip
import socket
import zlib

import brotli
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st
from support.served import (
    HOST,
    MOST,
    Client,
    chunked,
    client_of,
    echo,
    leaves_during,
    listening,
    post,
    with_client,
)

from dragoman.transport.server import (
    HttpAnswer,
    HttpRequest,
    HttpResponse,
    MethodNotAllowed,
    NotFound,
    Route,
    Routes,
    Stream,
    connection,
)
from dragoman.transport.server.incoming import HttpSink

BODIES = st.binary(max_size=60)


@settings(max_examples=60, deadline=None)
@given(bodies=st.lists(BODIES, min_size=1, max_size=4), framed=st.booleans(), data=st.data())
def test_every_chunking_gives_the_same_requests(
    bodies: list[bytes], framed: bool, data: st.DataObject
) -> None:
    sent = b"".join(chunked(body) if framed and body else post(body) for body in bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    pieces = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]

    async def scene(client: Client) -> None:
        await client.send(*pieces)
        for body in bodies:  # in order, on one connection
            status, _, got = await client.answer()
            assert (status, got) == (200, b"POST\n/p\n/p\n-\n" + body)

    with_client(scene)


def test_a_path_is_decoded_and_its_query_read_once() -> None:
    async def asked(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"{request.path} {request.query}".encode())

    async def scene(client: Client) -> None:
        await client.send(b"GET /a%20b/c?x=1&x=2&y=%2F&z HTTP/1.1\r\n" + HOST + b"\r\n")
        assert (await client.answer())[2] == b"/a b/c {'x': '1', 'y': '/', 'z': ''}"
        await client.send(b"GET http://localhost/a?b=c HTTP/1.1\r\n" + HOST + b"\r\n")
        assert (await client.answer())[2] == b"/a {'b': 'c'}"

    with_client(scene, asked)


def test_two_user_agent_headers_are_joined() -> None:
    """Google's Python SDK adds its own to the caller's: requests of Pydantic AI have two."""

    async def scene(client: Client) -> None:
        await client.send(
            post(b"{}", b"User-Agent: pydantic-ai/2.62.0\r\nuser-agent: google-genai-sdk/3.1\r\n")
        )
        assert b"pydantic-ai/2.62.0 google-genai-sdk/3.1" in (await client.answer())[2]

    with_client(scene)


def test_two_user_agent_headers_are_joined_for_every_chunking() -> None:
    """Only header fields are joined. The body and later heads are unchanged."""
    body = b"\r\nuser-agent: a\r\nuser-agent: b\r\n\r\n"
    sent = post(body, b"User-Agent: one\r\nX-A: b\r\nUSER-AGENT: two\r\nuser-agent:three\r\n")
    expected = b"POST\n/p\n/p\none two three\n" + body

    async def scene(client: Client) -> None:
        for cut in range(1, len(sent)):
            await client.send(sent[:cut], sent[cut:])
            assert (await client.answer())[2] == expected
        await client.send(*(sent[at : at + 1] for at in range(len(sent))))
        assert (await client.answer())[2] == expected

    with_client(scene)


REFUSED = {400, 431}
SMUGGLED = {
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    "a length that is none": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2x\r\n\r\n{}",
    "a name with a space": b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\nHost: a\r\nX: SECRET\r\n more\r\n\r\n",
    "no HTTP": b"SECRET\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a tunnel": b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
    "a large head": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40_000 + b"\r\n\r\n",
    "an endless head": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 70_000,
}


@pytest.mark.parametrize("sent", SMUGGLED.values(), ids=SMUGGLED)
def test_a_malformed_request_is_refused_and_the_connection_closes(sent: bytes) -> None:
    async def scene(client: Client) -> None:
        await client.send(sent)
        status, fields, body = await client.answer()
        assert (status in REFUSED, fields["connection"]) == (True, "close")
        assert b"SECRET" not in body
        assert await client.closed()

    with_client(scene)


def test_nonsense_after_a_request_is_refused() -> None:
    async def scene(client: Client) -> None:
        await client.send(post(b"one"))
        assert (await client.answer())[2].endswith(b"one")
        await client.send(b"nonsense\r\n\r\n")
        assert (await client.answer())[0] == 400
        assert await client.closed()

    with_client(scene)


def test_a_malformed_chunk_is_a_bad_request() -> None:
    async def scene(client: Client) -> None:
        await client.send(chunked(b"fine")[:-5] + b"zz\r\n")
        status, fields, body = await client.answer()
        assert (status, fields["connection"]) == (400, "close")
        assert b"chunk size" in body

    with_client(scene)


def test_an_upgrade_header_is_ignored() -> None:
    """Java's client asks for HTTP/2 in every first request, Codex for a WebSocket."""

    async def scene(client: Client) -> None:
        wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
        await client.send(post(b'{"a":1}', wish))
        assert (await client.answer())[2].endswith(b'{"a":1}')
        await client.send(post(b"next"))
        assert (await client.answer())[2].endswith(b"next")

    with_client(scene)


@pytest.mark.parametrize(
    ("encoding", "deflated"),
    [
        (b"gzip", gzip.compress(b"hello", mtime=0)),
        (b"deflate", zlib.compress(b"hello")),
        (b"deflate", zlib.compress(b"hello")[2:-4]),
        (b"gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        (b"br", brotli.compress(b"hello")),
        (b"zstd", zstd.compress(b"hello")),
        (b"identity", b"hello"),
    ],
)
def test_a_deflated_body_is_read(encoding: bytes, deflated: bytes) -> None:
    async def scene(client: Client) -> None:
        await client.send(post(deflated, b"Content-Encoding: %b\r\n" % encoding))
        assert (await client.answer())[2].endswith(b"\nhello")

    with_client(scene)


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        (b"gzip", b"hello", 400),
        (b"gzip", gzip.compress(b"hello", mtime=0)[:-9], 400),
        (b"gzip", gzip.compress(b"\0" * (MOST + 1), mtime=0), 413),
        (b"gzip", gzip.compress(b"", mtime=0) * 400, 400),
        (b"br", b"hello", 400),
        (b"br", brotli.compress(b"hello")[:-2], 400),
        (b"br", brotli.compress(b"\0" * (MOST + 1)), 413),
        (b"zstd", b"hello", 400),
        (b"zstd", zstd.compress(b"hello")[:-2], 400),
        (b"zstd", zstd.compress(b"\0" * (MOST + 1)), 413),
        (b"compress", b"hello", 415),
        (b"gzip, zstd", b"hello", 415),
    ],
)
def test_a_body_that_cannot_be_inflated_is_refused(encoding: bytes, body: bytes, status: int) -> None:
    async def scene(client: Client) -> None:
        await client.send(post(body, b"Content-Encoding: %b\r\n" % encoding))
        assert (await client.answer())[0] == status

    with_client(scene)


@pytest.mark.parametrize("framed", [False, True])
def test_an_oversized_body_is_skipped_and_the_connection_stays_open(framed: bool) -> None:
    body = b"x" * (MOST + 1)

    async def scene(client: Client) -> None:
        await client.send(chunked(body[:6000], body[6000:]) if framed else post(body))
        assert (await client.answer())[0] == 413
        await client.send(post(b"small"))
        assert (await client.answer())[2].endswith(b"small")

    with_client(scene)


def test_a_refusal_reaches_a_client_that_is_still_sending() -> None:
    async def refuse(request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"no", status=401)

    async def scene(client: Client) -> None:
        size = 500_000  # more than a socket buffers
        head = b"POST / HTTP/1.1\r\n" + HOST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size
        await client.send(head, b"x" * size)
        status, fields, body = await client.answer()
        assert (status, body, fields["connection"]) == (401, b"no", "close")
        assert await client.closed()

    with_client(scene, refuse)


def test_a_refused_body_without_a_known_end_closes_the_connection() -> None:
    async def refuse(request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"no", status=401)

    async def scene(client: Client) -> None:
        await client.send(chunked(b"fine")[:-5])
        assert (await client.answer())[0] == 401
        await client.send(b"zz\r\n")
        assert await client.closed()

    with_client(scene, refuse)


def test_100_continue_is_sent_only_when_the_handler_reads() -> None:
    async def picky(request: HttpRequest) -> HttpResponse:
        return await echo(request) if request.path == "/p" else HttpResponse(b"no", status=401)

    async def scene(client: Client) -> None:
        expect = b"Expect: 100-continue\r\n"
        whole = post(b"hello", expect)
        await client.send(whole[:-5])
        assert (await client.answer(bodiless=True))[0] == 100
        await client.send(b"hello")
        assert (await client.answer())[2].endswith(b"hello")
        await client.send(post(b"hello", expect, path=b"/no")[:-5])
        status, fields, _ = await client.answer()
        assert (status, fields["connection"]) == (401, "close")  # the client may or may not send the body
        assert await client.closed()

    with_client(scene, picky)


async def streamed(request: HttpRequest) -> Stream:
    stream = Stream(request, headers={"content-type": "text/plain"})
    for piece in (b"one ", b"", b"two "):
        await stream.write(piece)
    await stream.end(b"three")
    return stream


def test_a_stream_is_sent_in_pieces() -> None:
    async def scene(client: Client) -> None:
        await client.send(post(b""))
        status, fields, body = await client.answer()
        assert (status, body, fields["transfer-encoding"]) == (200, b"one two three", "chunked")
        await client.send(b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n" + post(b""))
        assert (await client.answer(bodiless=True))[0] == 200
        assert (await client.answer())[2] == b"one two three"

    with_client(scene, streamed)


def test_http_1_0_gets_no_chunks() -> None:
    async def scene(client: Client) -> None:
        await client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        _, fields, body = await client.answer()
        assert (body, fields.get("transfer-encoding")) == (b"one two three", None)
        assert await client.closed()

    with_client(scene, streamed)


def test_http_1_0_keeps_the_connection_if_it_asks() -> None:
    async def scene(client: Client) -> None:
        for _ in range(2):
            await client.send(b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await client.answer())[1]["connection"] == "keep-alive"
        await client.send(b"GET /a HTTP/1.0\r\n\r\n")
        assert "connection" not in (await client.answer())[1]
        assert await client.closed()

    with_client(scene)


def test_a_client_that_leaves_cancels_the_handler() -> None:
    async def waits(request: HttpRequest, begun: asyncio.Event) -> None:
        begun.set()
        await asyncio.Event().wait()

    leaves_during(waits, post(b""))


def test_a_slow_client_slows_the_handler_down() -> None:
    most = 0

    async def pours(request: HttpRequest) -> Stream:
        nonlocal most
        stream = Stream(request, headers={})
        for _ in range(400):
            await stream.write(b"x" * 65_536)
            assert isinstance(request.sink, HttpSink)
            assert request.sink.transport is not None
            most = max(most, request.sink.transport.get_write_buffer_size())
        return stream

    async def scene(client: Client) -> None:
        await client.send(post(b""))
        await asyncio.sleep(0.05)
        assert len((await client.answer())[2]) == 400 * 65_536

    with_client(scene, pours)
    assert most < 1024 * 1024


def test_a_failing_handler_cuts_the_response() -> None:
    async def fails(request: HttpRequest) -> HttpAnswer:
        stream = Stream(request, headers={})
        await stream.write(b"half")
        raise RuntimeError("a bug")

    async def scene(client: Client) -> None:
        await client.send(post(b""))
        with pytest.raises((ValueError, ConnectionError)):  # no last chunk
            await client.answer()

    with_client(scene, fails)


def test_running_responses_finish_after_stop() -> None:
    async def play() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def waits(request: HttpRequest) -> HttpResponse:
            begun.set()
            await go.wait()
            return HttpResponse(b"x" * 3_000_000)

        async with listening(waits) as listener, client_of(listener) as idle, client_of(listener) as client:
            async with asyncio.timeout(10):
                await client.send(post(b""))
                await begun.wait()
                stopping = asyncio.ensure_future(listener.stop(8))
                assert await idle.closed()
                go.set()
                _, fields, body = await client.answer()
                assert (len(body), fields["connection"]) == (3_000_000, "close")
                await stopping

    asyncio.run(play())


def test_requests_on_their_way_are_answered_after_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load balancer cannot know that nobody reads its request, and never sends a POST twice."""
    monkeypatch.setattr(connection, "_LAST_REQUEST", 30.0)

    async def play() -> None:
        async with listening(echo) as listener, client_of(listener) as slow:
            await slow.send(b"POST /p HT")  # the rest is on its way
            # The kernel has made this connection, and the server has not accepted it yet.
            with socket.create_connection(listener.address) as pending:
                pending.sendall(post(b"pending"))
                stopping = asyncio.ensure_future(listener.stop(20))
                await asyncio.sleep(0.05)
                await slow.send(b"TP/1.1\r\n" + HOST + b"\r\n")
                status, fields, _ = await slow.answer()
                assert (status, fields["connection"]) == (200, "close")
                got = await asyncio.to_thread(pending.recv, 4096)
            assert got.startswith(b"HTTP/1.1 200")
            async with asyncio.timeout(20):
                await stopping  # nobody is left

    asyncio.run(play())


def test_a_connection_without_a_request_is_closed_after_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_LAST_REQUEST", 0.05)

    async def play() -> None:
        async with listening(echo) as listener, client_of(listener) as silent, asyncio.timeout(20):
            await asyncio.sleep(0)
            await listener.stop(20)
            assert await silent.closed()

    asyncio.run(play())


def test_stop_cancels_responses_that_take_too_long() -> None:
    async def play() -> None:
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def waits(request: HttpRequest) -> HttpResponse:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            raise AssertionError

        async with listening(waits, stop=0.01) as listener, client_of(listener) as client:
            await client.send(post(b""))
            await begun.wait()
            await listener.stop(0.01)
            assert cancelled.is_set()
            assert await client.closed()

    asyncio.run(play())


def test_a_line_break_in_a_response_header_is_refused() -> None:
    async def injects(request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"fine", headers={"x": "a\r\nset-cookie: b"})

    async def scene(client: Client) -> None:
        await client.send(post(b""))
        assert await client.closed()

    with_client(scene, injects)


def test_routes() -> None:
    async def one(request: HttpRequest) -> HttpResponse:
        return HttpResponse(repr(request.parts).encode())

    routes = Routes(
        [
            Route("GET", "/a", one),
            Route("POST", "/a", one),
            Route("GET", "/a/{id}/b", one),
            Route("POST", "/{version:v1|v2}/m/{name:.+}:{verb:[a-z]+}", one),
        ]
    )

    async def found(request: HttpRequest) -> HttpAnswer:
        try:
            return await routes.find(request)(request)
        except MethodNotAllowed as error:
            return HttpResponse(",".join(error.allowed).encode(), status=405)
        except NotFound:
            return HttpResponse(status=404)

    async def scene(client: Client) -> None:
        async def ask(method: str, path: str) -> tuple[int, bytes]:
            await client.send(f"{method} {path} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
            status, _, body = await client.answer(bodiless=method == "HEAD")
            return status, body

        assert await ask("GET", "/a") == (200, b"{}")
        assert await ask("HEAD", "/a") == (200, b"")
        assert await ask("PUT", "/a") == (405, b"GET,HEAD,POST")
        assert await ask("GET", "/a/7%2F8/b") == (404, b"")
        assert await ask("GET", "/a/7/b") == (200, b"{'id': '7'}")
        assert await ask("POST", "/v2/m/x/y:z:go") == (
            200,
            b"{'version': 'v2', 'name': 'x/y:z', 'verb': 'go'}",
        )
        assert await ask("GET", "/v2/m/x:go") == (405, b"POST")
        assert await ask("POST", "/v3/m/x:go") == (404, b"")

    with_client(scene, found)
