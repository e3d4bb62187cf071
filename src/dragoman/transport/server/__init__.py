"""Serving HTTP and WebSocket. The rest of Dragoman sees only the names below, and none of the library's.

The library is aiohttp's low-level server. `listener.py`, `connection.py`, `incoming.py` and `sockets.py` know
it. A test, or a message of a WebSocket, makes an `HttpRequest` with a `Sink` of its own.
"""

from .answers import NO_HEADERS, HttpAnswer, HttpResponse, Stream, Upgrade, json_response
from .limits import Limits
from .listener import Listener
from .refusals import BodyTooLarge, BodyTooSlow, BodyUnreadable, MethodNotAllowed, NotFound, Refusal
from .request import ClientGone, HttpRequest, Sink, WebSocket
from .routes import Handler, Route, Routes

__all__ = [
    "NO_HEADERS",
    "BodyTooLarge",
    "BodyTooSlow",
    "BodyUnreadable",
    "ClientGone",
    "Handler",
    "HttpAnswer",
    "HttpRequest",
    "HttpResponse",
    "Limits",
    "Listener",
    "MethodNotAllowed",
    "NotFound",
    "Refusal",
    "Route",
    "Routes",
    "Sink",
    "Stream",
    "Upgrade",
    "WebSocket",
    "json_response",
]
