"""What one exchange leaves behind as it goes: how it went, and, as long as there is room, its bytes.

The hot path is `came` and `went`, once per chunk: a reference is kept, nothing is copied or encoded.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from ...credentials.secret import Secret
from ...model.events import Event, Failed, Usage
from ...model.messages import Notice, Search
from ...tools.receipts import CallReceipt
from .compact import ALIVE, CAME, STATUS, WENT, WHOLE, Thing, records
from .records import Answered, Asked, Broke, Came, Ended, Read, Record, Said, Searched, Setup, Went

if TYPE_CHECKING:
    from ...routing.router import Choice
    from ...translation.exchange import Exchange
    from .subscribers import Tap

RUNNING = "running"
# Bytes that may pass before the ring hears of them.
_COUNTED_AT_LEAST = 16 * 1024
# Bytes, about, that is taken beside what is carried: by a chunk, and by any other record.
_CHUNK = 56
_RECORD = 120

_NO_USAGE = Usage()
_NO_THINGS: list[Thing] = []
_NO_TIMES = array("d")
_NO_KINDS = bytearray()
"""Of those who keep no records: they are all the same."""


class Try:
    """One target that was tried, and what came of it."""

    __slots__ = ("began", "failure", "seconds", "target", "why")

    def __init__(self, target: str, why: str) -> None:
        self.target = target
        self.why = why
        self.began = monotonic()
        self.seconds: float | None = None
        """None while it goes on."""
        self.failure: Failed | None = None

    def so_far(self) -> float:
        return monotonic() - self.began

    def over(self, failure: Failed | None, now: float) -> None:
        self.seconds = now - self.began
        self.failure = failure


class Track:
    """One exchange, seen from outside."""

    __slots__ = (
        "_came", "_counted", "_kinds", "_receipts", "_tap", "_things", "_times", "_uncounted", "_usage",
        "at", "began", "bytes_in", "bytes_out", "calls", "choice", "client", "dropped", "exchange",
        "failure", "first_event", "id", "keeps", "model", "notices", "outcome", "profile", "seconds",
        "secrets", "status", "stream", "tries",
    )  # fmt: skip

    def __init__(self, tap: Tap, id: str, client: str, at: float) -> None:
        self.id = id
        self.client = client
        self.at = at
        self.began = monotonic()
        self.profile: str | None = None
        self.model = ""
        self.stream = False
        self.choice: Choice | None = None
        self.tries: list[Try] = []
        self.exchange: Exchange | None = None
        """The answer that is under way."""
        self.notices: Sequence[Notice] = ()
        self.outcome = RUNNING
        self.status = 0
        self.seconds = 0.0
        self.first_event: float | None = None
        self.failure: Failed | None = None
        self.secrets: list[Secret] = []
        """What must not be shown of it, beside what no exchange shows."""
        self.calls = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.keeps = False
        """Are the records all here?"""
        self.dropped = 0
        """Records a subscriber did not get."""
        self._things: list[Thing] = []
        self._times = array("d")
        self._kinds = bytearray()
        """These three are the records: see `kept.py`."""
        self._came = b""
        """What came last."""
        self._counted = 0
        """What the ring has heard of."""
        self._uncounted = 0
        self._tap = tap
        self._usage = _NO_USAGE
        self._receipts: Sequence[CallReceipt] = ()

    @property
    def usage(self) -> Usage:
        return self.exchange.usage if self.exchange is not None else self._usage

    @property
    def receipts(self) -> Sequence[CallReceipt]:
        return self.exchange.receipts if self.exchange is not None else self._receipts

    @property
    def records(self) -> list[Record]:
        """Everything there is room for; nothing once there was not."""
        found = records(self._kinds, self._times, self._things)
        if self.keeps and self.outcome != RUNNING:
            found.append(self._end())
        return found

    def elapsed(self) -> float:
        return monotonic() - self.began

    def read(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        """The client's request is here; `path` and `headers` are as they may be shown."""
        t = monotonic() - self.began
        self._note(Read(t, method, path, headers, body), t, len(body))

    def tries_target(self, choice: Choice) -> None:
        """A target is tried, for the first time or once more."""
        self.choice = choice
        self.tries.append(Try(choice.key, choice.why))
        if self._tap.ears:
            self._rouse()

    def asked(
        self,
        url: str,
        headers: dict[str, str],
        body: bytes,
        setup: Setup,
        *,
        again: bool,
    ) -> None:
        """An upstream is sent a request; `url` and `headers` are as they may be shown."""
        assert self.choice is not None
        self.calls += 1
        upstream = self.choice.upstream
        t = monotonic() - self.began
        record = Asked(t, self.calls, upstream.name, upstream.protocol, url, headers, body, again, setup)
        self._note(record, t, len(body))

    def answered(self, status: int) -> None:
        """The head of an upstream's answer came."""
        t = monotonic() - self.began
        if self.keeps:
            self._things.append(status)
            self._times.append(t)
            self._kinds.append(STATUS)
            self._uncounted += _CHUNK
        if self._tap.ears:
            self._call_out(Answered(t, self.calls, status), 0)

    def came(self, data: bytes) -> None:
        """The upstream sent some bytes."""
        size = len(data)
        self.bytes_in += size
        t = monotonic() - self.began
        if self.keeps:
            self._came = data
            self._things.append(data)
            self._times.append(t)
            self._kinds.append(CAME)
            self._uncounted += _CHUNK + size
            if self._uncounted > _COUNTED_AT_LEAST:
                self._tell_ring()
        if self._tap.record_ears:
            self._tell(Came(t, self.calls, data), size)

    def searched(self, found: Sequence[Search]) -> None:
        """The searches that the upstream's answer asks for were run."""
        t, data = monotonic() - self.began, msgspec.json.encode(found)
        self._note(Searched(t, self.calls, data), t, len(data))

    def went(self, data: bytes, alive: bool = False) -> None:
        """The client was sent some bytes."""
        size = len(data)
        self.bytes_out += size
        t = monotonic() - self.began
        if self.keeps:
            # What passes as it came is there already.
            same = data == self._came
            self._things.append(self._came if same else data)
            self._times.append(t)
            self._kinds.append(ALIVE if alive else WENT)
            self._uncounted += _CHUNK if same else _CHUNK + size
            if self._uncounted > _COUNTED_AT_LEAST:
                self._tell_ring()
        if self._tap.record_ears:
            self._tell(Went(t, data, alive), size)

    def said(self, events: list[Event]) -> None:
        """The client is told `events`."""
        for ear in self._tap.event_ears:
            if not ear.hear(self, Said(self.elapsed(), tuple(events)), 0):
                self.dropped += 1

    def first(self) -> float:
        """The first thing worth sending has come; says when that is."""
        now = monotonic()
        if self.first_event is None:
            self.first_event = now - self.began
            if self._tap.ears:
                self._rouse()
        return now

    def try_failed(self, failure: Failed) -> None:
        """The target that was tried last will not do, or broke off."""
        now = monotonic()
        if self.tries and self.tries[-1].seconds is None:
            self.tries[-1].over(failure, now)
        own = self.exchange is not None and self.exchange.failure is not None
        t = now - self.began
        self._note(Broke(t, self.calls, failure, own), t, 0)

    def ended(self, outcome: str, status: int) -> None:
        """However it ended: answered, refused, or left by its client."""
        if self.outcome != RUNNING:
            return
        now = monotonic()
        self.seconds = now - self.began
        self.status = status
        self.outcome = outcome
        if self.tries and self.tries[-1].seconds is None:
            self.tries[-1].over(self.failure, now)
        if self.exchange is not None:
            # The rest of it is done with, and large.
            self._usage, self._receipts = self.exchange.usage, self.exchange.receipts
            self.exchange = None
        said = 0
        for receipt in self._receipts:
            said += len(receipt.received) + len(receipt.sent)
        self._came = b""
        if self.keeps:
            self._uncounted += _RECORD + said
            self._tell_ring()
        if self._tap.ears:
            self._call_out(self._end(), said)
        self._tap.ended(self)

    def _end(self) -> Ended:
        """Made when somebody looks: all of it is here in any case."""
        return Ended(self.seconds, self.outcome, self.status, self.failure, self.dropped)

    def forget(self) -> int:
        """Lets the bytes go; says how many of them were counted."""
        size, self._counted = self._counted, 0
        self._uncounted = 0
        self.keeps = False
        # Others may be looking through the old ones, and nothing is added any more.
        self._things, self._times, self._kinds = _NO_THINGS, _NO_TIMES, _NO_KINDS
        self._came = b""
        return size

    def _note(self, record: Record, t: float, size: int) -> None:
        """Something happened at `t` that is more than bytes."""
        if self.keeps:
            self._things.append(record)
            self._times.append(t)
            self._kinds.append(WHOLE)
            self._uncounted += _RECORD + size
            if self._uncounted > _COUNTED_AT_LEAST:
                self._tell_ring()
        if self._tap.ears:
            self._call_out(record, size)

    def _call_out(self, record: Record, size: int) -> None:
        """To whoever listens."""
        if self._tap.record_ears:
            self._tell(record, size)
        self._rouse()

    def _tell_ring(self) -> None:
        """What was not counted yet is."""
        size, self._uncounted = self._uncounted, 0
        self._counted += size
        ring = self._tap.ring
        ring.size += size
        if ring.size > ring.limit:
            ring.shrink()

    def _tell(self, record: Record, size: int) -> None:
        for ear in self._tap.record_ears:
            if not ear.hear(self, record, size):
                self.dropped += 1

    def _rouse(self) -> None:
        for ear in self._tap.ears:
            ear.rouse(self)
