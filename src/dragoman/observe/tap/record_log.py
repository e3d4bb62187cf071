"""The records of one exchange: kept as long as the ring has room, and copied to subscriptions.

The hot path is `record_upstream_bytes` and `record_client_bytes`, once per chunk: they keep a reference to
the chunk, and copy and encode nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from ...model.messages import Search
from .compact import KEEPALIVE, RECEIVED, RECORD, SENT, Packed, records
from .records import ClientBytes, ClientRequest, Record, SearchResults, UpstreamBytes, UpstreamStatus

if TYPE_CHECKING:
    from .subscribers import Tap

# Bytes that are collected before their size is reported to the ring.
_COUNTED_AT_LEAST = 16 * 1024
# Estimated overhead in bytes of a chunk, and of any other record.
_CHUNK = 56
_RECORD = 120

_NO_PACKED: list[Packed] = []
_NO_TIMES = array("d")
_NO_KINDS = bytearray()
"""Shared by all exchanges without records."""


class RecordLog:
    """The records of one exchange. `Track` adds what they mean."""

    __slots__ = (
        "_counted", "_kinds", "_last_received", "_packed", "_tap", "_times", "_uncounted", "began",
        "bytes_in", "bytes_out", "calls", "dropped", "keeps_records",
    )  # fmt: skip

    def __init__(self, tap: Tap) -> None:
        self.began = monotonic()
        self.calls: int = 0
        """HTTP requests to upstreams."""
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

    def elapsed(self) -> float:
        return monotonic() - self.began

    @property
    def records(self) -> list[Record]:
        """All records so far; empty if the ring has dropped them."""
        return records(self._kinds, self._times, self._packed)

    def restore(self, records: Sequence[Record]) -> None:
        """Take over the records of an exchange of the past."""
        self.keeps_records = True
        for record in records:
            self._packed.append(record)
            self._times.append(record.t)
            self._kinds.append(RECORD)

    def record_client_request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        """The client's request arrived. `path` and `headers` must not hold secrets."""
        t = monotonic() - self.began
        self._add(ClientRequest(t, method, path, headers, body), t, len(body))

    def record_upstream_status(self, status: int) -> None:
        """The status of the upstream's answer arrived."""
        t = monotonic() - self.began
        self._add(UpstreamStatus(t, self.calls, status), t, 0)

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

    def record_searches(self, found: Sequence[Search]) -> None:
        """The searches that the upstream's answer asked for were run."""
        t, data = monotonic() - self.began, msgspec.json.encode(found)
        self._add(SearchResults(t, self.calls, data), t, len(data))

    def record_client_bytes(self, data: bytes, alive: bool = False) -> None:
        """The client was sent a chunk."""
        size = len(data)
        self.bytes_out += size
        t = monotonic() - self.began
        if self.keeps_records:
            # A chunk that passed as it came shares the memory of the upstream's chunk.
            same = data == self._last_received
            self._packed.append(self._last_received if same else data)
            self._times.append(t)
            self._kinds.append(KEEPALIVE if alive else SENT)
            self._uncounted += _CHUNK if same else _CHUNK + size
            if self._uncounted > _COUNTED_AT_LEAST:
                self._count_in_ring()
        if self._tap.record_subscriptions:
            self._put(ClientBytes(t, data, alive), size)

    def count_unrecorded(self, size: int) -> None:
        """A piece of the answer passed on that is too long to be kept."""
        self.bytes_in += size
        self.bytes_out += size

    def forget(self) -> int:
        """Drop the records. Returns the size that the ring had counted."""
        size, self._counted = self._counted, 0
        self._uncounted = 0
        self.keeps_records = False
        # Replace the lists instead of clearing them: another thread may be reading the old ones.
        self._packed, self._times, self._kinds = _NO_PACKED, _NO_TIMES, _NO_KINDS
        self._last_received = b""
        return size

    def _add(self, record: Record, t: float, size: int) -> None:
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

    def _close(self, size: int) -> None:
        """Nothing follows but the end, which takes `size` bytes."""
        self._last_received = b""
        if self.keeps_records:
            self._uncounted += _RECORD + size
            self._count_in_ring()

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
        """Copy a record to the subscriptions."""
        raise NotImplementedError

    def _notify(self) -> None:
        """Wake the subscriptions."""
        raise NotImplementedError
