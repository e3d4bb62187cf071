"""Sending an answer over HTTP: held until it is worth sending, then kept alive, then ended well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from aiohttp import web

from ..protocols.base import WireProtocol


class StreamReply:
    """A streamed answer. Nothing is sent before `commit`, so until then everything can still be different."""

    def __init__(
        self, http: web.Request, client: WireProtocol, headers: Mapping[str, str], keepalive: float
    ) -> None:
        self._http = http
        self._client = client
        self._headers = headers
        self._interval = keepalive
        self._held: list[bytes] = []
        self._response: web.StreamResponse | None = None
        self._last_write = 0.0
        self._beat: asyncio.TimerHandle | None = None
        self._beats: set[asyncio.Task[None]] = set()

    @property
    def committed(self) -> bool:
        return self._response is not None

    async def write(self, data: bytes, *, meaningful: bool) -> None:
        """Send `data`, or hold it while nothing worth sending has come."""
        if self._response is not None:
            self._last_write = time.monotonic()
            await self._response.write(data)
        elif data:
            self._held.append(data)
            if meaningful:
                await self._commit()

    def discard(self) -> None:
        """Another upstream is tried: forget what the last one said."""
        self._held.clear()

    def upstream_is_alive(self) -> None:
        """The upstream accepted: from now on silence is filled, as far as the client's SDK stands it."""
        if self._beat is None and self._client.keepalive:
            self._schedule()

    async def end(self) -> web.StreamResponse:
        if self._response is None:
            await self._commit()
        assert self._response is not None
        self.stop()
        await self._response.write_eof()
        return self._response

    def stop(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    async def _commit(self) -> None:
        response = web.StreamResponse(headers=dict(self._headers))
        response.content_type = "text/event-stream"
        response.headers["cache-control"] = "no-cache"
        response.headers["x-accel-buffering"] = "no"
        await response.prepare(self._http)
        self._response = response
        held = b"".join(self._held)
        self._held.clear()
        self._last_write = time.monotonic()
        if held:
            await response.write(held)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._beat = loop.call_later(self._interval, self._on_beat)

    def _on_beat(self) -> None:
        self._schedule()
        if time.monotonic() - self._last_write >= self._interval:
            task = asyncio.get_running_loop().create_task(self._keep_alive())
            self._beats.add(task)
            task.add_done_callback(self._beats.discard)

    async def _keep_alive(self) -> None:
        try:
            if self._response is None:
                if not self._held:
                    return  # a ping may not come before the answer's own beginning
                await self._commit()
            assert self._response is not None
            self._last_write = time.monotonic()
            await self._response.write(self._client.keepalive)
        except ConnectionError:
            self.stop()  # the client is gone; whoever writes next will see it
