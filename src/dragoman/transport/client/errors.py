"""How a request can fail: told apart by what somebody would do about it.

The text of each error continues a sentence that begins with the name of the place: "openai " and then
"has a TLS certificate that has expired; …". It never holds a key or a password.
"""

from __future__ import annotations


class HttpError(Exception):
    """There is no answer, or not all of it."""


class Unsendable(HttpError, ValueError):
    """The request cannot be written. The text with the fault is never shown: it may be a key."""


class CannotConnect(HttpError):
    """Nobody takes a connection at `host` and `port`."""

    def __init__(self, host: str, port: int, why: str) -> None:
        self.host = host
        self.port = port
        super().__init__(why)


class UnknownHost(CannotConnect):
    """There is no such name."""


class NoDescriptor(HttpError):
    """This process may open no more connections."""


class BadTls(HttpError):
    """There is no TLS connection: a certificate is not accepted, or the other side speaks no TLS."""


class ProxyRefused(HttpError):
    """The proxy cannot be reached, or does not connect us."""


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
    """The answer is not valid HTTP, or its head is too large, or its body is not what its coding says."""


class UnknownCoding(Malformed):
    """The body has a content coding that cannot be undone."""
