"""Requests over a WebSocket: each message is one request, and goes the way that a posted one goes.

The messages of one lane are answered one after another, those of several lanes at the same time. An error
is a message too, and the connection stays open. The client's messages are read all the time, also while it
is answered: only so are its pings answered, and only so is it noticed when it leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus

from ..model.events import Failed, FailureKind
from ..protocols.base import ClientProtocol
from ..protocols.facts import SocketFormat, SocketMessage
from ..store.memory import Memory
from ..transport.server import Answer, ClientGone, Handler, Request, Response, Route, Upgrade, WebSocket
from ..wire.frames import Frame
from ..wire.sse import SSEReader
from .errors import error_response
from .ids import new_id
from .state import State

log = logging.getLogger("dragoman.gateway")

MOST_LANES = 16
"""Lanes of one connection that are answered at the same time."""
MOST_WAITING = 64
"""Requests of one connection that wait for the one before them."""
_GOING_AWAY, _INTERNAL_ERROR = 1001, 1011
_STOPPED = "the gateway is being stopped; connect again"
_BINARY = "binary messages are not read here; send JSON as a text message"
_BROKEN = "the answer broke off through a fault of Dragoman's; its log says more"


class SocketRequest(Request):
    """A request that came as a message."""

    __slots__ = ("generate", "memory")

    def __init__(self, opened: Request, heard: SocketMessage, sink: EventSink, memory: Memory) -> None:
        async def read() -> bytes:
            return heard.body

        headers = {**_lasting(opened.headers), **heard.headers}
        super().__init__("POST", opened.target, headers, read, sink, client=opened.client)
        self.generate = heard.generate
        """False: no model is asked."""
        self.memory = memory
        """What is kept for the connection."""


def _lasting(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a handshake that are about every request. `upgrade` stays: it tells how they came."""
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
        """Was the answer broken off?"""

    @property
    def slow(self) -> bool:
        return self._socket.slow

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """There is no head to send."""

    async def write(self, data: bytes) -> None:
        # All frames are taken before the first is sent: a keepalive may be written while that waits.
        await self._send(list(self._frames.feed(data)))

    async def end(self, last: bytes = b"") -> None:
        await self._send([*self._frames.feed(last), *self._frames.close()])

    def abort(self) -> None:
        self.broken = True

    async def _send(self, frames: list[Frame]) -> None:
        for frame in frames:
            said = self._messages.event(frame, self._lane)
            if said:
                await self._socket.send(said.decode("utf-8", "replace"))


