"""The errors of requests. There is one class for each different remedy.

The text of an error continues a sentence that begins with the name of the upstream: "openai " and then "has a
TLS certificate that has expired; …". It never contains a key or a password.
"""

from __future__ import annotations


class HttpError(Exception):
    """The request got no answer, or only a part of it."""


class Unsendable(HttpError, ValueError):
    """A header or the URL has illegal characters. The value is never shown: it may be a key."""


class CannotConnect(HttpError):
    """The server at `host` and `port` refuses connections, or cannot be reached."""

    def __init__(self, host: str, port: int, why: str) -> None:
        self.host = host
        self.port = port
        super().__init__(why)


class UnknownHost(CannotConnect):
    """DNS does not know the host."""


class NoDescriptor(HttpError):
    """The process has no file descriptor left."""


class BadTls(HttpError):
    """TLS failed: a certificate is not accepted, or the server does not speak TLS."""


class ProxyRefused(HttpError):
    """The proxy cannot be reached, or refuses to connect."""


class ConnectTimeout(HttpError, TimeoutError):
    """The connection was not established in time."""


class Silent(HttpError, TimeoutError):
    """The server sent nothing for too long."""


class Broken(HttpError):
    """The connection cannot be used any more."""


class Disconnected(Broken):
    """The connection was closed before the answer began."""


class CutOff(Broken):
    """The connection was closed in the middle of the answer."""


class Malformed(Broken):
    """The answer is not valid HTTP, its head is too large, or its body does not match its content coding."""


class UnknownCoding(Malformed):
    """The body has an unknown content coding."""
