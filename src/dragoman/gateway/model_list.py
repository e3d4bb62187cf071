"""The models an upstream lists itself: where it is asked, and what of its answer are names."""

from __future__ import annotations

from typing import Any

import msgspec

from ..config.types import UpstreamConfig
from ..protocols.common.fields import is_array, is_object
from ..protocols.facts import ModelListFormat as Form
from ..protocols.registry import PROTOCOLS, protocol

LARGEST = 8 * 1024 * 1024


class Listing(msgspec.Struct, frozen=True):
    """What an upstream answered."""

    names: tuple[str, ...] = ()
    whole: bool = True
    """There is no further page."""


def address(upstream: UpstreamConfig) -> str:
    """Where `upstream` lists its models."""
    return upstream.url(protocol(upstream.protocol).listing.path)


def read(body: bytes) -> Listing:
    """The names in an answer of any protocol; none where there is nothing to be understood."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Listing()
    if is_array(value):  # Together gives the list alone
        value = {"data": value}
    if not is_object(value):
        return Listing()
    listings = [record.listing for record in PROTOCOLS.values()]
    entries = _entries(value, listings)
    names = [_name(entry, listings) for entry in entries if all(form.answers(entry) for form in listings)]
    whole = not any(value.get(form.more) for form in listings)
    return Listing(tuple(dict.fromkeys(name for name in names if name)), whole)


def _entries(value: dict[str, Any], listings: list[Form]) -> list[dict[str, Any]]:
    found = next((value[form.member] for form in listings if form.member in value), None)
    return [entry for entry in found if is_object(entry)] if is_array(found) else []


def _name(entry: dict[str, Any], listings: list[Form]) -> str:
    for form in listings:
        if form.name in entry:
            return str(entry[form.name]).removeprefix(form.prefix)
    return ""