class Conversation:
    """One client's connection, from its first message to its last."""

    def __init__(
        self, state: State, client: ClientProtocol, answer: Handler, opened: Request, socket: WebSocket
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
        """The lanes on which something is answered, and what waits there."""
        self._waiting = 0
        self._bytes = 0
        """Size of the requests that wait."""
        self._answering: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Until the client leaves, or the gateway is stopped and what is under way has been answered."""
        state = self._state
        state.onlookers.add(self._stopping)
        if state.closing:
            self._stopping.set()
        reading = asyncio.create_task(self._read())
        ending = asyncio.create_task(self._last_answer())
        try:
            await asyncio.wait((reading, ending), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                await _ended(reading)
                await self._socket.close(_GOING_AWAY, _STOPPED)
        finally:
            state.onlookers.discard(self._stopping)
            await _ended(reading, ending, *self._answering)
            self._memory.close()
        if not reading.cancelled():
            reading.result()

    async def _read(self) -> None:
        with contextlib.suppress(ClientGone):
            while (message := await self._socket.receive()) is not None:
                if isinstance(message, bytes):
                    await self._refuse(Failed(FailureKind.INVALID_REQUEST, _BINARY, 400))
                    continue
                heard = self._messages.read_message(message.encode())
                if heard.reply:
                    await self._say(heard.reply)
                elif refused := self._refusal(heard):
                    await self._refuse(refused, heard.lane)
                else:
                    self._take(heard)

    def _refusal(self, heard: SocketMessage) -> Failed | None:
        """Why a request cannot wait for its turn."""
        if self._stopping.is_set():
            return _going_away()
        most = self._state.config.server.max_body
        if heard.lane in self._lanes:
            if self._waiting >= MOST_WAITING or self._bytes + len(heard.body) > most:
                return _too_many("requests wait on this connection; wait for their answers")
        elif len(self._lanes) >= MOST_LANES:
            return _too_many(f"lanes are in use ({MOST_LANES}); wait for an answer, or connect once more")
        return None

    def _take(self, heard: SocketMessage) -> None:
        lane = self._lanes.get(heard.lane)
        if lane is None:
            lane = self._lanes[heard.lane] = deque()
            task = asyncio.create_task(self._work(heard.lane, lane))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        lane.append(heard)
        self._waiting += 1
        self._bytes += len(heard.body)

    async def _work(self, name: str | None, lane: deque[SocketMessage]) -> None:
        """Answer what comes on one lane, as long as something waits."""
        try:
            while lane:
                heard = lane.popleft()
                self._waiting -= 1
                self._bytes -= len(heard.body)
                if self._stopping.is_set():
                    await self._refuse(_going_away(), name)
                else:
                    await self._serve(heard)
        except ClientGone:
            pass  # the reader hears of it as well
        except Exception:
            log.exception("a WebSocket ends through a fault of Dragoman's")
            await self._socket.close(_INTERNAL_ERROR, _BROKEN)
        finally:
            del self._lanes[name]

    async def _serve(self, heard: SocketMessage) -> None:
        """One request, by the handler that answers posted ones."""
        sink = EventSink(self._socket, self._messages, heard.lane)
        request = SocketRequest(self._opened, heard, sink, self._memory)
        answer = await self._answer(request)
        if isinstance(answer, Response):
            if not answer.body:
                raise ClientGone  # every error has a body, but for the one that nobody reads
            await self._tell(answer, heard.lane)
        elif sink.broken:
            await self._refuse(Failed(FailureKind.SERVER, _BROKEN, 500), heard.lane)

    async def _refuse(self, failure: Failed, lane: str | None = None) -> None:
        await self._tell(error_response(self._client, failure, new_id()), lane)

    async def _tell(self, refused: Response, lane: str | None) -> None:
        await self._say(self._messages.error(refused.body, refused.status, refused.headers, lane))

    async def _say(self, message: bytes) -> None:
        await self._socket.send(message.decode())

    async def _last_answer(self) -> None:
        """Waits until the gateway is stopped and nothing is answered any more."""
        await self._stopping.wait()
        if self._answering:
            await asyncio.wait(self._answering)


async def _ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _going_away() -> Failed:
    return Failed(FailureKind.OVERLOADED, _STOPPED, HTTPStatus.SERVICE_UNAVAILABLE, "going_away")


def _too_many(what: str) -> Failed:
    return Failed(FailureKind.RATE_LIMIT, f"too many {what}", 429, "too_many_requests")


def routes(state: State, client: ClientProtocol, answer: Handler) -> list[Route]:
    """Where clients of a protocol open a WebSocket; `answer` is asked for each of their messages."""
    at = client.endpoints

    async def open_socket(request: Request) -> Answer:
        if not request.wants_websocket:
            return _no_handshake(client, request)
        return Upgrade(lambda socket: Conversation(state, client, answer, request, socket).run())

    return [Route("GET", path, open_socket) for path in at.paths(*at.answers)]


def _no_handshake(client: ClientProtocol, request: Request) -> Response:
    """426 is what Codex wants to hear: it posts from then on. Any other status makes it try five times."""
    message = (
        f"GET {request.path} opens a WebSocket: send its handshake (Upgrade, Sec-WebSocket-Key, "
        "Sec-WebSocket-Version: 13), or POST the request"
    )
    headers = {"upgrade": "websocket", "sec-websocket-version": "13"}
    failure = Failed(FailureKind.INVALID_REQUEST, message, HTTPStatus.UPGRADE_REQUIRED)
    return error_response(client, failure, new_id(), headers)
