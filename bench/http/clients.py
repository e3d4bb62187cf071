"""A client of the scripted upstream, once with each library. `… aiohttp PORT MODEL REQUESTS`"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from bench.answers import CHAT
from bench.requests import question
from bench.shapes import Shape, shape_of
from bench.verify import wrong

AT_ONCE = 8
HEADERS = {"content-type": "application/json"}
Ask = Callable[[bytes], Awaitable[bytes]]
Measure = Callable[[Ask], Awaitable[float]]


async def with_dragoman(url: str, measure: Measure) -> float:
    """Dragoman's contract over pycurl: timeouts, repeated requests, errors by name."""
    from dragoman.transport.client import open_client

    async with open_client() as client:

        async def ask(body: bytes) -> bytes:
            answer = await client.request("POST", url, HEADERS, body)
            pieces: list[bytes] = []
            while piece := await answer.chunk():
                pieces.append(piece)
            return b"".join(pieces)

        return await measure(ask)


async def with_aiohttp(url: str, measure: Measure) -> float:
    import aiohttp

    async with aiohttp.ClientSession() as session:

        async def ask(body: bytes) -> bytes:
            async with session.post(url, data=body, headers=HEADERS) as answer:
                return b"".join([chunk async for chunk in answer.content.iter_any()])

        return await measure(ask)


async def with_httpx2(url: str, measure: Measure) -> float:
    import httpx2

    async with httpx2.AsyncClient(timeout=60) as client:

        async def ask(body: bytes) -> bytes:
            async with client.stream("POST", url, content=body, headers=HEADERS) as answer:
                return b"".join([chunk async for chunk in answer.aiter_raw()])

        return await measure(ask)


async def with_pyreqwest(url: str, measure: Measure) -> float:
    from pyreqwest.client import ClientBuilder

    async with ClientBuilder().build() as client:

        async def ask(body: bytes) -> bytes:
            pieces: list[bytes] = []
            # Without a limit of 0 the library holds back small chunks.
            request = client.post(url).headers(HEADERS).body_bytes(body).streamed_read_buffer_limit(0)
            async with request.build_streamed() as answer:
                while piece := await answer.body_reader.read_chunk():
                    pieces.append(bytes(piece))
            return b"".join(pieces)

        return await measure(ask)


async def with_pyqwest(url: str, measure: Measure) -> float:
    from pyqwest import Headers, HTTPTransport, Request

    async with HTTPTransport(use_system_dns=True, enable_otel=False, pool_max_idle_per_host=100) as client:

        async def ask(body: bytes) -> bytes:
            answer = await client.execute(Request("POST", url, Headers(HEADERS), body))
            return b"".join([bytes(chunk) async for chunk in answer.content])

        return await measure(ask)


async def with_pycurl(url: str, measure: Measure) -> float:
    import pycurl

    async with pycurl.AsyncCurlMulti() as multi:

        async def ask(body: bytes) -> bytes:
            pieces: list[bytes] = []
            handle = pycurl.Curl()
            handle.setopt(pycurl.URL, url)
            handle.setopt(pycurl.POSTFIELDS, body)
            handle.setopt(pycurl.HTTPHEADER, [f"{name}: {value}" for name, value in HEADERS.items()])
            handle.setopt(pycurl.WRITEFUNCTION, pieces.append)
            await multi.perform(handle)
            return b"".join(pieces)

        return await measure(ask)


async def with_niquests(url: str, measure: Measure) -> float:
    import niquests

    async with niquests.AsyncSession() as session:

        async def ask(body: bytes) -> bytes:
            answer = await session.post(url, data=body, headers=HEADERS, stream=True)
            return b"".join([chunk async for chunk in await answer.iter_raw(-1)])

        return await measure(ask)


CLIENTS = {
    "dragoman": with_dragoman,
    "pycurl": with_pycurl,
    "pyqwest": with_pyqwest,
    "pyreqwest": with_pyreqwest,
    "aiohttp": with_aiohttp,
    "niquests": with_niquests,
    "httpx2": with_httpx2,
}


def measuring(shape: Shape, requests: int) -> Measure:
    body = question(CHAT, shape, streamed=bool(shape.every_ms))

    async def measure(ask: Ask) -> float:
        async def several(count: int) -> None:
            for _ in range(count):
                mistake = wrong(CHAT, shape, await ask(body), streamed=bool(shape.every_ms))
                assert not mistake, mistake

        async def checked() -> float:
            """The cost of checking the answers alone."""
            answer = await ask(body)
            before = time.process_time()
            for _ in range(requests):
                wrong(CHAT, shape, answer, streamed=bool(shape.every_ms))
            return time.process_time() - before

        await several(AT_ONCE)
        checking = await checked()
        before = time.process_time()
        await asyncio.gather(*(several(requests // AT_ONCE) for _ in range(AT_ONCE)))
        return time.process_time() - before - checking

    return measure


if __name__ == "__main__":
    name, port, model, requests = sys.argv[1:]
    shape = shape_of(model.encode())
    assert shape is not None
    import uvloop  # as in `dragoman serve`

    print(
        uvloop.run(
            CLIENTS[name](f"http://127.0.0.1:{port}/v1/chat/completions", measuring(shape, int(requests)))
        )
    )
