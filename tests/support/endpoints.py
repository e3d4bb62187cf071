"""The scripted model over HTTP: an endpoint that keeps every law, except those that a test spoils."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
from aiohttp import ClientSession

from dragoman.conform.scripted import Reply, ScriptedModel
from dragoman.conform.scripted.replies import STREAM
from dragoman.conform.scripted.server import play, reply_to, spoken_in, start
from dragoman.transport.server import Handler, HttpRequest, HttpResponse, Stream

from . import edited_streams
from .gateways import Loop


@dataclass(frozen=True)
class Asked:
    path: str
    body: bytes
    protocol: str


Spoil = Callable[[Asked, Reply], Reply]


@contextmanager
def endpoint(loop: Loop, spoil: Spoil = lambda _, reply: reply) -> Iterator[str]:
    """Serve until the block ends. Yields the address."""
    model = ScriptedModel(clock=lambda: 1_800_000_000)

    async def handle(request: HttpRequest) -> Stream:
        asked = Asked(request.path, bytes(await request.read()), spoken_in(request).name)
        return await play(request, spoil(asked, reply_to(model, request, asked.body)), 0.0)

    with serving(loop, handle) as url:
        yield url


@contextmanager
def idle_proxy(loop: Loop, upstream: str) -> Iterator[str]:
    """A gateway that passes everything on unchanged."""

    async def handle(request: HttpRequest) -> HttpResponse:
        async with (
            ClientSession() as session,
            session.post(upstream + request.target, data=await request.read()) as response,
        ):
            body = await response.read()
            return HttpResponse(body, status=response.status, content_type=response.content_type)

    with serving(loop, handle) as url:
        yield url


@contextmanager
def serving(loop: Loop, handle: Handler) -> Iterator[str]:
    url, stop = loop.run(start(handle))
    try:
        yield url
    finally:
        loop.run(stop())


def sent(reply: Reply) -> bytes:
    return b"".join(step for step in reply.steps if isinstance(step, bytes))


def resent(reply: Reply, data: bytes, **more: object) -> Reply:
    return msgspec.structs.replace(reply, steps=(data,), length=None, **more)


def is_stream(reply: Reply) -> bool:
    return reply.status == 200 and reply.content_type == STREAM


def in_streams(spoil: edited_streams.Spoil) -> Spoil:
    """Spoil the events of every stream in place."""

    def spoiled(asked: Asked, reply: Reply) -> Reply:
        if not is_stream(reply):
            return reply
        return resent(reply, edited_streams.spoiled(asked.protocol, sent(reply), spoil))

    return spoiled


def in_stream_bytes(change: Callable[[bytes], bytes]) -> Spoil:
    return lambda _, reply: resent(reply, change(sent(reply))) if is_stream(reply) else reply


def in_answers(change: Callable[[bytes], bytes]) -> Spoil:
    """Change the bytes of every answer, streamed or not."""
    return lambda _, reply: resent(reply, change(sent(reply))) if reply.status == 200 else reply
