"""Build one `[upstreams.NAME]`: the user's values, then the provider's, then the protocol's defaults."""

from __future__ import annotations

from typing import Any

import msgspec

from ..protocols.registry import protocol as protocol_named
from .keys import UPSTREAM
from .network import network
from .providers import Provider, at_origin, providers
from .types import Facts, UpstreamConfig
from .urls import BadUrl, Endpoint, endpoint
from .values import Context, InvalidValue

_FACTS = frozenset(field.encode_name for field in msgspec.structs.fields(Facts))
_PLAIN = ("headers", "models", "connect_timeout", "idle_timeout", "strict")
_KEY = ("credential", "auth")


def upstream(name: str, given: dict[str, Any], context: Context) -> UpstreamConfig:
    """The upstream called `name`. Raises `InvalidValue` if keys are missing or contradict each other."""
    provider = _provider(name, given)
    protocol: str | None = given.get("protocol") or (provider.protocol if provider else None)
    if protocol is None:
        raise InvalidValue("has no protocol: set protocol or provider")
    address = _endpoint(given, provider, protocol)
    inherited = _read(provider, context) if provider else {}
    # A user may point a custom name at a known address. Its quirks apply there too; its key does not.
    known = provider or at_origin(address.origin, protocol)
    record = protocol_named(protocol)
    facts = {
        **record.upstream_defaults,
        **(_facts(_read(known, context)) if known else {}),
        **_facts(given),
    }
    taken = {key: value for key, value in inherited.items() if key in _PLAIN}
    if provider and _may_have_key(provider, address):
        taken |= {key: value for key, value in inherited.items() if key in _KEY}
        if record.auth.bearer_elsewhere and protocol in provider.also:
            taken["auth"] = "bearer"
    taken |= {key: value for key, value in given.items() if key in _PLAIN or key in _KEY}
    return UpstreamConfig(
        name=name,
        protocol=protocol,
        endpoint=address,
        provider=known.name if known else None,
        facts=Facts(**facts),
        network=network(given),
        **taken,
    )


def _provider(name: str, given: dict[str, Any]) -> Provider | None:
    """The provider that `provider` or the upstream's name says. A name does not count at another origin."""
    if "provider" in given:
        return providers()[given["provider"]]
    known = providers().get(name)
    if known is None or "base_url" not in given:
        return known
    origins = known.origins()
    try:
        address = endpoint(given["base_url"], given.get("protocol", known.protocol))
    except BadUrl:
        return None  # `_endpoint` reports the bad URL
    return known if not origins or address.origin in origins else None


def _endpoint(given: dict[str, Any], provider: Provider | None, protocol: str) -> Endpoint:
    url = given.get("base_url") or (provider.address(protocol) if provider else None)
    if url is None and provider and provider.protocol != protocol:
        raise InvalidValue(
            f'has no base_url, and the provider "{provider.name}" has no known address for "{protocol}"',
            "protocol",
        )
    if url is None:
        raise InvalidValue("has no base_url: set it to the address of the server")
    try:
        address = endpoint(url, protocol)
        if provider and provider.base_path and _has_no_path(address):
            address = endpoint(address.root + provider.base_path, protocol)
    except BadUrl as bad:
        raise InvalidValue(f"base_url {bad}", "base_url") from None
    return address


def _has_no_path(address: Endpoint) -> bool:
    return address.root.count("/") == 2 and not address.query


def _read(provider: Provider, context: Context) -> dict[str, Any]:
    return {key: UPSTREAM[key].read(value, context) for key, value in provider.upstream.items()}


def _facts(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key in _FACTS}


def _may_have_key(provider: Provider, address: Endpoint) -> bool:
    """Send a provider's default key only to the provider's own origins."""
    origins = provider.origins()
    return not origins or address.origin in origins
