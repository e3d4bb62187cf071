"""WebSockets by aiohttp."""

from __future__ import annotations

from aiohttp import WSMsgType, web

from .connection import Connection
from .request import ClientGone

_HEARTBEAT = 30.0
"""Seconds between pings. A client that does not answer one within half of that is gone."""
_GOODBYE = 5.0
"""How long a client may take to answer a close."""


class Socket:
    """One accepted WebSocket."""

    __slots__ = ("_connection", "_response")

    def __init__(self, response: web.WebSocketResponse, connection: Connection) -> None:
        self._response = response
        self._connection = connection

    @property
    def slow(self) -> bool:
        return self._connection.stalled_since > 0

    async def receive(self) -> str | bytes | None:
        message = await self._response.receive()
        if message.type is WSMsgType.TEXT or message.type is WSMsgType.BINARY:
            return message.data
        return None

    async def send(self, text: str) -> None:
        try:
            await self._response.send_str(text)
        except ConnectionError:
            raise ClientGone from None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        await self._response.close(code=code, message=reason.encode()[:120])


def new_response(headers: dict[str, str], largest: int) -> web.WebSocketResponse:
    """What accepts an upgrade. Messages may have `largest` bytes; compression is not offered."""
    response = web.WebSocketResponse(
        heartbeat=_HEARTBEAT, timeout=_GOODBYE, max_msg_size=largest, compress=False
    )
    response.headers.update(headers)
    return response
