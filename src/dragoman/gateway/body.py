"""Reading what a client posted."""

from __future__ import annotations

from ..errors import BadRequest
from ..http.server import Body, BodyUnreadable, Request


async def read_body(http: Request) -> Body:
    """The whole body. One over `server.max_body` raises `BodyTooLarge`."""
    try:
        return await http.read()
    except BodyUnreadable:
        raise unreadable() from None


def unreadable() -> BadRequest:
    return BadRequest(
        "the body cannot be read: it is not encoded as Content-Encoding or Transfer-Encoding says"
    )
