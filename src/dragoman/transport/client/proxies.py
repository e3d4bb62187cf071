"""Choose the proxy for a request: that of its `Network`, or that of the environment."""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from urllib.parse import SplitResult, urlsplit

from ..urls import Url
from .contract import NO_PROXY, Network

SCHEMES = ("http", "https", "socks5", "socks5h")


def proxy_for(url: Url, network: Network) -> str | None:
    """The proxy's URL, or None to connect directly.

    Without `network.proxy` the environment decides: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`, in
    upper or lower case. Loopback addresses never use a proxy of the environment: it could not reach them.
    """
    if network.proxy is not None:
        return None if network.proxy == NO_PROXY else network.proxy
    if _is_loopback(url.host) or urllib.request.proxy_bypass(url.host) or _in_listed_network(url.host):
        return None
    named = urllib.request.getproxies()
    found = named.get(url.scheme) or named.get("all")
    if not found:
        return None
    return found if "://" in found else f"http://{found}"


def problem(proxy: str) -> str | None:
    """What is wrong with a proxy's URL, or None. Never contains the URL: it may hold a password."""
    parts = _split(proxy)
    if parts is None or parts.scheme not in SCHEMES or not parts.hostname:
        return "must be a URL such as http://host:3128, https://… , socks5://… or socks5h://…"
    if parts.path.strip("/") or parts.query or parts.fragment:
        return "must be a URL without a path"
    return None


def shown(proxy: str) -> str:
    """The proxy's URL without user and password."""
    parts = _split(proxy)
    if parts is None or not parts.hostname:
        return "(not a URL)"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


def has_login(proxy: str) -> bool:
    parts = _split(proxy)
    return parts is not None and parts.username is not None


def _split(proxy: str) -> SplitResult | None:
    try:
        parts = urlsplit(proxy)
        _ = parts.port  # raises ValueError if the port is not a number
    except ValueError:
        return None
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_listed_network(host: str) -> bool:
    """Is `host` an address in a network of `NO_PROXY`, such as `10.0.0.0/8`? urllib supports only names."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    listed = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    for entry in listed.split(","):
        try:
            if address in ipaddress.ip_network(entry.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False
