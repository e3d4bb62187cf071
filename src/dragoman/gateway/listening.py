"""Listening on a port for requests as clients really send them."""

from __future__ import annotations

import asyncio

from aiohttp import web

from .heads import Heads


class Site(web.BaseSite):
    """aiohttp's own, but for the heads of requests (`heads.py`)."""

    def __init__(
        self, runner: web.BaseRunner, host: str, port: int, *, reuse_port: bool | None = None
    ) -> None:
        super().__init__(runner)
        self._host = host
        self._port = port
        self._reuse_port = reuse_port

    @property
    def name(self) -> str:
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        await super().start()
        handler = self._runner.server
        assert handler is not None  # or there would be no site
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(handler()),
            self._host,
            self._port,
            backlog=self._backlog,
            reuse_port=self._reuse_port,
        )


class _Connection(asyncio.Protocol):
    """Stands before a handler of aiohttp's and passes everything on."""

    def __init__(self, handler: asyncio.Protocol) -> None:
        self._handler = handler
        self._heads = Heads()
        self.connection_made = handler.connection_made
        self.connection_lost = handler.connection_lost
        self.eof_received = handler.eof_received
        self.pause_writing = handler.pause_writing
        self.resume_writing = handler.resume_writing

    def data_received(self, data: bytes) -> None:
        self._handler.data_received(self._heads.feed(data))
