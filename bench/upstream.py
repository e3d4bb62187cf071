"""The scripted upstream: a process that answers OpenAI Chat and Anthropic with prepared bytes.

`python -m bench.upstream` prints its port. Each event of a stream is its own HTTP chunk, as with
real providers; a stream that is not paced is one write.
"""

from __future__ import annotations

import asyncio
import re
import time
from functools import cache
from typing import cast

from . import answers
from .answers import ANTHROPIC, CHAT, STAMP
from .marks import lost, told
from .shapes import Shape, shape_of

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STREAMED = re.compile(rb'"stream": ?true')
_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_LAST = b"0\r\n\r\n"


class Upstream(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._need = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        while buffer and len(buffer) >= self._need:
            head = buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            length = _LENGTH.search(buffer, 0, head)
            self._need = head + 4 + (int(length[1]) if length else 0)
            if len(buffer) < self._need:
                return
            request = bytes(buffer[: self._need])
            del buffer[: self._need]
            self._need = 0
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        shape = shape_of(request)
        protocol = ANTHROPIC if request.startswith(b"POST /v1/messages") else CHAT
        if shape is None:
            self._transport.write(_plain(b"200 OK", b'{"object":"list","data":[]}'))
        elif message := lost(request, protocol):
            error = b'{"error":{"type":"invalid_request_error","message":"%b"}}' % message.encode()
            self._transport.write(_plain(b"400 Bad Request", error))
        elif not _STREAMED.search(request):
            self._transport.write(_whole(protocol, shape))
        elif not shape.every_ms:
            self._transport.write(_streamed(protocol, shape, told(request)))
        else:
            self._begin_paced(protocol, shape)

    def _begin_paced(self, protocol: str, shape: Shape) -> None:
        self._transport.write(_STREAM)
        self._events = _paced(protocol, shape)
        self._at = 0
        self._stamped = 0
        self._due = asyncio.get_running_loop().time()
        self._every = shape.every_ms / 1000
        self._next()

    def _next(self) -> None:
        """Send one event. Events without text are sent with their neighbour."""
        out = bytearray()
        sent = False
        while self._at < len(self._events):
            head, tail = self._events[self._at]
            if tail and sent:
                break
            if tail:
                stamp = b"%d:%d;" % (self._stamped, time.monotonic_ns())
                self._stamped += 1
                sent = True
                head = b"%b%b%b" % (head, stamp, tail)
            self._at += 1
            out += _chunk(head)
        if self._at == len(self._events):
            self._transport.write(out + _LAST)
            return
        self._transport.write(out)
        self._due += self._every
        self._timer = asyncio.get_running_loop().call_at(self._due, self._next)


def _chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _plain(status: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


@cache
def _whole(protocol: str, shape: Shape) -> bytes:
    return _plain(b"200 OK", answers.body(protocol, shape))


@cache
def _streamed(protocol: str, shape: Shape, told: str) -> bytes:
    return _STREAM + b"".join(_chunk(event) for event in answers.stream(protocol, shape, told)) + _LAST


@cache
def _paced(protocol: str, shape: Shape) -> list[tuple[bytes, bytes]]:
    """Each event, split at the position of its time stamp."""
    cut = [event.partition(STAMP.encode()) for event in answers.stream(protocol, shape)]
    return [(head, tail) for head, _, tail in cut]


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
