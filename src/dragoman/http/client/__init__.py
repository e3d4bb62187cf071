"""Asking over HTTP/1.1: one `Client` for all origins, one `Response` for each request."""

from __future__ import annotations

from .bodies import Body
from .errors import (
    BadTls,
    Broken,
    CannotConnect,
    ConnectTimeout,
    CutOff,
    Disconnected,
    HttpError,
    Malformed,
    ProxyRefused,
    Silent,
    UnknownHost,
    Unsendable,
)
from .pool import Client
from .response import Response

__all__ = [
    "BadTls",
    "Body",
    "Broken",
    "CannotConnect",
    "Client",
    "ConnectTimeout",
    "CutOff",
    "Disconnected",
    "HttpError",
    "Malformed",
    "ProxyRefused",
    "Response",
    "Silent",
    "UnknownHost",
    "Unsendable",
]
