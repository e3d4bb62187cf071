"""Web addresses, taken apart in one way: a request goes to the host its credential was checked for."""

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
# What stands in a path or a query as it is; `%` because what is quoted already stays so.
_PLAIN = "/%:@!$&'()*+,;=~?"


class Url(msgspec.Struct, frozen=True):
    """An http or https address. The host is in lower case and ASCII, an IPv6 address without brackets."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as they stand in a request."""
    login: str | None
    """User and password, where the address holds them, as an `authorization` header has them."""

    @property
    def authority(self) -> str:
        """Host and port, the port only where it is not the usual one."""
        return self.bare if self.port == PORTS[self.scheme] else f"{self.bare}:{self.port}"

    @property
    def bare(self) -> str:
        """The host alone, in brackets where it needs them."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"


@lru_cache(maxsize=512)
def parse(text: str) -> Url:
    """`text` as an address; a ValueError where it is none, or one that is made to be misread."""
    if _CONTROL.search(text):
        raise ValueError("an address holds no control characters")
    parts = urlsplit(text)
    if parts.scheme not in PORTS:
        raise ValueError("an address begins with http:// or https://")
    port = PORTS[parts.scheme] if parts.port is None else parts.port
    if port == 0:
        raise ValueError("nothing listens on port 0")
    target = quote(parts.path or "/", safe=_PLAIN)
    if parts.query:
        target += "?" + quote(parts.query, safe=_PLAIN)
    login = None
    if parts.username is not None:
        login = _login(parts.username, parts.password or "")
    return Url(parts.scheme, _host(parts.hostname or ""), port, target, login)


def _host(name: str) -> str:
    if ":" in name:
        return str(ipaddress.IPv6Address(name))
    host = name if name.isascii() else name.encode("idna").decode().lower()
    if not _HOST.fullmatch(host):
        raise ValueError("an address has a host of letters, digits, dots and dashes")
    return host


def _login(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
