"""The list of models that an upstream offers: its URL, and the names in the answer."""

from __future__ import annotations

from typing import Any

import msgspec

from ...config.types import UpstreamConfig
from ...protocols.common.fields import is_array, is_object
from ...protocols.facts import ModelListFormat as Form
from ...protocols.registry import PROTOCOLS, upstream_protocol

# Lists with descriptions and prices (OpenRouter) are long. More than this is not a list of models.
MAX_LIST_SIZE = 8 * 1024 * 1024


class ModelList(msgspec.Struct, frozen=True):
    """The names in an upstream's answer."""

    names: tuple[str, ...] = ()
    whole: bool = True
    """False: the upstream has further pages, which are not read."""


def list_url(upstream: UpstreamConfig) -> str:
    return upstream.url(upstream_protocol(upstream.protocol).listing.path)


def parse_list(body: bytes) -> ModelList:
    """The names in an answer of any protocol; no names if the answer cannot be read.

    Many servers answer in the form of another protocol than their own, so all forms are tried.
    """
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ModelList()
    if is_array(value):  # Together answers with the bare list
        value = {"data": value}
    if not is_object(value):
        return ModelList()
    listings = [record.listing for record in PROTOCOLS.values()]
    entries = _entries(value, listings)
    names = [_name(entry, listings) for entry in entries if all(form.answers(entry) for form in listings)]
    whole = not any(value.get(form.more) for form in listings)
    return ModelList(tuple(dict.fromkeys(name for name in names if name)), whole)


def _entries(value: dict[str, Any], listings: list[Form]) -> list[dict[str, Any]]:
    found = next((value[form.member] for form in listings if form.member in value), None)
    return [entry for entry in found if is_object(entry)] if is_array(found) else []


def _name(entry: dict[str, Any], listings: list[Form]) -> str:
    for form in listings:
        if form.name in entry:
            return str(entry[form.name]).removeprefix(form.prefix)
    return ""
