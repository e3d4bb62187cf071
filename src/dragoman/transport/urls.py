"""The only URL parser of Dragoman. A credential is checked for the same host that a request goes to."""

from __future__ import annotations

import ipaddress
import re
from base64 import b64encode
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit

import msgspec

PORTS = {"http": 80, "https": 443}

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[a-z0-9_.-]+")
# Characters of a path or query that are not quoted. `%` is one of them, so quoted text stays as it is.
_UNQUOTED = "/%:@!$&'()*+,;=~?"


class Url(msgspec.Struct, frozen=True):
    """An http or https URL. The host is lower-case ASCII, an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as in the first line of a request."""
    login: str | None
    """User and password of the URL, as the value of an `authorization` header."""

    @property
    def authority(self) -> str:
        """Host and port. The default port of the scheme is left out."""
        return self.bare if self.port == PORTS[self.scheme] else f"{self.bare}:{self.port}"

    @property
    def bare(self) -> str:
        """The host, an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"


@lru_cache(maxsize=512)
def parse(text: str) -> Url:
    """Parse a URL. Raises ValueError for text that is no URL, or that other parsers may read differently."""
    # `urlsplit` silently removes tabs and newlines, as browsers do. Another parser may not.
    if _CONTROL.search(text):
        raise ValueError("a URL cannot contain control characters")
    parts = urlsplit(text)
    if parts.scheme not in PORTS:
        raise ValueError("a URL must begin with http:// or https://")
    port = PORTS[parts.scheme] if parts.port is None else parts.port
    if port == 0:
        raise ValueError("port 0 is not a valid port")
    target = quote(parts.path or "/", safe=_UNQUOTED)
    if parts.query:
        target += "?" + quote(parts.query, safe=_UNQUOTED)
    login = None
    if parts.username is not None:
        login = _login(parts.username, parts.password or "")
    return Url(parts.scheme, _host(parts.hostname or ""), port, target, login)


def _host(name: str) -> str:
    if ":" in name:
        return str(ipaddress.IPv6Address(name))
    host = name if name.isascii() else name.encode("idna").decode().lower()
    if not _HOST.fullmatch(host):
        raise ValueError("the host of a URL has only letters, digits, dots, dashes and underscores")
    return host


def _login(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
