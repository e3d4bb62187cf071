"""Requests over a WebSocket. Each message is one request, and is handled like a posted one.

Requests of one lane are answered one after another, requests of different lanes at the same time. An error is
a message too, and the connection stays open. The gateway reads messages also while it answers: only then does
aiohttp answer pings and notice that the client has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus

from ...model.events import Failed, FailureKind
from ...protocols.base import ClientProtocol
from ...protocols.facts import SocketFormat, SocketMessage
from ...store.memory import Memory
from ...transport.server import (
    ClientGone,
    Handler,
    HttpAnswer,
    HttpRequest,
    HttpResponse,
    Route,
    Upgrade,
    WebSocket,
)
from ...wire.frames import Frame
from ...wire.sse import SSEReader
from ..errors import error_response
from ..ids import new_id
from ..state import State

log = logging.getLogger("dragoman.gateway")

# Lanes are the `stream_id`s of OpenAI's WebSocket protocol. These limits bound the memory of one client.
MAX_LANES = 16
"""Lanes of one connection."""
MAX_WAITING = 64
"""Requests of one connection that wait for their turn."""
_GOING_AWAY, _INTERNAL_ERROR = 1001, 1011
_STOPPED = "the gateway is shutting down; connect again"
_BINARY = "binary messages are not supported; send JSON as a text message"
_BROKEN = "the answer broke off because of a bug in Dragoman; its log has the details"


class SocketRequest(HttpRequest):
    """A request from a message of a WebSocket."""

    __slots__ = ("generate", "memory", "previous")

    def __init__(self, opened: HttpRequest, message: SocketMessage, sink: EventSink, memory: Memory) -> None:
        async def read() -> bytes:
            return message.body

        headers = {**_request_headers(opened.headers), **message.headers}
        super().__init__("POST", opened.target, headers, read, sink, client=opened.client)
        self.generate = message.generate
        """False: no model answers (see `prewarm`)."""
        self.previous = message.previous
        """The response that this request continues."""
        self.memory = memory
        """Responses of this connection that are not stored."""


def _request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of the handshake that apply to each request.

    `upgrade` stays: it shows in recordings that the request came over a WebSocket.
    """
    return {
        name: value
        for name, value in headers.items()
        if name != "connection" and not name.startswith("sec-websocket-")
    }


class EventSink:
    """Sends each event of a streamed answer as one message."""

    __slots__ = ("_frames", "_lane", "_messages", "_socket", "broken")

    def __init__(self, socket: WebSocket, messages: SocketFormat, lane: str | None) -> None:
        self._socket = socket
        self._messages = messages
        self._lane = lane
        self._frames = SSEReader()
        self.broken = False
        """Did the handler abort the answer?"""

    @property
    def slow(self) -> bool:
        return self._socket.slow

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """A WebSocket answer has no head."""

    async def write(self, data: bytes) -> None:
        # Read all frames before the first is sent: a keepalive may call `write` while `send` waits.
        await self._send(list(self._frames.feed(data)))

    async def end(self, last: bytes = b"") -> None:
        await self._send([*self._frames.feed(last), *self._frames.close()])

    def abort(self) -> None:
        self.broken = True

    async def _send(self, frames: list[Frame]) -> None:
        for frame in frames:
            message = self._messages.event(frame, self._lane)
            if message:
                await self._socket.send(message.decode("utf-8", "replace"))


