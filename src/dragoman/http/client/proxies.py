"""Proxies: which one the environment names for an address, and a way through it to a server's TLS."""

from __future__ import annotations

import asyncio
import ipaddress
import urllib.request

from ..urls import Url, parse
from .errors import Malformed, ProxyRefused

_LONGEST_HEAD = 64 * 1024


def proxy_for(url: Url) -> Url | None:
    """The proxy by `https_proxy`, `no_proxy` and so on. None reaches our own loopback."""
    if _is_loopback(url.host) or urllib.request.proxy_bypass(url.host):
        return None
    proxy = urllib.request.getproxies().get(url.scheme)
    if not proxy:
        return None
    try:
        return parse(proxy if "://" in proxy else f"http://{proxy}")
    except ValueError:
        raise ProxyRefused(f"{url.scheme}_proxy names no http proxy") from None


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Tunnel(asyncio.Protocol):
    """Asks a proxy to connect us to a server, and to keep out of what is said."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[tuple[bytes, bytes]] = asyncio.get_running_loop().create_future()
        self._received = b""

    async def through(self, transport: asyncio.WriteTransport, url: Url, login: str | None) -> None:
        """To the server of `url`; `ProxyRefused` where the proxy does not want to."""
        where = f"{url.bare}:{url.port}"
        shown = f"proxy-authorization: {login}\r\n" if login else ""
        transport.write(f"CONNECT {where} HTTP/1.1\r\nhost: {where}\r\n{shown}\r\n".encode())
        head, more = await self._answer
        version, _, status = head.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not status[:3].isdigit():
            raise Malformed("what the proxy answers is no HTTP")
        if not status.startswith(b"2"):
            raise ProxyRefused(f"the proxy answers {status[:3].decode()}")
        if more:
            raise Malformed("something came through the proxy before anything was said to the server")

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, more = self._received.partition(b"\r\n\r\n")
        if self._answer.done():
            return
        if end:
            self._answer.set_result((head, more))
        elif len(head) > _LONGEST_HEAD:
            self._answer.set_exception(Malformed("the head of the proxy's answer is endless"))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(ProxyRefused("the proxy closed the connection"))
