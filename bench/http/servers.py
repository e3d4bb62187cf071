"""A server that answers like the scripted upstream, once with each library. `… aiohttp PORT`

All of them run on uvloop, as `dragoman serve` does.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import uvloop

from bench.answers import CHAT, STAMP, body, stream
from bench.shapes import Shape, shape_of

JSON, EVENTS = "application/json", "text/event-stream"


@cache
def _events(shape: Shape) -> list[tuple[bytes, bytes]]:
    cut = [event.partition(STAMP.encode()) for event in stream(CHAT, shape)]
    return [(head, tail) for head, _, tail in cut]


async def paced(shape: Shape) -> AsyncIterator[bytes]:
    number = 0
    for head, tail in _events(shape):
        if tail:
            await asyncio.sleep(shape.every_ms / 1000)
            yield b"%b%d:%d;%b" % (head, number, time.monotonic_ns(), tail)
            number += 1
        else:
            yield head


@cache
def whole(shape: Shape) -> bytes:
    return body(CHAT, shape)


def with_dragoman(port: int) -> None:
    """Dragoman's contract over aiohttp: limits, timeouts, half-closed clients."""
    from dragoman.transport.server import HttpAnswer, HttpRequest, HttpResponse, Listener, Stream

    async def answer(request: HttpRequest) -> HttpAnswer:
        shape = shape_of(await request.read()) or Shape()
        if not shape.every_ms:
            return HttpResponse(whole(shape), content_type=JSON)
        response = Stream(request, headers={"content-type": EVENTS})
        async for piece in paced(shape):
            await response.write(piece)
        return response

    async def serve() -> None:
        await Listener(answer).listen("127.0.0.1", port)
        await asyncio.Event().wait()

    uvloop.run(serve())


def with_aiohttp(port: int) -> None:
    from aiohttp import web

    async def answer(request: web.Request) -> web.StreamResponse:
        shape = shape_of(await request.read()) or Shape()
        if not shape.every_ms:
            return web.Response(body=whole(shape), content_type=JSON)
        response = web.StreamResponse(headers={"content-type": EVENTS})
        await response.prepare(request)
        async for piece in paced(shape):
            await response.write(piece)
        return response

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    loop = uvloop.new_event_loop()
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None, loop=loop)


async def asgi(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    asked, more = b"", True
    while more:
        message = await receive()
        asked += message.get("body", b"")
        more = message.get("more_body", False)
    shape = shape_of(asked) or Shape()
    kind = EVENTS if shape.every_ms else JSON
    headers = [(b"content-type", kind.encode())]
    if not shape.every_ms:
        headers.append((b"content-length", str(len(whole(shape))).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if not shape.every_ms:
        await send({"type": "http.response.body", "body": whole(shape)})
        return
    async for piece in paced(shape):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def with_uvicorn(port: int) -> None:
    import uvicorn

    uvicorn.run(
        asgi, host="127.0.0.1", port=port, log_level="error", access_log=False, loop="uvloop", lifespan="off"
    )


async def rsgi(scope: Any, protocol: Any) -> None:
    shape = shape_of(await protocol()) or Shape()
    if not shape.every_ms:
        protocol.response_bytes(200, [("content-type", JSON)], whole(shape))
        return
    answer = protocol.response_stream(200, [("content-type", EVENTS)])
    async for piece in paced(shape):
        await answer.send_bytes(piece)


def with_granian(port: int) -> None:
    from granian import Granian
    from granian.constants import Interfaces, Loops

    Granian(
        "bench.http.servers:rsgi",
        address="127.0.0.1",
        port=port,
        interface=Interfaces.RSGI,
        loop=Loops.uvloop,
        log_enabled=False,
    ).serve()


SERVERS = {
    "dragoman": with_dragoman,
    "aiohttp": with_aiohttp,
    "uvicorn": with_uvicorn,
    "granian": with_granian,
}

if __name__ == "__main__":
    SERVERS[sys.argv[1]](int(sys.argv[2]))
