"""How a request can fail: told apart by what somebody would do about it."""

from __future__ import annotations

import os


class HttpError(Exception):
    """There is no answer, or not all of it."""


class Unsendable(HttpError, ValueError):
    """The request cannot be written. What with is never shown: it may be a key."""


class CannotConnect(HttpError):
    """Nobody takes a connection at `host` and `port`."""

    def __init__(self, host: str, port: int, error: OSError | None = None) -> None:
        self.host = host
        self.port = port
        super().__init__(_why(error))


class UnknownHost(CannotConnect):
    """No such name."""


class BadTls(HttpError):
    """The other side has no certificate that holds, or speaks no TLS."""


class ProxyRefused(HttpError):
    """The proxy lets nobody through."""


class ConnectTimeout(HttpError, TimeoutError):
    """There was no connection in time."""


class Silent(HttpError, TimeoutError):
    """Connected, and for too long not a byte came."""


class Broken(HttpError):
    """The connection is of no more use."""


class Disconnected(Broken):
    """It was closed before an answer began."""


class CutOff(Broken):
    """It was closed in the middle of an answer."""


class Malformed(Broken):
    """What came is no HTTP, or more of a head than anybody needs."""


def _why(error: OSError | None) -> str:
    if error is None:
        return "no such host"
    return os.strerror(error.errno).lower() if error.errno else str(error) or type(error).__name__
