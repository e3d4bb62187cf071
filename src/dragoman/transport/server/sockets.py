"""WebSocket connections, with aiohttp."""

from __future__ import annotations

from aiohttp import WSMsgType, web

from .connection import Connection
from .request import ClientGone

_HEARTBEAT = 30.0
"""Seconds between pings. aiohttp closes the connection if no pong comes within half of that time."""
_CLOSE_TIMEOUT = 5.0
"""Seconds in which a client may answer a close frame."""


class AiohttpSocket:
    """An accepted WebSocket. Implements `WebSocket`."""

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


def new_response(headers: dict[str, str], max_message: int) -> web.WebSocketResponse:
    """aiohttp's response to a handshake. Compression stays off: it costs memory for each connection."""
    response = web.WebSocketResponse(
        heartbeat=_HEARTBEAT, timeout=_CLOSE_TIMEOUT, max_msg_size=max_message, compress=False
    )
    response.headers.update(headers)
    return response
