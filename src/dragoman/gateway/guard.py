"""Access control: keys, the Host header (against DNS rebinding), and the Origin header of browsers."""

from __future__ import annotations

import ipaddress

from ..config.types import ServerConfig
from ..config.urls import is_loopback
from ..model.events import Failed
from ..transport.server import HttpRequest
from .caller import presented_keys
from .endpoints.inspector import is_page
from .endpoints.probes import PROBES
from .errors import forbidden, unauthorized
from .state import State

# Paths without a key: they tell nothing that a plain TCP connection would not tell.
OPEN = frozenset({"/", "/api/hello", *PROBES})


async def refusal(state: State, request: HttpRequest) -> Failed | None:
    """The failure for a request that is not allowed, else None."""
    server, keys = state.config.server, state.keys
    if keys.stale():
        await keys.refresh()
    host = request.headers.get("host", "")
    if not host_allowed(host, server):
        return forbidden("this Host header is not allowed; to allow it, add it to server.allowed_hosts")
    if keys.empty and not origin_allowed(request.headers.get("origin"), server):
        return forbidden(
            "pages of other sites are not allowed; set server.keys, or add the site to server.allowed_hosts"
        )
    if keys.empty or _is_open(request.path):
        return None
    found = keys.identify(presented_keys(request))
    return unauthorized(found.refusal) if found.identity is None else None


def _is_open(path: str) -> bool:
    return path in OPEN or is_page(path)


def host_allowed(header: str, server: ServerConfig) -> bool:
    """Check the Host header. In a DNS rebinding attack, a web page resolves its own name to this machine.

    Its requests still carry that name. A gateway that listens on the network needs keys, and may have any
    name there: its names are checked only if `allowed_hosts` is set.
    """
    if not is_loopback(server.host) and (not server.allowed_hosts or _address(_name(header))):
        return True
    return _allowed(header, server)


def origin_allowed(origin: str | None, server: ServerConfig) -> bool:
    """Check the Origin header, which browsers send. Without keys, any site could spend the user's money."""
    if origin is None:
        return True
    scheme, _, host = origin.partition("://")
    if host and scheme.lower() not in ("http", "https"):
        return True  # a window of an editor or a browser extension (vscode-webview://, chrome-extension://)
    return _allowed(host, server)


def _allowed(header: str, server: ServerConfig) -> bool:
    name = _name(header)
    names = {host.lower() for host in server.allowed_hosts}
    return is_loopback(name) or name == server.host.lower() or not names.isdisjoint({name, header.lower()})


def _name(header: str) -> str:
    """The host without its port and brackets, in lower case."""
    name, _, port = header.rpartition(":")
    with_port = port.isdigit() and (header.startswith("[") or header.count(":") == 1)
    return (name if with_port else header).strip("[]").lower()


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
