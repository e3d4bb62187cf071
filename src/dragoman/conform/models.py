"""Which model to ask for where nobody named one: the first the endpoint lists, else a well-known one."""

from __future__ import annotations

from ..protocols.registry import client_protocol
from .client import Asker
from .shape import UnreadableError, entries, is_object, load


async def choose(asker: Asker) -> str:
    """A model to ask for."""
    listing = client_protocol(asker.protocol).listing
    got = await asker.get(listing.path)
    names = listed(asker.protocol, got.body) if got.status == 200 and not got.cut else []
    return names[0] if names else listing.known


def listed(protocol: str, body: bytes) -> list[str]:
    """The models a list names; none where it has not the protocol's form."""
    listing = client_protocol(protocol).listing
    try:
        value = load(body)
        if not is_object(value):
            return []
        found = [entry[listing.name] for entry in entries(value, listing.member) if listing.answers(entry)]
    except (UnreadableError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return []
    return [name.removeprefix(listing.prefix) for name in found if isinstance(name, str) and name]
