"""The HTTP server with long bodies, and with clients that leave while they send one."""

import asyncio

import pytest
from support.served import (
    Client,
    client_of,
    echo,
    leaves_during,
    listening,
    post,
    with_client,
)

from dragoman.transport.server import HttpRequest, HttpResponse

MUCH = 8 * 1024 * 1024
SIZES = [0, 1, 60, 65_535, 65_537, 300_000, 1_100_000, 2_200_000]
LETTERS = bytes(range(256)) * 10_000
SENT = LETTERS[: SIZES[-1]]


@pytest.mark.parametrize("size", [65_537, 440_000, 1_048_576, 3_000_000])
def test_long_bodies_arrive_one_after_another(size: int) -> None:
    async def scene(client: Client) -> None:
        for _ in range(3):
            await client.send(post(LETTERS[:size]) + post(b"short"))
            assert (await client.answer())[2].endswith(b"-\n" + LETTERS[:size])
            assert (await client.answer())[2].endswith(b"short")

    with_client(scene, most=MUCH)


@pytest.mark.parametrize("at_once", [65_536, 65_537, 300_000])
def test_a_long_body_may_pause_after_any_read(at_once: int) -> None:
    whole = post(LETTERS[:440_000])

    async def scene(client: Client) -> None:
        for _ in range(2):
            await client.send(whole[:at_once])
            await asyncio.sleep(0.05)  # the server waits for the rest
            await client.send(whole[at_once:])
            assert (await client.answer())[2].endswith(LETTERS[:440_000])

    with_client(scene, most=MUCH)


def test_100_continue_for_a_long_body_is_sent_only_when_the_handler_reads() -> None:
    async def scene(client: Client) -> None:
        for _ in range(2):
            whole = post(LETTERS[:300_000], b"Expect: 100-continue\r\n")
            await client.send(whole[:-300_000])
            assert (await client.answer(bodiless=True))[0] == 100
            await client.send(whole[-300_000:])
            assert (await client.answer())[2].endswith(LETTERS[:300_000])

    with_client(scene, most=MUCH)


def test_an_unread_long_body_stays_at_the_client() -> None:
    async def play() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def reads_late(request: HttpRequest) -> HttpResponse:
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


def test_an_unwanted_long_body_is_skipped_and_the_connection_stays_open() -> None:
    async def picky(request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"no", status=401) if request.path == "/no" else await echo(request)

    async def scene(client: Client) -> None:
        for size in (70_000, 2_000_000):
            await client.send(post(LETTERS[:size], path=b"/no"), post(b"next"))
            assert (await client.answer())[0] == 401
            assert (await client.answer())[2].endswith(b"next")

    with_client(scene, picky, most=MUCH)


def test_an_oversized_long_body_is_skipped_and_the_connection_stays_open() -> None:
    async def scene(client: Client) -> None:
        for size in (300_000, 300_000, 3_000_000):
            await client.send(post(LETTERS[:size]))
            assert (await client.answer())[0] == 413
            await client.send(post(b"small"))
            assert (await client.answer())[2].endswith(b"small")

    with_client(scene, most=200_000)


@pytest.mark.parametrize("body", [b"", LETTERS[:440_000]], ids=["short", "long"])
def test_a_client_that_leaves_after_its_request_cancels_the_handler(body: bytes) -> None:
    async def waits(request: HttpRequest, begun: asyncio.Event) -> None:
        await request.read()
        begun.set()
        await asyncio.Event().wait()

    leaves_during(waits, post(body), most=MUCH)


@pytest.mark.parametrize("sent", [65_536, 440_000])
def test_a_client_that_leaves_within_a_long_body_cancels_the_handler(sent: int) -> None:
    async def reads(request: HttpRequest, begun: asyncio.Event) -> None:
        begun.set()
        await request.read()

    leaves_during(reads, post(LETTERS[:440_000])[:sent], most=MUCH)


def test_many_pipelined_requests_do_not_starve_other_clients() -> None:
    async def play() -> None:
        answered: list[str] = []

        async def at_once(request: HttpRequest) -> HttpResponse:
            answered.append(request.path)
            return HttpResponse(b"fine")

        async with listening(at_once) as listener, client_of(listener) as many, client_of(listener) as one:
            async with asyncio.timeout(10):
                await many.send(post(b"", path=b"/many"))  # until both have arrived
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
