"""HTTP and WebSocket server. Other packages use only the names below, never aiohttp itself.

The library is aiohttp's low-level server. Only `listener.py`, `connection.py`, `incoming.py` and `sockets.py`
import it. Tests and WebSocket messages create an `HttpRequest` with their own `Sink`.
"""

from .answers import NO_HEADERS, HttpAnswer, HttpResponse, Stream, Upgrade, json_response
from .limits import ServerLimits
from .listener import Listener
from .refusals import BodyTooLarge, BodyTooSlow, BodyUnreadable, MethodNotAllowed, NotFound, RefusedRequest
from .request import ClientGone, HttpRequest, Sink, WebSocket
from .routes import Handler, Route, Routes, compiled

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
    "Listener",
    "MethodNotAllowed",
    "NotFound",
    "RefusedRequest",
    "Route",
    "Routes",
    "ServerLimits",
    "Sink",
    "Stream",
    "Upgrade",
    "WebSocket",
    "compiled",
    "json_response",
]
