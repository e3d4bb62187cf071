"""Checks of the whole config, after each key is valid."""

from __future__ import annotations

from collections.abc import Iterator

from .lines import Path as KeyPath
from .providers import providers
from .route_types import WhenConfig
from .types import Config, ServerConfig, UpstreamConfig
from .urls import is_loopback, is_private
from .values import nearest

Finding = tuple[KeyPath, str]


def problems(config: Config) -> Iterator[Finding]:
    """Errors: the gateway must not start with this config."""
    # An open gateway lets strangers spend the user's money, so this is an error and not a warning.
    yield from _open_to_network(config)
    if config.search.url is not None and config.search.command:
        yield ("search", "command"), "[search] has both url and command: keep one of them"
    for upstream in config.upstreams.values():
        if _is_this_gateway(upstream, config.server):
            yield (
                ("upstreams", upstream.name, "base_url"),
                f"base_url in [upstreams.{upstream.name}] is this gateway's address: it would call itself",
            )


def warnings(config: Config) -> Iterator[Finding]:
    """Settings that are valid but probably a mistake."""
    yield from _unreachable_routes(config)
    for key in config.named_keys.values():
        if key.team and config.teams and key.team not in config.teams:
            yield (
                ("keys", key.name, "team"),
                f'[keys.{key.name}] is in the team "{key.team}", which has no [teams.{key.team}] and so no '
                f"limits{nearest(key.team, config.teams)}",
            )
    for upstream in config.upstreams.values():
        yield from _unused_places(upstream)
        if upstream.withheld:
            yield (
                ("upstreams", upstream.name, "base_url"),
                f"base_url in [upstreams.{upstream.name}] is not an address of the provider, so "
                f'{upstream.withheld} is not sent there; to send it, set credential = "{upstream.withheld}"',
            )
        if (
            any(spec.kind != "none" for spec in upstream.credentials)
            and upstream.base_url.startswith("http://")
            and not is_private(upstream.endpoint.host)
        ):
            yield (
                ("upstreams", upstream.name, "base_url"),
                f"[upstreams.{upstream.name}] sends its credential over unencrypted http; use https",
            )


def _unused_places(upstream: UpstreamConfig) -> Iterator[Finding]:
    """Keys such as `region` that nothing of the upstream needs."""
    known = providers()
    used = known[upstream.provider].places() if upstream.provider else frozenset[str]()
    signs = any(spec.kind == "aws" for spec in upstream.credentials)
    for key in upstream.place.keys() - used:
        if not (signs and key == "region"):
            users = " or ".join(f'"{name}"' for name, provider in known.items() if key in provider.places())
            yield (
                ("upstreams", upstream.name, key),
                f"{key} in [upstreams.{upstream.name}] has no effect; it is for provider = {users}",
            )


def _unreachable_routes(config: Config) -> Iterator[Finding]:
    """Routes after one that takes all their requests. Of routes with conditions, only an equal one does."""
    seen: dict[tuple[str, WhenConfig | None], str] = {}
    for route in config.routes:
        match, conditions = route.match.lower(), dict.fromkeys((None, route.when))
        taken = (seen.get((glob, when)) for when in conditions for glob in ("*", match))
        earlier = next(filter(None, taken), None)
        if earlier:
            yield (
                ("routes", route.number),
                f'the route for "{route.match}" is never reached: "{earlier}" comes before it',
            )
        seen.setdefault((match, route.when), route.match)


def _open_to_network(config: Config) -> Iterator[Finding]:
    server = config.server
    if not is_loopback(server.host) and not server.keys and not config.named_keys:
        yield (
            ("server", "host"),
            f'host "{server.host}" is open to other machines: set keys in [server], add [keys.NAME], or use '
            "127.0.0.1",
        )


def _is_this_gateway(upstream: UpstreamConfig, server: ServerConfig) -> bool:
    endpoint = upstream.endpoint
    return (
        bool(server.port)  # with port 0, the system chooses the port later
        and endpoint.port == server.port
        and (is_loopback(endpoint.host) or endpoint.host == server.host)
    )
