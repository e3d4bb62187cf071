"""The scripted model as an HTTP server on localhost."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial

from ...protocols.base import WireProtocol
from ...protocols.registry import DEFAULT_PROTOCOL, PROTOCOLS, detect_protocol
from ...transport.server import Handler, HttpRequest, Listener, ServerLimits, Stream
from ...transport.server.incoming import HttpSink
from ...transport.server.routes import compiled
from .model import ScriptedModel
from .replies import FOREVER, Cut, Reply, Wait

_LARGEST = 64 * 1024 * 1024
_GRACE = 0.5
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with zero seconds: closing the socket sends a TCP reset."""

Stop = Callable[[], Awaitable[None]]


async def serve(
    port: int = 0, *, host: str = "127.0.0.1", model: ScriptedModel | None = None, pace: float = 1.0
) -> tuple[str, Stop]:
    """Start a server. Returns its address and a function that stops it.

    `pace` scales every pause; 0 skips them.
    """
    scripted = model or ScriptedModel()

    async def handle(request: HttpRequest) -> Stream:
        return await play(request, reply_to(scripted, request, bytes(await request.read())), pace)

    return await start(handle, port, host=host)


async def start(handler: Handler, port: int = 0, *, host: str = "127.0.0.1") -> tuple[str, Stop]:
    """Serve with `handler`. An answer ends as soon as its client disconnects."""
    listener = Listener(handler, ServerLimits(body=_LARGEST))
    await listener.listen(host, port)
    return f"http://{host}:{listener.address[1]}", partial(listener.stop, _GRACE)


def reply_to(model: ScriptedModel, request: HttpRequest, body: bytes) -> Reply:
    """The model's reply to a request, by its path."""
    path = request.path
    spoken = spoken_in(request)
    if request.method == "GET":
        return _read(model, spoken, path)
    if spoken.counting is not None and path.endswith(spoken.counting.suffix):
        return model.count(spoken.name, path, body)
    if request.method != "POST" or not _asks_for_an_answer(spoken, path):
        return model.no_such_path(spoken.name, path)
    reframes = spoken.endpoints.reframes
    array = reframes is not None and reframes(request.query, request.headers)
    return model.answer(spoken.name, path, body, array=array)


def spoken_in(request: HttpRequest) -> WireProtocol:
    """The protocol of a request, by its path; by its headers if protocols share the path."""
    return PROTOCOLS.get(detect_protocol(request.path, request.headers).name, DEFAULT_PROTOCOL)


async def play(request: HttpRequest, reply: Reply, pace: float = 1.0) -> Stream:
    """Send `reply`, step by step."""
    await _sleep(reply.delay, pace)
    headers = {**reply.headers, "content-type": reply.content_type}
    if reply.length is not None:
        headers["content-length"] = str(reply.length)
    response = Stream(request, status=reply.status, headers=headers)
    if reply.bare:
        # Write the bytes directly to the socket, then close it.
        write = _bare(request)
    else:
        await response.open()
        write = response.write
    for step in reply.steps:
        if isinstance(step, bytes):
            await write(step)
        elif isinstance(step, Wait):
            await _sleep(step.seconds, pace)
        else:
            break_off(request, step)
            return response
    if reply.bare:
        break_off(request, Cut())
    return response


def break_off(request: HttpRequest, cut: Cut) -> None:
    """Close or reset the connection in the middle of the answer."""
    transport = _transport(request)
    if transport is None:
        return
    if cut.reset:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()
    else:
        transport.close()


def _read(model: ScriptedModel, spoken: WireProtocol, path: str) -> Reply:
    folder, _, name = path.rstrip("/").partition("/models")
    if folder not in {record.address.version for record in PROTOCOLS.values()}:
        return model.no_such_path(spoken.name, path)
    return model.one_model(spoken.name, name[1:]) if name else model.models(spoken.name)


def _asks_for_an_answer(spoken: WireProtocol, path: str) -> bool:
    return any(re.search(f"{compiled(end).pattern}$", path) for end in spoken.endpoints.answers)


def _bare(request: HttpRequest) -> Callable[[bytes], Awaitable[None]]:
    async def write(data: bytes) -> None:
        if (transport := _transport(request)) is not None:
            transport.write(data)
        await asyncio.sleep(0)

    return write


def _transport(request: HttpRequest) -> asyncio.Transport | None:
    return request.sink.transport if isinstance(request.sink, HttpSink) else None


async def _sleep(seconds: float, pace: float) -> None:
    # Sleep even for zero seconds: an endless answer must not block the event loop.
    await asyncio.sleep(seconds if seconds >= FOREVER else seconds * pace)
