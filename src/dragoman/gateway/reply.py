"""Sending an answer over HTTP: held until it is worth sending, then kept alive, then ended well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from aiohttp import web

from ..protocols.base import ClientProtocol
from ..recording.replay import MOST_HELD
from ..tap import Track
from ..wire.arrays import ArrayWriter
from .manners import Manner


class ClientGone(Exception):
    """Whom the answer was for has hung up."""


def wants_array(http: web.Request, client: ClientProtocol) -> bool:
    """Gemini's clients get server-sent events if they ask for them, and else what Google gives: an array."""
    asked = http.query.get("alt", http.query.get("$alt", ""))
    if client.name != "gemini" or asked == "sse":
        return False
    return "text/event-stream" not in http.headers.get("accept", "")


class StreamReply:
    """A streamed answer, given by whichever target gives one.

    Until it is committed nothing of an answer is sent, so all can still be different. A client that waits
    long is told to go on waiting, which opens the reply: from then on another target may still answer, but a
    failure can no longer be told by an HTTP status.
    """

    def __init__(self, http: web.Request, client: ClientProtocol, manner: Manner, track: Track) -> None:
        self._http = http
        self._headers: Mapping[str, str] = {}
        self._array = ArrayWriter() if wants_array(http, client) else None
        self._keepalive = manner.keepalive
        self._patience = manner.patience
        self._interval = manner.interval
        self._track = track
        self._held = b""
        self._response: web.StreamResponse | None = None
        self._sending = asyncio.Lock()
        """Two may want to begin the answer at the same time: who has something to say, and the keepalive."""
        self._last_write = 0.0
        self._stopped = False
        self._beat: asyncio.TimerHandle | None = None
        self._beats: set[asyncio.Task[None]] = set()
        self.committed = False
        """Has the client been given any bytes of an answer?"""

    @property
    def array(self) -> bool:
        """Is it one JSON array?"""
        return self._array is not None

    @property
    def opened(self) -> bool:
        """Is the status out?"""
        return self._response is not None

    def begin(self, headers: Mapping[str, str]) -> None:
        """A try begins, with these headers; nothing is left of the one before."""
        self._headers = headers
        self._held = b""

    async def write(self, data: bytes, *, meaningful: bool) -> None:
        """Send `data`, or hold it while nothing worth sending has come."""
        if not data:
            return
        async with self._sending:
            if not self.committed:
                self._held += data
                if not meaningful and len(self._held) <= MOST_HELD:
                    return
                data, self._held = self._held, b""
            await self._commit(data)

    def keep_alive(self) -> None:
        """From now on silence is filled, as far as the client's SDK stands it."""
        if self._keepalive and self._interval > 0:
            self._last_write = time.monotonic()
            self._schedule(self._interval)

    async def end(self, last: bytes = b"") -> web.StreamResponse:
        """The answer is over; `last` is what is still to be said."""
        self.stop()
        async with self._sending:
            last, self._held = self._held + last, b""
            await self._commit(last)
            assert self._response is not None
            try:
                last = self._array.close() if self._array else b""
                if last:
                    self._track.went(last)
                await self._response.write_eof(last)
            except ConnectionError:
                raise ClientGone from None
            return self._response

    async def unopened(self) -> bool:
        """No more keepalives, and none was sent: the answer may still be quite another one."""
        self.stop()
        async with self._sending:
            return self._response is None

    def stop(self) -> None:
        """No more keepalives: the answer is over, or is not given after all."""
        self._stopped = True
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    def abort(self) -> web.StreamResponse:
        """Nothing true can be said any more: break off, so that nobody takes it for a whole answer."""
        self.stop()
        assert self._response is not None
        if self._http.transport is not None:
            self._http.transport.abort()
        return self._response

    async def _commit(self, data: bytes) -> None:
        self.committed = True
        await self._open()
        if data:
            await self._put(self._array.feed(data) if self._array else data)

    async def _open(self) -> None:
        if self._response is not None:
            return
        response = web.StreamResponse(headers=dict(self._headers))
        response.content_type = "application/json" if self._array else "text/event-stream"
        response.headers["cache-control"] = "no-cache"
        response.headers["x-accel-buffering"] = "no"
        try:
            await response.prepare(self._http)
        except ConnectionError:
            raise ClientGone from None
        self._response = response

    async def _put(self, data: bytes, *, alive: bool = False) -> None:
        assert self._response is not None
        self._track.went(data, alive=alive)
        try:
            await self._response.write(data)
        except ConnectionError:
            raise ClientGone from None
        self._last_write = time.monotonic()

    def _schedule(self, seconds: float) -> None:
        self._beat = asyncio.get_running_loop().call_later(seconds, self._on_beat)

    def _on_beat(self) -> None:
        left = self._last_write + self._interval - time.monotonic()
        if left > 0:
            self._schedule(left)
            return
        self._schedule(self._interval)
        if not self._sending.locked():  # a client that does not even take the answer needs no keepalive
            task = asyncio.get_running_loop().create_task(self._keep_alive())
            self._beats.add(task)
            task.add_done_callback(self._beats.discard)

    async def _keep_alive(self) -> None:
        try:
            async with self._sending:
                if self._stopped:
                    return
                await self._open()
                await self._put(self._keepalive if self.committed else self._patience, alive=True)
        except ClientGone:
            self.stop()  # whoever writes next will see it
