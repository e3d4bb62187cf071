"""Serving HTTP/1.1: connections, requests, answers and routes, and nothing that knows what is served."""

from .connection import ClientGone
from .listener import Listener
from .refusals import BodyTooLarge, BodyUnreadable, MethodNotAllowed, NotFound, Refusal
from .request import Request
from .responses import NO_HEADERS, Answer, Response, Stream, json_response
from .routes import Handler, Route, Routes

__all__ = [
    "NO_HEADERS",
    "Answer",
    "BodyTooLarge",
    "BodyUnreadable",
    "ClientGone",
    "Handler",
    "Listener",
    "MethodNotAllowed",
    "NotFound",
    "Refusal",
    "Request",
    "Response",
    "Route",
    "Routes",
    "Stream",
    "json_response",
]
