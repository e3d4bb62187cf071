"""Build one `[upstreams.NAME]`: the user's values, then the provider's, then the protocol's defaults."""

from __future__ import annotations

from typing import Any

import msgspec

from ..credentials.spec import CredentialSpec
from ..protocols.registry import upstream_protocol as protocol_named
from .network import network
from .platforms import PLACE, hosting
from .providers import Provider, at_origin, providers
from .types import Facts, UpstreamConfig
from .upstream_keys import UPSTREAM
from .urls import BadUrl, Endpoint, endpoint
from .values import Context, InvalidValue, closest

_FACTS = frozenset(field.encode_name for field in msgspec.structs.fields(Facts))
_PLAIN = ("headers", "models", "connect_timeout", "idle_timeout", "strict", "web_search", "other_endpoints")
_KEY = ("credential", "auth")
_NO_CREDENTIAL = "none"
_PLACES = {
    "region": 'the one that your models are in, such as "us-east-1"',
    "project": "the id of your Google Cloud project",
    "location": 'the one that your models are in, such as "global" or "us-east5"',
    "api_version": 'one that your resource has, such as "2024-10-21"',
}


def upstream(name: str, given: dict[str, Any], context: Context) -> UpstreamConfig:
    """The upstream called `name`. Raises `InvalidValue` if keys are missing or contradict each other."""
    provider, protocol = _provider(name, given)
    if protocol is None:
        raise InvalidValue(_no_protocol(name))
    place = {key: given[key] for key in PLACE if key in given}
    address = _endpoint(given, provider, protocol, place)
    hosted = hosting(provider.platform, protocol, address.root) if provider else None
    _check_place(hosted.needs() if hosted else [], place)
    inherited = _read(provider, context) if provider else {}
    # A user may point a custom name at a known address. Its quirks apply there too; its key does not.
    known = provider or at_origin(address.origin, protocol)
    record = protocol_named(protocol)
    facts = {
        **record.upstream_defaults,
        **(_facts(_read(known, context)) if known else {}),
        **_facts(given),
    }
    taken = {key: value for key, value in inherited.items() if key in _PLAIN or key in _KEY}
    if provider and record.auth.bearer_elsewhere and protocol in provider.also:
        taken["auth"] = "bearer"
    named = providers().get(given.get("provider", name))
    withheld = named is not None and not named.owns(address)
    if withheld:
        taken.pop("credential", None)
    taken |= {key: value for key, value in given.items() if key in _PLAIN or key in _KEY}
    keys = [_signing(spec, place, provider) for spec in _credentials(given, taken)]
    if keys:
        taken["credential"] = keys[0]
    built = UpstreamConfig(
        name=name,
        protocol=protocol,
        endpoint=address,
        provider=known.name if known else None,
        withheld=_own_credential(named) if named and withheld and not keys else "",
        facts=Facts(**facts),
        network=network(given),
        place=place,
        hosting=hosted,
        **taken,
    )
    if len(keys) < 2:
        return built
    each = tuple(
        msgspec.structs.replace(built, credential=spec, key_number=number) for number, spec in enumerate(keys)
    )
    return msgspec.structs.replace(built, each_key=each)


def _credentials(given: dict[str, Any], taken: dict[str, Any]) -> tuple[CredentialSpec, ...]:
    """The keys of `credentials`, or the one of `credential`, or none."""
    if "credentials" not in given:
        return (taken["credential"],) if "credential" in taken else ()
    if "credential" in given:
        raise InvalidValue("has both credential and credentials: keep one of them", "credentials")
    listed: tuple[CredentialSpec, ...] = given["credentials"]
    if not listed:
        raise InvalidValue('has an empty list of credentials: add keys, or write credential = "none"')
    for index, spec in enumerate(listed):
        if len(listed) > 1 and spec.kind in ("client", "none"):
            what = f'"{spec.kind}" among several credentials: list only keys of the upstream'
            raise InvalidValue(f"has {what}", "credentials", index)
        if spec in listed[:index]:
            raise InvalidValue(f"lists {spec.description} twice in credentials", "credentials", index)
    return listed


