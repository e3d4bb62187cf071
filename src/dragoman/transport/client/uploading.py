"""Feeds the body of one request to libcurl while it arrives.

libcurl asks for the next bytes when it can send some. If none are here, the transfer pauses, and goes on
with the next piece. The source waits while libcurl still has a piece to send, so that memory stays bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .contract import Upload
from .options import curl

_PAUSE: int = curl.READFUNC_PAUSE


class Uploading:
    """One body on its way from its source to libcurl."""

    def __init__(self, handle: Any, body: Upload, moved: Callable[[], None]) -> None:
        """`moved` is called whenever libcurl takes bytes: the request is not stuck."""
        self.error: BaseException | None = None
        """Why the source failed."""
        self._handle = handle
        self._body = body
        self._moved = moved
        self._piece = b""
        self._paused = False
        self._over = False
        self._empty = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        handle.setopt(curl.READFUNCTION, self._next)

    def start(self, failed: Callable[[], None]) -> None:
        """Read the source in the background. `failed` is called if it raises an exception."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.error = error
                failed()

        self._task = asyncio.get_running_loop().create_task(self._pump())
        self._task.add_done_callback(ended)

    def stop(self) -> None:
        """The transfer is over: libcurl takes no more bytes."""
        self._handle = None
        if self._task is not None:
            self._task.cancel()

    def _next(self, size: int) -> bytes | int:
        """Called by libcurl, which sends what this returns."""
        if not self._piece:
            if self._over:
                return b""
            self._paused = True
            return _PAUSE
        data, self._piece = self._piece[:size], self._piece[size:]
        if not self._piece:
            self._empty.set()
        self._moved()
        return data

    async def _pump(self) -> None:
        async for piece in self._body.chunks:
            if not piece:
                continue
            self._empty.clear()
            self._piece = piece
            self._go_on()
            await self._empty.wait()
        self._over = True
        self._go_on()

    def _go_on(self) -> None:
        if self._paused and self._handle is not None:
            self._paused = False
            self._handle.pause(curl.PAUSE_CONT)
