"""libcurl options: those of a `HandleKey` are set once per handle, the others for each request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec
import pycurl

from .contract import Network, Upload
from .errors import ProxyRefused, Unsendable
from .proxies import problem, shown
from .trust import own_store

curl = cast(Any, pycurl)
"""pycurl without types: the library has none."""

KEPT = 15
"""Seconds. A connection that was idle for longer is not reused: the server may be closing it."""

# A transfer keeps its buffers until it ends. With 64 KB for uploads, as libcurl has it, 1,000 open streams
# need 40 MB more; 16 KB is the least. Each piece of a long body costs two system calls.
_BUFFER = 16 * 1024
_MAX_BUFFER = 128 * 1024
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PROXY_TYPES = {"socks5": curl.PROXYTYPE_SOCKS5, "socks5h": curl.PROXYTYPE_SOCKS5_HOSTNAME}
_PROXY_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
# libcurl adds these headers by default. `Expect: 100-continue` would cost a round trip for each large body.
_NOT_ADDED = ("accept", "content-type", "expect")

CONSTANT = (
    # Signals for DNS timeouts would interrupt the event loop.
    (curl.NOSIGNAL, 1),
    # No `file://` or `ftp://` from a config or a redirect.
    (curl.PROTOCOLS, curl.PROTO_HTTP | curl.PROTO_HTTPS),
    (curl.FOLLOWLOCATION, 0),
    # A `~/.netrc` must not add a password to a request.
    (curl.NETRC, curl.NETRC_IGNORED),
    (curl.USERAGENT, ""),
    # libcurl would resolve `/../` in a path, and the path would differ from the checked one.
    (curl.PATH_AS_IS, 1),
    (curl.HTTP_CONTENT_DECODING, 0),  # `codings` does it: this libcurl knows no zstd
    (curl.BUFFERSIZE, _BUFFER),
    (curl.MAXAGE_CONN, KEPT),
    (curl.TCP_KEEPALIVE, 1),
    (curl.NOPROXY, ""),
    (curl.PROXY, ""),  # `proxies` reads the environment
)


class HandleKey(msgspec.Struct, frozen=True):
    """The values that requests with the same libcurl options share."""

    network: Network
    proxy: str | None
    secure: bool
    """Does the connection use TLS, with the server or with the proxy?"""
    connect_timeout: float


def prepared(key: HandleKey, roots: str | None) -> Any:
    """A new handle for `key`. `roots` is the path of a file with the trusted certificates."""
    handle = curl.Curl()
    for option, value in CONSTANT:
        handle.setopt(option, value)
    handle.setopt(curl.CONNECTTIMEOUT_MS, max(1, round(key.connect_timeout * 1000)))
    if key.secure:
        _secure(handle, key.network, roots)
    if key.proxy is not None:
        _through(handle, key.proxy, roots)
    return handle


def write(handle: Any, method: str, url: str, fields: Mapping[str, str], body: bytes | Upload) -> None:
    """Set a request on `handle`."""
    lines = _lines(fields)
    try:
        handle.setopt(curl.URL, url)
        handle.setopt(curl.HTTPHEADER, lines)
    except (UnicodeError, ValueError, TypeError):
        raise _unsendable() from None
    if isinstance(body, Upload):
        handle.setopt(curl.UPLOAD, 1)
        handle.setopt(curl.INFILESIZE_LARGE, -1 if body.length is None else body.length)
        handle.setopt(curl.UPLOAD_BUFFERSIZE, _MAX_BUFFER)
    elif body or method == "POST":
        handle.setopt(curl.POST, 1)
        handle.setopt(curl.POSTFIELDS, body)
        handle.setopt(curl.UPLOAD_BUFFERSIZE, min(max(len(body), _BUFFER), _MAX_BUFFER))
    else:
        handle.setopt(curl.HTTPGET, 1)
    if method == "HEAD":
        handle.setopt(curl.NOBODY, 1)
    elif not isinstance(body, Upload) and (method == "POST" or (method == "GET" and not body)):
        handle.unsetopt(curl.CUSTOMREQUEST)
    elif _NAME.fullmatch(method):
        handle.setopt(curl.CUSTOMREQUEST, method)
    else:
        raise _unsendable()


def _lines(fields: Mapping[str, str]) -> list[bytes]:
    lines: list[bytes] = []
    names: set[str] = set()
    for name, value in fields.items():
        if not _NAME.fullmatch(name) or _CONTROL.search(value):
            raise _unsendable()
        name = name.lower()
        names.add(name)
        # To libcurl, "name:" means to leave the header out, and "name;" means an empty value.
        lines.append((f"{name}: {value}" if value.strip() else f"{name};").encode())
    lines += [f"{name}:".encode() for name in _NOT_ADDED if name not in names]
    return lines


def _unsendable() -> Unsendable:
    return Unsendable("a header or the address has characters that cannot be sent")


def _secure(handle: Any, network: Network, roots: str | None) -> None:
    handle.setopt(curl.SSLVERSION, curl.SSLVERSION_TLSv1_2)
    handle.setopt(curl.HTTP_VERSION, curl.CURL_HTTP_VERSION_2TLS)
    handle.setopt(curl.PIPEWAIT, 1)  # requests that begin together share one HTTP/2 connection
    if roots is not None:
        handle.setopt(curl.CAINFO, roots)
    if own_store():
        handle.setopt(curl.SSL_OPTIONS, curl.SSLOPT_NATIVE_CA)
    if network.client_cert:
        handle.setopt(curl.SSLCERT_BLOB, network.client_cert)
        handle.setopt(curl.SSLKEY_BLOB, network.client_cert)  # the same PEM data also holds the key


def _through(handle: Any, proxy: str, roots: str | None) -> None:
    if why := problem(proxy):
        raise ProxyRefused(f"cannot be reached: the proxy {shown(proxy)} {why}")
    parts = urlsplit(proxy)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    scheme = parts.scheme if parts.scheme == "https" else "http"
    if parts.scheme in _PROXY_TYPES:
        scheme = parts.scheme
    handle.setopt(curl.PROXY, f"{scheme}://{host}:{parts.port or _PROXY_PORTS[parts.scheme]}")
    if parts.username is not None:
        handle.setopt(curl.PROXYUSERNAME, unquote(parts.username).encode())
        handle.setopt(curl.PROXYPASSWORD, unquote(parts.password or "").encode())
    if parts.scheme == "https":
        if roots is not None:
            handle.setopt(curl.PROXY_CAINFO, roots)
        if own_store():
            handle.setopt(curl.PROXY_SSL_OPTIONS, curl.SSLOPT_NATIVE_CA)
