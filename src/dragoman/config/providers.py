"""The providers of `providers.toml`."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from ..protocols.registry import upstream_protocol as protocol_named
from .platforms import places, places_in
from .urls import Endpoint, endpoint


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A well-known provider. The comment at the top of `providers.toml` explains each field."""

    name: str
    upstream: dict[str, Any]
    """Keys of `[upstreams.NAME]`, as raw TOML values."""
    also: dict[str, str] = {}
    families: tuple[str, ...] = ()
    also_env: tuple[str, ...] = ()
    base_url_env: str = ""
    elsewhere: str | None = None
    base_path: str = ""
    example: str = ""
    platform: str = ""
    base_urls: dict[str, str] = {}
    hosts: tuple[str, ...] = ()
    aws_service: str = ""
    only_named: bool = False
    prices_name: str = ""
    otel_name: str = ""
    decodes_by_schema: bool = False
    takes_named_choice: bool = True

    @property
    def protocol(self) -> str:
        return self.upstream["protocol"]

    def address(self, protocol: str) -> str | None:
        """The base URL for `protocol`; None if the provider is not known to speak it.

        It may contain fields: `https://bedrock-runtime.{region}.amazonaws.com`.
        """
        if protocol in self.also:
            return self.also[protocol]
        family = protocol_named(protocol).address.family
        same = family != "" and family == protocol_named(self.protocol).address.family
        return self.upstream.get("base_url") if same or protocol == self.protocol else None

    def origins(self) -> frozenset[str]:
        """The origins that may get the provider's key. Empty if the address differs per customer."""
        known = {**self.also}
        if "base_url" in self.upstream:
            known[self.protocol] = self.upstream["base_url"]
        fixed = {protocol: url for protocol, url in known.items() if "{" not in url}
        return frozenset(endpoint(url, protocol).origin for protocol, url in fixed.items())

    def owns(self, address: Endpoint) -> bool:
        """May the provider's key go to this address?"""
        origins = self.origins()
        if self.hosts and address.origin not in origins:
            return address.root.startswith("https://") and address.host.endswith(self.hosts)
        return not origins or address.origin in origins

    def places(self) -> frozenset[str]:
        """The keys of `[upstreams.NAME]` that say where in this provider's cloud the models are."""
        urls = "".join((self.upstream.get("base_url", ""), *self.also.values()))
        hosted = places(self.platform) if self.platform else frozenset[str]()
        return hosted | frozenset(places_in(urls))

    def variables(self) -> tuple[str, ...]:
        """The environment variables that may hold the key."""
        return (self.upstream["credential"].removeprefix("env:"), *self.also_env)


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("providers.toml").read_text("utf-8"))


@functools.cache
def providers() -> dict[str, Provider]:
    """All providers by name, in the order of the file."""
    provider_fields = {field.encode_name for field in msgspec.structs.fields(Provider)} - {"name", "upstream"}
    found: dict[str, Provider] = {}
    for name, table in _document()["providers"].items():
        about = {key: value for key, value in table.items() if key in provider_fields}
        upstream = {key: value for key, value in table.items() if key not in provider_fields}
        found[name] = msgspec.convert({"name": name, "upstream": upstream, **about}, Provider)
    return found


def takes_named_choice(provider: str | None) -> bool:
    """Does a server of this provider take a tool choice that names a tool?"""
    known = providers().get(provider or "")
    return known is None or known.takes_named_choice


@functools.cache
def longest_answers() -> tuple[tuple[str, int], ...]:
    """Globs on model names, each with the maximum number of output tokens."""
    return tuple(_document()["max_output"].items())


def at_origin(origin: str, protocol: str) -> Provider | None:
    """The provider that has this origin and uses `protocol` by default."""
    for provider in providers().values():
        if provider.protocol == protocol and origin in provider.origins():
            return provider
    return None
