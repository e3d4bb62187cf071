"""The types of the `Store` contract."""

from __future__ import annotations

from typing import Literal, NamedTuple

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
SEARCHES = "searches"
"""Results of web searches that the client's protocol cannot carry, by scope and the call beside them."""
DESCRIPTIONS = "descriptions"
"""What images show, by the describing model and the content of the image."""
OWNERS = "owners"
"""Which key made a file or a batch, by its upstream and its id there."""

_DAY = 86_400.0


class StoreError(DragomanError):
    """The store cannot be opened, read or written."""

    status = 503


class EntryKey(NamedTuple):
    """The address of an entry."""

    namespace: str
    key: str


class StoredEntry(msgspec.Struct, frozen=True):
    """A key and its value."""

    key: EntryKey
    value: bytes


class ScoreCount(NamedTuple):
    """Something that one exchange adds to the scores of a target."""

    upstream: str
    model: str
    """The model's name at the upstream."""
    kind: str
    """What is counted; the layer above defines the kinds and their names."""
    name: str
    number: int


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
    key: str = ""
    """The name of the client's key; empty for a key without a name."""
    team: str = ""
    upstream: str = ""
    session: str = ""
    """The conversation, as a hash."""
    input: int = 0
    """Tokens of the whole prompt, including cached ones."""
    output: int = 0
    cached: int = 0
    """Tokens of the prompt that the upstream read from its cache."""
    reasoning: int = 0
    """Tokens of `output` that are reasoning."""
    calls: int = 0
    invalid: int = 0
    micros: int | None = None
    """The cost in millionths of a US dollar, so that sums are exact; None if the price is unknown."""
    opening: str = ""
    """The first words of the user in this conversation."""
    summary: bytes = b""
    value: bytes = b""
    """The full receipt. Lists leave it out."""
    scores: tuple[ScoreCount, ...] = ()
    """What the exchange adds to the scores. Only the sums are kept: a receipt that is read has none."""

    @property
    def size(self) -> int:
        """The memory that it needs, in bytes: nearly all of it is here."""
        return len(self.summary) + len(self.value)


RECEIPT_COLUMNS = Receipt.__struct_fields__[:-1]
"""The members that each receipt keeps; the last is `value`."""


def micros(dollars: float | None) -> int | None:
    """A cost as receipts keep it."""
    return None if dollars is None else round(dollars * 1e6)


class ReceiptQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of `GET /exchanges`, and the place in the list to continue from."""

    since: float = 0.0
    before: float = float("inf")
    after: tuple[float, str] | None = None
    """Return only receipts after this one (time, id) in the list, which starts with the newest."""
    client: str | None = None
    profile: str | None = None
    key: str | None = None
    team: str | None = None
    upstream: str | None = None
    session: str | None = None
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
    details: bool = False
    """Return the receipts with their `value`."""
    limit: int = 100


UsageGroup = Literal["all", "key", "team", "model", "upstream", "session", "day", "hour"]


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for sums over receipts. The sums are kept by the hour, so times are cut to whole hours."""

    by: UsageGroup = "all"
    """`all` gives one row. Days and hours are those of UTC."""
    since: float = 0.0
    """Seconds since the epoch; the whole hour of `since` is included."""
    until: float = float("inf")
    """The hour of `until` is included, unless `until` is its first moment."""
    key: str | None = None
    team: str | None = None
    model: str | None = None
    upstream: str | None = None
    session: str | None = None


class UsageRow(msgspec.Struct, frozen=True):
    """Sums over the receipts of one group."""

    group: str
    """The key, team, model, upstream or session; "2026-05-01" for a day, "2026-05-01T13" for an hour."""
    requests: int = 0
    failed: int = 0
    """Requests that failed."""
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    micros: int = 0
    """The cost in millionths of a US dollar, of the requests whose price is known."""
    unpriced: int = 0
    """Requests whose price is unknown."""
    calls: int = 0
    mended: int = 0
    """Calls that a rule changed."""
    invalid: int = 0

    @property
    def cost(self) -> float:
        """The known cost in US dollars."""
        return self.micros / 1e6


class ScoreQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for the counts of targets. They are kept by the day of UTC, so times are cut to whole days."""

    since: float = 0.0
    """Seconds since the epoch; the whole day of `since` is included."""
    until: float = float("inf")
    """The day of `until` is included, unless `until` is its first moment."""
    upstream: str | None = None
    model: str | None = None
    """The model's name at the upstream."""
    by_day: bool = False
    """One row for each day, instead of one for all days."""


class ScoreRow(msgspec.Struct, frozen=True):
    """One count of one target."""

    day: int
    """Days since the epoch; 0 if the row is the sum of all days."""
    upstream: str
    model: str
    kind: str
    name: str
    count: int


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The filters of `GET /sessions`, and the place in the list to continue from."""

    session: str | None = None
    key: str | None = None
    since: float = 0.0
    """Only sessions with a request since then."""
    after: tuple[float, str] | None = None
    """Return only sessions after this one (last, session) in the list, which starts with the newest."""
    limit: int = 100


class SessionRow(msgspec.Struct, frozen=True):
    """One conversation."""

    session: str
    key: str
    team: str
    profile: str
    """The agent."""
    opening: str
    first: float
    """The start of the first request, in seconds since the epoch."""
    last: float
    """The start of the last request."""
    models: tuple[UsageRow, ...] = ()
    """Sums for each model; `group` is the model."""


class StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the gateway that was made at run time. The secret itself is not stored."""

    name: str
    hash: bytes
    """SHA-256 of the secret. The secret has 256 random bits, so a slow hash would add nothing."""
    prefix: str = ""
    """The first characters of the secret, to recognise it by."""
    team: str = ""
    role: str = "user"
    models: tuple[str, ...] = ()
    """Globs of the models that the key may use; empty: all."""
    limits: bytes = b"{}"
    """JSON, as `access` defines it."""
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    last_used: float | None = None


class Addition(NamedTuple):
    """A change of one counter."""

    counter: str
    amount: int
    """May be negative. 0 reads the counter."""
    expires: float
    """When a counter that begins with this addition starts again from 0, in seconds since the epoch."""


class StoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What `dragoman store status` tells about a store."""

    engine: str
    place: str
    """The file or the database, without a password."""
    version: int
    """The version of the tables."""
    pending: int
    """Migrations that have not run yet."""
    bytes: int
    """The size on disk, without freed space."""
    receipts: int
    entries: int
    estimated: bool = False
    """The numbers of rows are estimates: counting millions of rows takes too long."""
    oldest: float | None = None
    """The time of the oldest receipt."""


class Pruned(msgspec.Struct, frozen=True):
    """How many rows were deleted."""

    receipts: int = 0
    entries: int = 0


class RetentionRule(msgspec.Struct, frozen=True):
    """How long to keep rows, and how many. The rows that expire first are deleted first."""

    seconds: float = 30 * _DAY
    rows: int = 200_000


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long data is kept. The default is 30 days, as long as OpenAI keeps responses."""

    entries: RetentionRule = RetentionRule()
    """For each namespace that is not in `namespaces`."""
    namespaces: dict[str, RetentionRule] = {}
    receipts: RetentionRule = RetentionRule(rows=100_000)
    usage: float = 400 * _DAY
    """Seconds to keep the sums of `UsageQuery` and `ScoreQuery`: longer than receipts, so that a year can be
    compared."""
    bytes: int = 1 << 30
    """The maximum size of the whole store."""

    def of(self, namespace: str) -> RetentionRule:
        return self.namespaces.get(namespace, self.entries)
