"""What can be wrong with a config as a whole, when each of its keys is right."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from .lines import Path as KeyPath
from .types import Config, ServerConfig, UpstreamConfig
from .urls import is_loopback

Finding = tuple[KeyPath, str]


def problems(config: Config) -> Iterator[Finding]:
    """What makes it unusable."""
    yield from _exposed(config.server)
    for one in config.upstreams.values():
        if _is_ourselves(one, config.server):
            yield (
                ("upstreams", one.name, "base_url"),
                f"base_url in [upstreams.{one.name}] is the gateway's own address: it would call itself",
            )


def warnings(config: Config) -> Iterator[Finding]:
    """What is allowed but probably not meant."""
    seen: dict[str, str] = {}
    for index, route in enumerate(config.routes):
        earlier = seen.get("*") or seen.get(route.match.lower())
        if earlier:
            yield (
                ("routes", index),
                f'the route for "{route.match}" is never reached: "{earlier}" comes before it',
            )
        seen.setdefault(route.match.lower(), route.match)
    for one in config.upstreams.values():
        if (
            one.credential.kind != "none"
            and one.base_url.startswith("http://")
            and not _is_private(one.endpoint.host)
        ):
            yield (
                ("upstreams", one.name, "base_url"),
                f"[upstreams.{one.name}] sends its credential over plain http; use https",
            )


def _exposed(server: ServerConfig) -> Iterator[Finding]:
    if not is_loopback(server.host) and not server.keys:
        yield (
            ("server", "host"),
            f'host "{server.host}" can be reached from other machines: give keys in [server], '
            "or use 127.0.0.1",
        )


def _is_ourselves(one: UpstreamConfig, server: ServerConfig) -> bool:
    place = one.endpoint
    return (
        bool(server.port)
        and place.port == server.port
        and (is_loopback(place.host) or place.host == server.host)
    )


def _is_private(host: str) -> bool:
    """A machine of one's own: this one, one on the local network, or a name without a domain."""
    if is_loopback(host) or "." not in host or host.endswith((".local", ".lan", ".internal")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False
