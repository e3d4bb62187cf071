"""Who may ask: keys in constant time, and a Host header that is ours (DNS rebinding)."""

from __future__ import annotations

import ipaddress

from aiohttp import web

from ..secret import Secret

_BEARER = "bearer "


def presented_key(request: web.Request) -> Secret | None:
    """The key a client sent, in whichever place its SDK puts it."""
    headers = request.headers
    key = headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("api-key")
    if not key:
        bearer = headers.get("authorization", "")
        key = bearer[len(_BEARER) :].strip() if bearer.lower().startswith(_BEARER) else ""
    key = key or request.query.get("key", "")
    return Secret(key) if key else None


def key_is_good(presented: Secret | None, keys: tuple[Secret, ...]) -> bool:
    """No keys configured: everyone who can reach us may ask. Every key is compared, whichever fits."""
    if not keys:
        return True
    if presented is None:
        return False
    good = False
    for key in keys:
        good |= presented == key  # no early end: the time taken tells nothing
    return good


def is_loopback(host: str) -> bool:
    """Is this an address that only this machine can reach?"""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_is_ours(header: str, bound: str) -> bool:
    """A page from elsewhere that resolved its name to this machine still sends its own name."""
    name = header.rpartition(":")[0] if _has_port(header) else header
    return is_loopback(name) or name.strip("[]") == bound


def _has_port(header: str) -> bool:
    return header.rpartition(":")[2].isdigit() and (header.startswith("[") or header.count(":") == 1)
