"""The HTTP client: `open_client()` returns a `Client`, and each request a `Response`. See `contract.py`."""

from __future__ import annotations

from .contract import DEFAULT_NETWORK, Client, Network, OpenClient, Response, Upload
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
    "Upload",
    "open_client",
]
