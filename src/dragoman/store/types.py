"""The types of the `Store` contract."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ..model.errors import DragomanError

# The namespaces of entries.
TURNS = "turns"
"""Reasoning that the client's protocol cannot carry, by issuer and turn."""
ISSUERS = "issuers"
"""The upstream that issued a piece of opaque reasoning."""
ALIASES = "aliases"
"""Call ids that are too long for a client, by the hash that the client gets instead."""
RESPONSES = "responses"
"""Stored responses of the Responses API, by scope and id."""
ITEMS = "items"
"""Input and output items of stored responses, by content hash: repeated history is stored once."""
ITEM_IDS = "item-ids"
"""Content hashes of items, by scope and item id, for `item_reference`."""

_DAY = 86_400.0


class StoreError(DragomanError):
    """The store cannot be opened, read or written."""

    status = 503


class Key(NamedTuple):
    """The address of an entry."""

    namespace: str
    key: str


class Entry(msgspec.Struct, frozen=True):
    """A key and its value."""

    key: Key
    value: bytes


class Receipt(msgspec.Struct, frozen=True):
    """The receipt of one exchange: the columns to search by, and the encoded receipt."""

    id: str
    at: float
    """Seconds since the epoch."""
    client: str = ""
    profile: str = ""
    model: str = ""
    outcome: str = ""
    status: int = 0
    seconds: float = 0.0
    failed: int = 0
    """1 if the exchange failed."""
    mended: int = 0
    rules: str = ""
    """Names of the rules that ran, with a space before and after each."""
    words: str = ""
    """Text for full-text search, in lower case."""
    summary: bytes = b""
    value: bytes = b""
    """The full receipt. Lists leave it out."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A query for receipts."""

    since: float = 0.0
    before: float = float("inf")
    after: tuple[float, str] | None = None
    """Return only receipts after this one (time, id) in the list, which starts with the newest."""
    client: str | None = None
    profile: str | None = None
    model: str | None = None
    """A glob on the model."""
    outcome: str | None = None
    status: int | None = None
    rule: str | None = None
    slow: float | None = None
    """Minimum duration in seconds."""
    failed: bool = False
    mended: bool = False
    words: tuple[str, ...] = ()
    """Every word must occur in the receipt's `words`."""
    limit: int = 100


class Keep(msgspec.Struct, frozen=True):
    """How long to keep rows, and how many. The rows that expire first are deleted first."""

    seconds: float = 30 * _DAY
    rows: int = 200_000


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long data is kept. The default is 30 days, as long as OpenAI keeps responses."""

    entries: Keep = Keep()
    """For each namespace that is not in `namespaces`."""
    namespaces: dict[str, Keep] = {}
    receipts: Keep = Keep(rows=100_000)
    bytes: int = 1 << 30
    """The maximum size of the whole store."""

    def of(self, namespace: str) -> Keep:
        return self.namespaces.get(namespace, self.entries)
