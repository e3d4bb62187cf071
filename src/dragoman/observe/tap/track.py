"""Records one exchange: its state, and its bytes as long as the ring has room.

The hot path is `record_upstream_bytes` and `record_client_bytes`, once per chunk: they keep a reference to
the chunk, and copy and encode nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from ...credentials.secret import Secret
from ...model.events import Failed, Usage
from ...model.messages import Notice, Search
from ...tools.receipts import CallReceipt
from ..caching import PromptFingerprint
from .attempt_track import AttemptTrack
from .compact import KEEPALIVE, RECEIVED, RECORD, SENT, STATUS, Packed, records
from .records import (
    ClientBytes,
    ClientRequest,
    ExchangeEnded,
    Record,
    ReplaySetup,
    SearchResults,
    UpstreamBytes,
    UpstreamFailure,
    UpstreamRequest,
    UpstreamStatus,
)

if TYPE_CHECKING:
    from ...routing.router import ChosenTarget
    from ...translation.translation import Translation
    from .subscribers import Tap

RUNNING = "running"
# Bytes that a track collects before it reports its size to the ring.
_COUNTED_AT_LEAST = 16 * 1024
# Estimated overhead in bytes of a chunk, and of any other record.
_CHUNK = 56
_RECORD = 120

_NO_USAGE = Usage()
_NO_PACKED: list[Packed] = []
_NO_TIMES = array("d")
_NO_KINDS = bytearray()
"""Shared by all tracks without records."""


class Track:
    """The state and the records of one exchange."""

    __slots__ = (
        "_counted",
        "_kinds",
        "_last_received",
        "_packed",
        "_receipts",
        "_tap",
        "_times",
        "_uncounted",
        "_usage",
        "at",
        "attempts",
        "began",
        "bytes_in",
        "bytes_out",
        "calls",
        "choice",
        "client",
        "cost",
        "dropped",
        "exchange",
        "failure",
        "first_event",
        "id",
        "keeps_records",
        "key",
        "limit_warnings",
        "model",
        "notices",
        "opening",
        "outcome",
        "profile",
        "prompt",
        "seconds",
        "secrets",
        "session",
        "spent",
        "status",
        "stream",
        "team",
    )  # fmt: skip

    def __init__(self, tap: Tap, id: str, client: str, at: float) -> None:
        self.id = id
        self.client = client
        self.at = at
        self.began = monotonic()
        self.key = ""
        """The name of the client's key; empty for a key without a name."""
        self.team = ""
        self.session = ""
        """The conversation, as a hash."""
        self.opening = ""
        """The first words of the user."""
        self.prompt: PromptFingerprint | None = None
        """The fingerprint of the last request to an upstream; see `observe/caching`."""
        self.limit_warnings: tuple[str, ...] = ()
        """A sentence for each limit that is nearly reached, or that cannot be counted."""
        self.profile: str | None = None
        self.model = ""
        self.stream = False
        self.choice: ChosenTarget | None = None
        self.attempts: list[AttemptTrack] = []
        self.exchange: Translation | None = None
        """The running translation."""
        self.notices: Sequence[Notice] = ()
        self.outcome = RUNNING
        self.status = 0
        self.seconds = 0.0
        self.first_event: float | None = None
        self.failure: Failed | None = None
        self.secrets: list[Secret] = []
        """Secrets of this exchange, in addition to those of the process."""
        self.spent = _NO_USAGE
        """Token counts of all attempts so far. `usage` is that of the answer alone."""
        self.cost: float | None = 0.0
        """US dollars for all attempts so far; None if the price of one is unknown."""
        self.calls = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.keeps_records = False
        """All records are still in memory."""
        self.dropped = 0
        """Records that a subscription lost."""
        self._packed: list[Packed] = []
        self._times = array("d")
        self._kinds = bytearray()
        """These three hold the records: see `compact.py`."""
        self._last_received = b""
        """The upstream's last chunk."""
        self._counted = 0
        """Bytes that the ring has counted."""
        self._uncounted = 0
        self._tap = tap
        self._usage = _NO_USAGE
        self._receipts: Sequence[CallReceipt] = ()

    def restore(self, records: Sequence[Record]) -> None:
        """Take over the records of an exchange of the past."""
        self.keeps_records = True
        for record in records:
            if isinstance(record, ExchangeEnded):
                self.outcome, self.status, self.seconds = record.outcome, record.status, record.t
                self.failure, self.dropped = record.failure, record.dropped
                continue
            self._packed.append(record)
            self._times.append(record.t)
            self._kinds.append(RECORD)

    @property
    def usage(self) -> Usage:
        return self.exchange.usage if self.exchange is not None else self._usage

    @property
    def receipts(self) -> Sequence[CallReceipt]:
        return self.exchange.receipts if self.exchange is not None else self._receipts

    @property
    def records(self) -> list[Record]:
        """All records; empty if the ring has dropped them."""
        found = records(self._kinds, self._times, self._packed)
        if self.keeps_records and self.outcome != RUNNING:
            found.append(self._end())
        return found

    def elapsed(self) -> float:
        return monotonic() - self.began

    def record_client_request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        """The client's request arrived. `path` and `headers` must not hold secrets."""
        t = monotonic() - self.began
        self._note(ClientRequest(t, method, path, headers, body), t, len(body))

    def translation_started(self, exchange: Translation) -> None:
        """The running attempt translates its answers with `exchange`."""
        self.exchange = exchange
        self.attempts[-1].translated = True

    def attempt_started(self, choice: ChosenTarget) -> None:
        self.choice = choice
        self.attempts.append(AttemptTrack(choice.key, choice.why))
        if self._tap.subscriptions:
            self._notify()

    def record_upstream_request(
        self,
        url: str,
        headers: dict[str, str],
        body: bytes,
        setup: ReplaySetup | None,
        *,
        again: bool,
    ) -> None:
        """A request goes to the upstream. `url` and `headers` must not hold secrets.

        `setup` is None if the request passes as it is: nothing is translated, so nothing can be replayed.
        """
        assert self.choice is not None
        self.calls += 1
        upstream = self.choice.upstream
        t = monotonic() - self.began
        record = UpstreamRequest(
            t, self.calls, upstream.name, upstream.protocol, url, headers, body, again, setup
        )
        self._note(record, t, len(body))

    def record_upstream_status(self, status: int) -> None:
        """The status of the upstream's answer arrived."""
        t = monotonic() - self.began
        if self.keeps_records:
            self._packed.append(status)
            self._times.append(t)
            self._kinds.append(STATUS)
            self._uncounted += _CHUNK
        if self._tap.subscriptions:
            self._publish(UpstreamStatus(t, self.calls, status), 0)

    def record_upstream_bytes(self, data: bytes) -> None:
        """The upstream sent a chunk."""
        size = len(data)
        self.bytes_in += size
        t = monotonic() - self.began
        if self.keeps_records:
            self._last_received = data
            self._packed.append(data)
            self._times.append(t)
            self._kinds.append(RECEIVED)
            self._uncounted += _CHUNK + size
            if self._uncounted > _COUNTED_AT_LEAST:
                self._count_in_ring()
        if self._tap.record_subscriptions:
            self._put(UpstreamBytes(t, self.calls, data), size)

    def count(self, usage: Usage, cost: float | None) -> None:
        """Add what an attempt used, or a question that Dragoman asked itself. A `cost` of None: unknown."""
        self.spent = usage if self.spent is _NO_USAGE else self.spent.plus(usage)
        self.cost = None if cost is None or self.cost is None else self.cost + cost

    def record_searches(self, found: Sequence[Search]) -> None:
        """The searches that the upstream's answer asked for were run."""
        t, data = monotonic() - self.began, msgspec.json.encode(found)
        self._note(SearchResults(t, self.calls, data), t, len(data))

    def record_client_bytes(self, data: bytes, alive: bool = False) -> None:
        """The client was sent a chunk."""
        size = len(data)
        self.bytes_out += size
        t = monotonic() - self.began
        if self.keeps_records:
            # A verbatim chunk shares the memory of the upstream's chunk.
            same = data == self._last_received
            self._packed.append(self._last_received if same else data)
            self._times.append(t)
            self._kinds.append(KEEPALIVE if alive else SENT)
            self._uncounted += _CHUNK if same else _CHUNK + size
            if self._uncounted > _COUNTED_AT_LEAST:
                self._count_in_ring()
        if self._tap.record_subscriptions:
            self._put(ClientBytes(t, data, alive), size)

    def first_content(self) -> float:
        """The first content of the answer arrived. Returns the time."""
        now = monotonic()
        for attempt in self.attempts[-1:]:
            attempt.first_event = now - attempt.began
        if self.first_event is None:
            self.first_event = now - self.began
            if self._tap.subscriptions:
                self._notify()
        return now

    def attempt_failed(self, failure: Failed) -> None:
        now = monotonic()
        if self.attempts and self.attempts[-1].seconds is None:
            self.attempts[-1].end(failure, now)
        own = self.exchange is not None and self.exchange.failure is not None
        t = now - self.began
        self._note(UpstreamFailure(t, self.calls, failure, own), t, 0)

    def ended(self, outcome: str, status: int) -> None:
        """The exchange is over: answered, failed, or cancelled by its client."""
        if self.outcome != RUNNING:
            return
        now = monotonic()
        self.seconds = now - self.began
        self.status = status
        self.outcome = outcome
        if self.attempts and self.attempts[-1].seconds is None:
            self.attempts[-1].end(self.failure, now)
        if self.exchange is not None:
            # Keep only these two: the exchange itself is large.
            self._usage, self._receipts = self.exchange.usage, self.exchange.receipts
            self.exchange = None
        size = 0
        for receipt in self._receipts:
            size += len(receipt.received) + len(receipt.sent)
        self._last_received = b""
        if self.keeps_records:
            self._uncounted += _RECORD + size
            self._count_in_ring()
        if self._tap.subscriptions:
            self._publish(self._end(), size)
        self._tap.ended(self)

    def _end(self) -> ExchangeEnded:
        """Built on demand: the track has all its members anyway."""
        return ExchangeEnded(self.seconds, self.outcome, self.status, self.failure, self.dropped)

    def forget(self) -> int:
        """Drop the records. Returns the size that the ring had counted."""
        size, self._counted = self._counted, 0
        self._uncounted = 0
        self.keeps_records = False
        # Replace the lists instead of clearing them: another thread may be reading the old ones.
        self._packed, self._times, self._kinds = _NO_PACKED, _NO_TIMES, _NO_KINDS
        self._last_received = b""
        return size

    def _note(self, record: Record, t: float, size: int) -> None:
        """Add a record that is not a chunk."""
        if self.keeps_records:
            self._packed.append(record)
            self._times.append(t)
            self._kinds.append(RECORD)
            self._uncounted += _RECORD + size
            if self._uncounted > _COUNTED_AT_LEAST:
                self._count_in_ring()
        if self._tap.subscriptions:
            self._publish(record, size)

    def _publish(self, record: Record, size: int) -> None:
        """Send a record to the subscriptions and wake them."""
        if self._tap.record_subscriptions:
            self._put(record, size)
        self._notify()

    def _count_in_ring(self) -> None:
        """Report the uncounted bytes to the ring."""
        size, self._uncounted = self._uncounted, 0
        self._counted += size
        ring = self._tap.ring
        ring.size += size
        if ring.size > ring.limit:
            ring.shrink()

    def _put(self, record: Record, size: int) -> None:
        for subscription in self._tap.record_subscriptions:
            if not subscription.put(self, record, size):
                self.dropped += 1

    def _notify(self) -> None:
        for subscription in self._tap.subscriptions:
            subscription.notify(self)
