"""What goes into a store and comes out of it, whichever store it is."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ..model.errors import DragomanError

# The namespaces of entries.
TURNS = "turns"
"""What an answer said that its client has no place for, by issuer and call."""
ISSUERS = "issuers"
"""Which upstream made a piece of opaque reasoning."""
ALIASES = "aliases"
"""Call ids too long for a client, by the hash it got instead."""
RESPONSES = "responses"
ITEMS = "items"
"""What stored responses are made of, by content: a history that is sent again is not kept again."""
ITEM_IDS = "item-ids"

_DAY = 86_400.0


class StoreError(DragomanError):
    """The store cannot be opened, read or written."""

    status = 503


class Key(NamedTuple):
    """Where an entry is found."""

    namespace: str
    key: str


class Entry(msgspec.Struct, frozen=True):
    """Something to keep."""

    key: Key
    value: bytes


class Receipt(msgspec.Struct, frozen=True):
    """One exchange's receipt: what it can be found by, and what whoever writes receipts has encoded."""

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
    """1 if it did."""
    mended: int = 0
    rules: str = ""
    """With a space before and after each."""
    words: str = ""
    """In lower case."""
    summary: bytes = b""
    value: bytes = b""
    """Everything else. Left out in lists."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which receipts."""

    since: float = 0.0
    before: float = float("inf")
    after: tuple[float, str] | None = None
    """Only what comes behind this one (by time and id), in a list that begins with the newest."""
    client: str | None = None
    profile: str | None = None
    model: str | None = None
    """A glob."""
    outcome: str | None = None
    status: int | None = None
    rule: str | None = None
    slow: float | None = None
    """Took at least so many seconds."""
    failed: bool = False
    mended: bool = False
    words: tuple[str, ...] = ()
    """Each has to be in the receipt's words."""
    limit: int = 100


class Keep(msgspec.Struct, frozen=True):
    """How long, and how many at most; what expires first goes first."""

    seconds: float = 30 * _DAY
    rows: int = 200_000


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept for how long. OpenAI keeps responses for thirty days, so that is what clients expect."""

    entries: Keep = Keep()
    """For each namespace that has no word of its own."""
    namespaces: dict[str, Keep] = {}
    receipts: Keep = Keep(rows=100_000)
    bytes: int = 1 << 30
    """Of everything together."""

    def of(self, namespace: str) -> Keep:
        return self.namespaces.get(namespace, self.entries)