def _signing(spec: CredentialSpec, place: dict[str, str], provider: Provider | None) -> CredentialSpec:
    """`spec` with the region and the service that its signatures name, unless it says so itself."""
    region = spec.region or place.get("region", "")
    service = spec.service or (provider.aws_service if provider else "")
    if (region, service) == (spec.region, spec.service):
        return spec
    return msgspec.structs.replace(spec, region=region, service=service)


def _provider(name: str, given: dict[str, Any]) -> tuple[Provider | None, str | None]:
    """The provider that `provider` or the upstream's name says, and the protocol."""
    known = providers().get(given.get("provider", name))
    protocol: str | None = given.get("protocol") or (known.protocol if known else None)
    if known and known.elsewhere and "provider" not in given and _is_elsewhere(known, given):
        # `[upstreams.openai]` with the address of another server, which only speaks OpenAI's protocol.
        return None, given.get("protocol", known.elsewhere)
    return known, protocol


def _no_protocol(name: str) -> str:
    near = closest(name, providers())
    if not near:
        return "has no protocol: set protocol or provider"
    why = f'has no protocol, and "{name}" is no known provider'
    return f'{why}; if you mean "{near}", set provider = "{near}"'


def _is_elsewhere(provider: Provider, given: dict[str, Any]) -> bool:
    """Does the config give an address that is not one of the provider's own?"""
    if "base_url" not in given:
        return False
    try:
        address = endpoint(given["base_url"], given.get("protocol", provider.protocol))
    except BadUrl:
        return True  # `_endpoint` reports the bad URL
    return not provider.owns(address)


def _endpoint(
    given: dict[str, Any], provider: Provider | None, protocol: str, place: dict[str, str]
) -> Endpoint:
    url = given.get("base_url") or (_address(provider, protocol, place) if provider else None)
    if url is None and provider and not provider.example and provider.protocol != protocol:
        why = f'has no base_url, and the provider "{provider.name}" has no known address for "{protocol}"'
        spoken = ", ".join((provider.protocol, *provider.also))
        raise InvalidValue(f"{why}; set base_url, or a protocol that it speaks: {spoken}", "protocol")
    if url is None:
        example = f', such as "{provider.example}"' if provider and provider.example else ""
        raise InvalidValue(f"has no base_url: set it to the address of the server{example}")
    try:
        address = endpoint(url, protocol)
        if provider and provider.base_path and _has_no_path(address):
            address = endpoint(address.root + provider.base_path, protocol)
    except BadUrl as bad:
        raise InvalidValue(f"base_url {bad}", "base_url") from None
    return address


def _address(provider: Provider, protocol: str, place: dict[str, str]) -> str | None:
    """The provider's base URL in this place. Some locations have a host of their own (Vertex: `global`)."""
    url = provider.address(protocol)
    if url is None:
        return None
    url = provider.base_urls.get(place.get("location", ""), url)
    _check_place([key for key in PLACE if f"{{{key}}}" in url], place)
    return url.format(**place)


def _check_place(needed: list[str], place: dict[str, str]) -> None:
    for key in needed:
        if key not in place:
            raise InvalidValue(f"has no {key}: set {key} to {_PLACES[key]}")


def _has_no_path(address: Endpoint) -> bool:
    return address.root.count("/") == 2 and not address.query


def _read(provider: Provider, context: Context) -> dict[str, Any]:
    return {key: UPSTREAM[key].read(value, context) for key, value in provider.upstream.items()}


def _facts(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key in _FACTS}


def _own_credential(provider: Provider) -> str:
    """The credential of `providers.toml`; empty if the provider needs none."""
    credential: str = provider.upstream["credential"]
    return credential if credential != _NO_CREDENTIAL else ""
