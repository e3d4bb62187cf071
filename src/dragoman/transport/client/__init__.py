"""Asking over HTTP: `open_client()` gives a `Client`, and each request a `Response`. See `contract`."""

from __future__ import annotations

from .contract import DEFAULT_NETWORK, Client, Network, OpenClient, Response
from .curl import open_client
from .errors import (
    BadTls,
    Broken,
    CannotConnect,
    ConnectTimeout,
    CutOff,
    Disconnected,
    HttpError,
    Malformed,
    NoDescriptor,
    ProxyRefused,
    Silent,
    UnknownCoding,
    UnknownHost,
    Unsendable,
)

__all__ = [
    "DEFAULT_NETWORK",
    "BadTls",
    "Broken",
    "CannotConnect",
    "Client",
    "ConnectTimeout",
    "CutOff",
    "Disconnected",
    "HttpError",
    "Malformed",
    "Network",
    "NoDescriptor",
    "OpenClient",
    "ProxyRefused",
    "Response",
    "Silent",
    "UnknownCoding",
    "UnknownHost",
    "Unsendable",
    "open_client",
]