class SocketConnection:
    """One open WebSocket."""

    def __init__(
        self, state: State, client: ClientProtocol, answer: Handler, opened: HttpRequest, socket: WebSocket
    ) -> None:
        assert client.socket_format is not None
        self._state = state
        self._client = client
        self._messages = client.socket_format
        self._answer = answer
        self._opened = opened
        self._socket = socket
        self._memory = state.memories.open()
        self._lanes: dict[str | None, deque[SocketMessage]] = {}
        """The active lanes, and the requests that wait on each."""
        self._waiting = 0
        self._waiting_bytes = 0
        self._answering: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Run until the client leaves, or the gateway stops and has answered the running requests."""
        with self._state.lifecycle.wakes(self._stopping):
            reading = asyncio.create_task(self._read())
            ending = asyncio.create_task(self._last_answer())
            try:
                await asyncio.wait((reading, ending), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    await _cancel(reading)
                    await self._socket.close(_GOING_AWAY, _STOPPED)
            finally:
                await _cancel(reading, ending, *self._answering)
                self._memory.close()
        if not reading.cancelled():
            reading.result()

    async def _read(self) -> None:
        with contextlib.suppress(ClientGone):
            while (data := await self._socket.receive()) is not None:
                if isinstance(data, bytes):
                    await self._refuse(Failed(FailureKind.INVALID_REQUEST, _BINARY, 400))
                    continue
                message = self._messages.read_message(data.encode())
                if message.reply:
                    await self._send(message.reply)
                elif refused := self._refusal(message):
                    await self._refuse(refused, message.lane)
                else:
                    self._enqueue(message)

    def _refusal(self, message: SocketMessage) -> Failed | None:
        """The failure for a request that cannot wait for its turn, else None."""
        if self._stopping.is_set():
            return _going_away()
        max_bytes = self._state.config.server.max_body
        if message.lane in self._lanes:
            if self._waiting >= MAX_WAITING or self._waiting_bytes + len(message.body) > max_bytes:
                return _too_many("requests are waiting on this connection; wait for their answers")
        elif len(self._lanes) >= MAX_LANES:
            return _too_many(f"lanes are in use ({MAX_LANES}); wait for an answer, or connect once more")
        return None

    def _enqueue(self, message: SocketMessage) -> None:
        lane = self._lanes.get(message.lane)
        if lane is None:
            lane = self._lanes[message.lane] = deque()
            task = asyncio.create_task(self._answer_lane(message.lane, lane))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        lane.append(message)
        self._waiting += 1
        self._waiting_bytes += len(message.body)

    async def _answer_lane(self, name: str | None, lane: deque[SocketMessage]) -> None:
        """Answer the requests of one lane until none waits."""
        try:
            while lane:
                message = lane.popleft()
                self._waiting -= 1
                self._waiting_bytes -= len(message.body)
                if self._stopping.is_set():
                    await self._refuse(_going_away(), name)
                else:
                    await self._serve(message)
        except ClientGone:
            pass  # `_read` notices it too, and ends the connection
        except Exception:  # any bug: a client that still waits would wait for ever
            log.exception("a WebSocket is closed because of a bug in Dragoman")
            await self._socket.close(_INTERNAL_ERROR, _BROKEN)
        finally:
            del self._lanes[name]

    async def _serve(self, message: SocketMessage) -> None:
        """Answer one request with the handler of posted requests."""
        sink = EventSink(self._socket, self._messages, message.lane)
        request = SocketRequest(self._opened, message, sink, self._memory)
        answer = await self._answer(request)
        if isinstance(answer, HttpResponse):
            if not answer.body:
                raise ClientGone  # the handler answers a client that left with an empty 499
            await self._send_error(answer, message.lane)
        elif sink.broken:
            await self._refuse(Failed(FailureKind.SERVER, _BROKEN, 500), message.lane)

    async def _refuse(self, failure: Failed, lane: str | None = None) -> None:
        await self._send_error(error_response(self._client, failure, new_id()), lane)

    async def _send_error(self, response: HttpResponse, lane: str | None) -> None:
        await self._send(self._messages.error(response.body, response.status, response.headers, lane))

    async def _send(self, message: bytes) -> None:
        await self._socket.send(message.decode())

    async def _last_answer(self) -> None:
        """Wait until the gateway stops and no request is being answered."""
        await self._stopping.wait()
        if self._answering:
            await asyncio.wait(self._answering)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _going_away() -> Failed:
    return Failed(FailureKind.OVERLOADED, _STOPPED, HTTPStatus.SERVICE_UNAVAILABLE, "going_away")


def _too_many(problem: str) -> Failed:
    return Failed(FailureKind.RATE_LIMIT, f"too many {problem}", 429, "too_many_requests")


def routes(state: State, client: ClientProtocol, answer: Handler) -> list[Route]:
    """The routes at which clients of a protocol open a WebSocket. `answer` handles each message."""
    at = client.endpoints

    async def open_socket(request: HttpRequest) -> HttpAnswer:
        if not request.wants_websocket:
            return _no_handshake(client, request)
        return Upgrade(lambda socket: SocketConnection(state, client, answer, request, socket).run())

    return [Route("GET", path, open_socket) for path in at.paths(*at.answers)]


def _no_handshake(client: ClientProtocol, request: HttpRequest) -> HttpResponse:
    """Codex falls back to POST at once after a 426. After any other status it tries five times."""
    message = (
        f"GET {request.path} opens a WebSocket: send its handshake (Upgrade, Sec-WebSocket-Key, "
        "Sec-WebSocket-Version: 13), or POST the request"
    )
    headers = {"upgrade": "websocket", "sec-websocket-version": "13"}
    failure = Failed(FailureKind.INVALID_REQUEST, message, HTTPStatus.UPGRADE_REQUIRED)
    return error_response(client, failure, new_id(), headers)
