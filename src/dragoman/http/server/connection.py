"""One connection: bytes in, requests out, one answered after the other, bytes back.

The parser is httptools (llhttp, in C). A request is handed over when everything of the read that brought its
head is parsed, so that most of them come with their bodies. A client that leaves takes its handler with it.
All connections read into one buffer, and what is in it is parsed before the next one reads: a fresh one for
each read, as `data_received` would get, costs the system more than parsing does.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools

from .heads import add_field
from .refusals import BodyUnreadable, Refusal
from .request import Request
from .responses import Answer, Response, Stream

if TYPE_CHECKING:
    from .listener import Listener

log = logging.getLogger("dragoman.http")

_LARGEST_HEAD = 32 * 1024
_PATIENCE = 2.0
_TOO_LARGE = "its head is too large"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ClientGone(ConnectionError):
    """Whom the answer is for has hung up."""


class Connection(asyncio.BufferedProtocol):
    """Lives as long as its client stays."""

    __slots__ = (
        "_broken", "_fields", "_head", "_listener", "_loop", "_parser", "_queue", "_reading", "_request",
        "_target", "_task", "_writable", "busy_since", "max_body", "transport",
    )  # fmt: skip

    def __init__(self, listener: Listener) -> None:
        self.max_body = listener.max_body
        self.transport: asyncio.Transport | None = None
        self.busy_since = 0.0
        """When something last began or ended: an idle connection is not kept for ever."""
        self._listener = listener
        self._loop = listener.loop
        self._parser = httptools.HttpRequestParser(self)
        self._head = 0
        """Bytes of a head that has not come to its end."""
        self._target = b""
        self._fields: dict[str, str] = {}
        self._request: Request | None = None
        """The request that is being read."""
        self._queue: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._broken = ""
        """Why nothing more can be read from this client."""
        self._reading = True
        self._writable: asyncio.Future[None] | None = None
        """Where writers wait while the client is too slow."""

    # What asyncio says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.busy_since = self._loop.time()
        self._listener.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._listener.left(self)
        self._queue.clear()
        if self._request is not None:
            self._request.fail(BodyUnreadable())
            self._request = None
        self.resume_writing()
        if self._task is not None:
            self._task.cancel()
        del self._parser  # it holds on to us

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        waiting, self._writable = self._writable, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._listener.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._read(self._listener.buffer[:nbytes])

    def _read(self, data: memoryview | bytes) -> None:
        if self._broken:
            return
        if self._request is None:
            self._head += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._stay(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._refuse(_reason(error))
        if self._request is None and self._head > _LARGEST_HEAD and not self._broken:
            self._refuse(_TOO_LARGE)
        if self._queue and self._task is None:
            self._next()

    # What the parser says.

    def on_message_begin(self) -> None:
        self._target = b""
        self._fields = {}

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        add_field(self._fields, name, value)

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser.should_upgrade():
            return  # `_stay` gives the same head to a new parser
        self._head = 0
        if sum(map(len, self._fields.values())) > _LARGEST_HEAD:
            raise Refusal(_TOO_LARGE)
        request = self._request = Request(
            self,
            parser.get_method().decode("ascii"),
            self._target.decode("utf-8", "surrogateescape"),
            self._fields,
            keep_alive=parser.should_keep_alive(),
            chunked=parser.get_http_version() != "1.0",
        )
        self._queue.append(request)

    def on_body(self, data: bytes) -> None:
        if self._request is not None and not self._request.feed(data):
            self._pause()

    def on_message_complete(self) -> None:
        if self._request is None:
            return  # an upgrade
        self._request.finish()
        if self._task is not None:
            self._pause()  # the next one may wait where it is
        elif not self._queue and not self._request.keep_alive and self.transport is not None:
            self.transport.close()  # it was answered before it was read
        self._request = None

    # What requests and answers ask for.

    def send(self, data: bytes) -> bool:
        """To the client, at once or as soon as it reads. False: it reads slower than it is written to."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ClientGone
        transport.write(data)
        return self._writable is None

    @property
    def slow(self) -> bool:
        """Does the client read slower than it is written to?"""
        return self._writable is not None

    async def keep_pace(self) -> None:
        """Wait until the client has read most of what was sent."""
        if self._writable is not None:
            await asyncio.shield(self._writable)  # others may wait for the same
            if self.transport is None:
                raise ClientGone

    def go_on(self) -> None:
        """The client wants to know whether its body is welcome."""
        if self.transport is not None:
            self.transport.write(_CONTINUE)

    def resume(self) -> None:
        """Read on."""
        if not self._reading and self.transport is not None:
            self._reading = True
            self.transport.resume_reading()

    def _pause(self) -> None:
        if self._reading and self.transport is not None:
            self._reading = False
            self.transport.pause_reading()

    # What the listener asks for.

    def close_if_idle(self) -> None:
        if self._task is None and self.transport is not None:
            self.transport.close()

    # One after the other.

    def _next(self) -> None:
        self.busy_since = self._loop.time()
        self._task = self._loop.create_task(self._serve(self._queue.popleft()))
        self._listener.tasks.add(self._task)

    async def _serve(self, request: Request) -> None:
        try:
            answer = await self._listener.handler(request)
            self._finish(request, answer)
            await self.keep_pace()
        except ClientGone:
            pass
        except Exception:
            log.exception("a request failed")
            self._drop()
        finally:
            if self._task is not None:
                self._listener.tasks.discard(self._task)
                self._task = None
            self._over(request)

    def _finish(self, request: Request, answer: Answer) -> None:
        if self._listener.closing or (request.wants_continue and not request.complete):
            request.keep_alive = False
        if isinstance(answer, Stream):
            answer.end()
        else:
            self.send(answer.written(request))

    def _over(self, request: Request) -> None:
        """An answer is out, or will not be."""
        transport = self.transport
        if transport is None:
            return
        self.busy_since = self._loop.time()
        if not request.complete and not self._broken and not request.wants_continue:
            # The rest of a body that nobody wanted passes unread: to close on it could take the answer along.
            request.fail(BodyUnreadable())
            self.resume()
            return
        if not request.keep_alive or self._listener.closing:
            transport.close()
        elif self._queue:
            self._next()
        elif self._broken:
            self._refuse(self._broken)
        else:
            self.resume()

    def _refuse(self, why: str) -> None:
        """Nothing more of this client can be understood. Those who asked before it are answered first."""
        self._broken = why
        if self._request is not None:
            self._request.keep_alive = False
            self._request.fail(BodyUnreadable())
            if self._task is None and not self._queue and self.transport is not None:
                self.transport.close()  # it was answered before it was read, and its end cannot be found
            return
        if self._queue or self._task is not None or self.transport is None:
            return
        text = f"this is no HTTP request that can be answered: {why}\n"
        answer = Response(text.encode(), status=400, content_type="text/plain; charset=utf-8")
        self.transport.write(answer.written())
        # Who is still sending would lose the answer with the connection: what comes now passes unread.
        self.transport.write_eof()
        self.resume()
        self._loop.call_later(_PATIENCE, self.transport.close)

    def _stay(self, rest: memoryview | bytes) -> None:
        """Nobody is upgraded here: the same request again, without the wish."""
        method, fields = self._parser.get_method(), self._fields
        self._parser = httptools.HttpRequestParser(self)
        if method == b"CONNECT":
            self._refuse("nothing can be tunnelled through here")
            return
        unwanted = ("upgrade", "connection", "http2-settings")
        lines = [f"{name}: {value}\r\n" for name, value in fields.items() if name not in unwanted]
        line = b"%b %b HTTP/1.1\r\n" % (method, self._target)
        self._read(line + "".join(lines).encode("utf-8", "surrogateescape") + b"\r\n" + rest)

    def _drop(self) -> None:
        if self.transport is not None:
            self.transport.abort()


def _reason(error: httptools.HttpParserError) -> str:
    """The parser's own words, which repeat nothing of what came, or those of whoever it called."""
    cause = error.__context__
    if cause is None or isinstance(cause, Refusal):
        return str(cause or error)
    log.error("a request could not be taken", exc_info=cause)
    return "it cannot be taken"
