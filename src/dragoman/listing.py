"""The models an upstream lists itself: where it is asked, and what of its answer are names."""

from __future__ import annotations

from typing import Any

import msgspec

from .config.types import UpstreamConfig
from .protocols.fields import is_array, is_object

LARGEST = 8 * 1024 * 1024
_PATHS = {"gemini": "/v1beta/models?pageSize=1000", "anthropic": "/v1/models?limit=1000"}


class Listing(msgspec.Struct, frozen=True):
    """What an upstream answered."""

    names: tuple[str, ...] = ()
    whole: bool = True
    """There is no further page."""


def address(upstream: UpstreamConfig) -> str:
    """Where `upstream` lists its models."""
    return upstream.url(_PATHS.get(upstream.protocol, "/v1/models"))


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
    found = value.get("data", value.get("models"))
    entries = [entry for entry in found if is_object(entry)] if is_array(found) else []
    names = [str(entry.get("id", entry.get("name", ""))) for entry in entries if _answers(entry)]
    bare = (name.removeprefix("models/") for name in names)
    whole = not (value.get("has_more") or value.get("nextPageToken"))
    return Listing(tuple(dict.fromkeys(name for name in bare if name)), whole)


def _answers(entry: dict[str, Any]) -> bool:
    """Gemini says which of its models only embed."""
    methods = entry.get("supportedGenerationMethods")
    return not is_array(methods) or "generateContent" in methods
