"""Choose a model if the user names none: the first one that the endpoint lists, else a well-known one."""

from __future__ import annotations

from ..protocols.registry import client_protocol
from .client import EndpointClient
from .shape import UnreadableError, entries, is_object, load


async def choose(endpoint: EndpointClient) -> str:
    """The name of a model to request."""
    listing = client_protocol(endpoint.protocol).listing
    got = await endpoint.get(listing.path)
    names = listed(endpoint.protocol, got.body) if got.status == 200 and not got.cut else []
    return names[0] if names else listing.known


def listed(protocol: str, body: bytes) -> list[str]:
    """The models in a list of models; empty if the body does not have the protocol's form."""
    listing = client_protocol(protocol).listing
    try:
        value = load(body)
        if not is_object(value):
            return []
        found = [entry[listing.name] for entry in entries(value, listing.member) if listing.answers(entry)]
    except (UnreadableError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return []
    return [name.removeprefix(listing.prefix) for name in found if isinstance(name, str) and name]
