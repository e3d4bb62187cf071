"""Checks of the whole config, after each key is valid."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from .lines import Path as KeyPath
from .types import Config, ServerConfig, UpstreamConfig
from .urls import is_loopback

Finding = tuple[KeyPath, str]


def problems(config: Config) -> Iterator[Finding]:
    """Errors: the gateway must not start with this config."""
    yield from _exposed(config.server)
    for upstream in config.upstreams.values():
        if _is_this_gateway(upstream, config.server):
            yield (
                ("upstreams", upstream.name, "base_url"),
                f"base_url in [upstreams.{upstream.name}] is this gateway's address: it would call itself",
            )


def warnings(config: Config) -> Iterator[Finding]:
    """Settings that are valid but probably a mistake."""
    seen: dict[str, str] = {}
    for index, route in enumerate(config.routes):
        earlier = seen.get("*") or seen.get(route.match.lower())
        if earlier:
            yield (
                ("routes", index),
                f'the route for "{route.match}" is never reached: "{earlier}" comes before it',
            )
        seen.setdefault(route.match.lower(), route.match)
    for upstream in config.upstreams.values():
        if (
            upstream.credential.kind != "none"
            and upstream.base_url.startswith("http://")
            and not _is_private(upstream.endpoint.host)
        ):
            yield (
                ("upstreams", upstream.name, "base_url"),
                f"[upstreams.{upstream.name}] sends its credential over unencrypted http; use https",
            )


def _exposed(server: ServerConfig) -> Iterator[Finding]:
    if not is_loopback(server.host) and not server.keys:
        yield (
            ("server", "host"),
            f'host "{server.host}" is open to other machines: set keys in [server], or use 127.0.0.1',
        )


def _is_this_gateway(upstream: UpstreamConfig, server: ServerConfig) -> bool:
    endpoint = upstream.endpoint
    return (
        bool(server.port)  # with port 0, the system chooses the port later
        and endpoint.port == server.port
        and (is_loopback(endpoint.host) or endpoint.host == server.host)
    )


def _is_private(host: str) -> bool:
    """Is `host` this machine, a machine of a local network, or a name without a domain (a container)?"""
    if is_loopback(host) or "." not in host or host.endswith((".local", ".lan", ".internal")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False
