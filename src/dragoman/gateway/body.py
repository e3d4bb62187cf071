"""Reading what a client posted."""

from __future__ import annotations

from aiohttp import web

from ..errors import BadRequest


async def read_body(http: web.Request) -> bytes:
    """The whole body. One over `server.max_body` raises aiohttp's own error."""
    try:
        return await http.read()
    except web.RequestPayloadError:
        message = "the body cannot be read: it is not encoded as Content-Encoding or Transfer-Encoding says"
        raise BadRequest(message) from None
