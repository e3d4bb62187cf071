"""URLs of an upstream in what passes to the client, changed into URLs of the gateway.

A client that asked the upstream itself would send it the wrong key, and no limit or receipt would apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlencode

from ...access.keys import KeyTable
from ...config.types import UpstreamConfig
from ...credentials.secret import Secret
from ...transport.server import HttpRequest
from ...transport.urls import parse


def gateway_url(http: HttpRequest, secure: bool) -> str:
    """The gateway's address as the client knows it."""
    scheme = "https" if secure else http.headers.get("x-forwarded-proto", "http").partition(",")[0].strip()
    return f"{scheme if scheme == 'https' else 'http'}://{http.headers.get('host', '')}"


def to_gateway_url(url: str, upstream: UpstreamConfig, gateway: str) -> str:
    """`url`, at the gateway if it is one of the upstream's. Other URLs stay."""
    try:
        parsed, own = parse(url), parse(upstream.base_url)
    except ValueError:
        return url
    if parsed.origin != own.origin:
        return url
    return gateway + parsed.target.removeprefix(own.target.rstrip("/"))


def with_key(url: str, gateway: str, keys: KeyTable, presented: Iterable[Secret]) -> str:
    """`url` with the key that the client has sent: Google's SDKs send none to the URL of an upload."""
    valid = next((key for key in presented if keys.identify((key,)).identity), None)
    if keys.empty or valid is None or not url.startswith(gateway):
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode({'key': valid.reveal()})}"


def with_gateway_urls(body: bytes, members: tuple[str, ...], upstream: UpstreamConfig, gateway: str) -> bytes:
    """A JSON body in which each of these members has a URL of the gateway."""
    if not members:
        return body
    names = "|".join(map(re.escape, members))
    pattern = re.compile(rf'("(?:{names})"\s*:\s*")([^"\\]*)"'.encode())

    def change(found: re.Match[bytes]) -> bytes:
        return found[1] + to_gateway_url(found[2].decode(), upstream, gateway).encode() + b'"'

    return pattern.sub(change, body)
