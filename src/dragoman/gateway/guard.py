"""Who may ask: keys in constant time, a Host header that is ours (DNS rebinding), and no strangers' pages."""

from __future__ import annotations

import ipaddress

from ..config.types import ServerConfig
from ..config.urls import is_loopback
from ..model.events import Failed
from ..transport.server import HttpRequest
from .caller import any_is_good, presented_keys
from .errors import forbidden, unauthorized
from .inspector import is_page
from .state import State

# Whether it lives, and what it is: nothing a stranger could not find out by connecting.
OPEN = frozenset({"/", "/healthz", "/api/hello"})


def refusal(state: State, request: HttpRequest) -> Failed | None:
    """Why this request goes no further; None where it may."""
    server = state.config.server
    host = request.headers.get("host", "")
    if not host_allowed(host, server):
        return forbidden("this Host is not served here; add it to server.allowed_hosts if it should be")
    if not state.keys and not origin_allowed(request.headers.get("origin"), server):
        return forbidden("pages of other sites may not ask; set server.keys, or add it to allowed_hosts")
    if not state.keys or _is_open(request.path) or any_is_good(presented_keys(request), state.keys):
        return None
    return unauthorized()


def _is_open(path: str) -> bool:
    return path in OPEN or is_page(path)


def host_allowed(header: str, server: ServerConfig) -> bool:
    """A page from elsewhere that resolved its name to this machine still sends its own name.

    Whoever listens to the whole network has keys, and is known there by names only the network knows: there
    the names are checked only if some are given.
    """
    if not is_loopback(server.host) and (not server.allowed_hosts or _address(_name(header))):
        return True
    return _ours(header, server)


def origin_allowed(origin: str | None, server: ServerConfig) -> bool:
    """A browser says which page asks. Without keys, a page of any site could spend the user's money."""
    if origin is None:
        return True
    scheme, _, host = origin.partition("://")
    if host and scheme.lower() not in ("http", "https"):
        return True  # an editor's or an extension's own window
    return _ours(host, server)


def _ours(header: str, server: ServerConfig) -> bool:
    name = _name(header)
    allowed = {host.lower() for host in server.allowed_hosts}
    return is_loopback(name) or name == server.host.lower() or not allowed.isdisjoint({name, header.lower()})


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
