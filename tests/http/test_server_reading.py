"""Requests on one connection, one after another and cut anywhere; heads alike, and long bodies."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.served import (
    HOST,
    Client,
    chunked,
    client_of,
    echo,
    leaves_during,
    listening,
    post,
    with_client,
)

from dragoman.http.server import BodyTooLarge, Request, Response
from dragoman.http.server.reader import Reader

MUCH = 8 * 1024 * 1024
SIZES = [0, 1, 60, 65_535, 65_537, 300_000, 1_100_000, 2_200_000]
LETTERS = bytes(range(256)) * 10_000
SENT = LETTERS[: SIZES[-1]]


class Bytes:
    """A connection without a socket: what is read of the bytes it is given."""

    def __init__(self, most: int = MUCH) -> None:
        self.requests: list[Request] = []
        connection = cast(Any, SimpleNamespace(max_body=most))
        self.reader = Reader(connection, self.requests.append)

    def give(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.reader.feed(piece)

    def read(self) -> list[tuple[str, str, dict[str, str], bytes | str]]:
        return [
            (request.method, request.target, request.headers, _body(request)) for request in self.requests
        ]


def _body(request: Request) -> bytes | str:
    if not request.complete:
        return "incomplete"
    try:
        return asyncio.run(request.read())
    except BodyTooLarge:
        return "too large"


def request_of(kind: int, size: int) -> bytes:
    body = SENT[:size]
    if kind == 0:
        return post(body)
    if kind == 1:
        return post(body, b"X-Key: a\r\nx-key: b\r\n", path=b"/%7Eq?x=1")
    if kind == 2:
        return chunked(*(piece for piece in (body[: size // 2], body[size // 2 :]) if piece))
    if kind == 3:
        return b"POST http://localhost/q HTTP/1.1\r\ncontent-length: %d\r\n%b\r\n" % (size, HOST) + body
    return b"GET /%d HTTP/1.1\r\n%b\r\n" % (size, HOST)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(SIZES)), min_size=1, max_size=5),
    st.lists(st.integers(0, 5_000_000) | st.integers(0, 300), max_size=6),
)
def test_however_they_are_cut_requests_are_the_same(sent: list[tuple[int, int]], at: list[int]) -> None:
    """Heads again and others between them, bodies of every length: as if each had come alone and whole."""
    alone: list[Any] = []
    for kind, size in sent:
        single = Bytes()
        single.give(request_of(kind, size))
        alone += single.read()
    data = b"".join(request_of(kind, size) for kind, size in sent)
    cuts = sorted({0, len(data), *(cut % len(data) for cut in at)})
    together = Bytes()
    together.give(*(data[a:b] for a, b in pairwise(cuts)))
    assert together.read() == alone
    assert [body for *_, body in alone] == [SENT[:size] if kind != 4 else b"" for kind, size in sent]


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(SIZES), st.lists(st.integers(0, 400), max_size=5))
def test_a_head_again_in_any_pieces(size: int, at: list[int]) -> None:
    bytes_in = Bytes()
    again = post(SENT[:size], b"X: y\r\n")
    bytes_in.give(post(b"first", b"X: y\r\n"))
    cuts = sorted({0, len(again), *(cut for cut in at if cut < len(again))})
    bytes_in.give(*(again[a:b] for a, b in pairwise(cuts)), post(b"last", b"X: z\r\n"))
    assert [body for *_, body in bytes_in.read()] == [b"first", SENT[:size], b"last"]
    assert [said[2]["content-length"] for said in bytes_in.read()] == ["5", str(size), "4"]


def test_what_a_handler_does_to_the_fields_is_not_said_by_the_next_request() -> None:
    bytes_in = Bytes()
    for _ in range(3):
        bytes_in.give(post(b"{}"))
        fields = bytes_in.requests[-1].headers
        assert fields == {"host": "localhost", "content-length": "2"}
        fields["x"] = "y"


# What differs by little from a head that came before.
BEFORE = b"POST /p HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
ALIKE: dict[str, bytes] = {
    "another length": BEFORE.replace(b": 5", b": 4")[:-1],
    "zeros before": BEFORE.replace(b": 5", b": 005"),
    "none": BEFORE.replace(b": 5", b": "),
    "spaces": BEFORE.replace(b": 5", b":   5  "),
    "plus": BEFORE.replace(b": 5", b": +5"),
    "minus": BEFORE.replace(b": 5", b": -5"),
    "hexadecimal": BEFORE.replace(b": 5", b": 0x5"),
    "underscore": BEFORE.replace(b": 5", b": 0_5"),
    "other digits": BEFORE.replace(b": 5", ": \u0665".encode()),
    "two in one": BEFORE.replace(b": 5", b": 5, 5"),
    "twice": BEFORE.replace(b": 5\r\n", b": 5\r\nContent-Length: 5\r\n"),
    "twice, other": BEFORE.replace(b": 5\r\n", b": 5\r\nContent-Length: 6\r\n"),
    "twice, after": BEFORE.replace(b"X: y\r\n", b"X: y\r\nContent-Length: 6\r\n"),
    "chunked": BEFORE.replace(b": 5\r\n", b": 5\r\nTransfer-Encoding: chunked\r\n"),
    "chunked, after": BEFORE.replace(b"X: y\r\n", b"X: y\r\nTransfer-Encoding: chunked\r\n"),
    "too large": BEFORE.replace(b": 5", b": 10001"),
    "far too large": BEFORE.replace(b": 5", b": 99999999999999999999999"),
    "bare line": BEFORE.replace(b": 5\r\n", b": 5\n"),
    "bare return": BEFORE.replace(b": 5\r\n", b": 5\r"),
    "folded": BEFORE.replace(b": 5\r\n", b": 5\r\n 5\r\n"),
    "longer name": BEFORE.replace(b"Content-Length: 5", b"X-Content-Length: 5"),
    "no end": BEFORE.replace(b"X: y\r\n\r\nhello", b"X: y\r\nhello"),
    "two hosts": BEFORE.replace(b"X: y\r\n", b"Host: b\r\n"),
    "goodbye": BEFORE.replace(b"X: y\r\n", b"Connection: close\r\n"),
    "old": BEFORE.replace(b"1.1", b"1.0"),
    "another path": BEFORE.replace(b"/p", b"/q"),
    "empty lines before": b"\r\n\r\n" + BEFORE,
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("together", [False, True])
def test_a_head_like_another_is_taken_as_if_it_were_the_first(name: str, together: bool) -> None:
    """What is refused stays refused, and what is said is said, whatever came before on the connection."""

    async def said(*sent: bytes) -> bytes:
        async with listening(echo) as listener, client_of(listener) as client:
            for data in sent[:-1]:
                await client.send(data)
                assert (await client.answer())[2].endswith(b"hello")
            await client.send(sent[-1])
            client.writer.write_eof()
            return await client.reader.read()

    async def play() -> None:
        async with asyncio.timeout(10):
            follows = ALIKE[name] + (post(b"next") if together else b"")
            fresh, after = await said(follows), await said(BEFORE, BEFORE, follows)
        assert _undated(after) == _undated(fresh)

    asyncio.run(play())


def _undated(answers: bytes) -> list[bytes]:
    return [line for line in answers.split(b"\r\n") if not line.startswith(b"date: ")]


# ── long bodies ──


@pytest.mark.parametrize("size", [65_537, 440_000, 1_048_576, 3_000_000])
def test_long_bodies_arrive_one_after_another(size: int) -> None:
    async def scene(client: Client) -> None:
        for _ in range(3):
            await client.send(post(LETTERS[:size]) + post(b"short"))
            assert (await client.answer())[2].endswith(b"-\n" + LETTERS[:size])
            assert (await client.answer())[2].endswith(b"short")

    with_client(scene, most=MUCH)


@pytest.mark.parametrize("at_once", [65_536, 65_537, 300_000])
def test_a_long_body_may_stop_after_any_read(at_once: int) -> None:
    whole = post(LETTERS[:440_000])

    async def scene(client: Client) -> None:
        for _ in range(2):
            await client.send(whole[:at_once])
            await asyncio.sleep(0.05)  # the rest is looked for, and is not there
            await client.send(whole[at_once:])
            assert (await client.answer())[2].endswith(LETTERS[:440_000])

    with_client(scene, most=MUCH)


def test_a_long_body_is_asked_for_only_by_who_wants_it() -> None:
    async def scene(client: Client) -> None:
        for _ in range(2):
            whole = post(LETTERS[:300_000], b"Expect: 100-continue\r\n")
            await client.send(whole[:-300_000])
            assert (await client.answer(bodiless=True))[0] == 100
            await client.send(whole[-300_000:])
            assert (await client.answer())[2].endswith(LETTERS[:300_000])

    with_client(scene, most=MUCH)


def test_a_long_body_that_nobody_reads_waits_at_the_client() -> None:
    async def play() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def reads_late(request: Request) -> Response:
            begun.set()
            await go.wait()
            return await echo(request)

        size = 60 * 1024 * 1024
        async with listening(reads_late, most=size) as listener, client_of(listener) as client:
            async with asyncio.timeout(30):
                sending = asyncio.ensure_future(client.send(post(bytes(size))))
                await begun.wait()
                await asyncio.sleep(0.1)
                assert not sending.done()
                go.set()
                assert len((await client.answer())[2]) > size
                await sending

    asyncio.run(play())


def test_a_long_body_that_nobody_wants_passes_and_the_connection_lives() -> None:
    async def picky(request: Request) -> Response:
        return Response(b"no", status=401) if request.path == "/no" else await echo(request)

    async def scene(client: Client) -> None:
        for size in (70_000, 2_000_000):
            await client.send(post(LETTERS[:size], path=b"/no"), post(b"next"))
            assert (await client.answer())[0] == 401
            assert (await client.answer())[2].endswith(b"next")

    with_client(scene, picky, most=MUCH)


def test_a_long_body_that_is_too_long_passes_and_the_connection_lives() -> None:
    async def scene(client: Client) -> None:
        for size in (300_000, 300_000, 3_000_000):
            await client.send(post(LETTERS[:size]))
            assert (await client.answer())[0] == 413
            await client.send(post(b"small"))
            assert (await client.answer())[2].endswith(b"small")

    with_client(scene, most=200_000)


@pytest.mark.parametrize("body", [b"", LETTERS[:440_000]], ids=["short", "long"])
def test_who_leaves_after_asking_takes_the_handler_along(body: bytes) -> None:
    async def waits(request: Request, begun: asyncio.Event) -> None:
        await request.read()
        begun.set()
        await asyncio.Event().wait()

    leaves_during(waits, post(body), most=MUCH)


@pytest.mark.parametrize("sent", [65_536, 440_000])
def test_who_leaves_in_the_middle_of_a_long_body_is_not_answered(sent: int) -> None:
    async def reads(request: Request, begun: asyncio.Event) -> None:
        begun.set()
        await request.read()

    leaves_during(reads, post(LETTERS[:440_000])[:sent], most=MUCH)


def test_who_asks_much_at_once_is_not_served_before_all_others() -> None:
    async def play() -> None:
        answered: list[str] = []

        async def at_once(request: Request) -> Response:
            answered.append(request.path)
            return Response(b"fine")

        async with listening(at_once) as listener, client_of(listener) as many, client_of(listener) as one:
            async with asyncio.timeout(10):
                await many.send(post(b"", path=b"/many"))  # so that both are there
                await one.send(post(b"", path=b"/one"))
                await many.answer()
                await one.answer()
                many.writer.write(post(b"", path=b"/many") * 100)
                one.writer.write(post(b"", path=b"/one"))
                for _ in range(100):
                    await many.answer()
                await one.answer()
        assert answered.index("/one", 2) < 60

    asyncio.run(play())
