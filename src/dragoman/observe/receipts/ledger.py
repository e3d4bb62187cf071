"""Write receipts to the store: in batches, in the store's thread, after the answer was sent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

import msgspec

from ...credentials.secret import Secret
from ...store import Receipt, ScoreCount, Store, StoreError, micros
from ..tap import Redactor, Track
from .detail import detail
from .score_counts import score_counts
from .summary import ExchangeSummary, Tokens, summary

log = logging.getLogger("dragoman.gateway")

# Seconds that a receipt waits for others of its batch.
_BATCH_SECONDS = 0.25
# Characters of a call's arguments that a receipt keeps. The ring has the full bytes.
LONGEST_KEPT = 4096
_MAX_PENDING = 10_000
# Seconds. A store that takes longer writes the rest when it is closed.
_CLOSE_TIMEOUT = 2.0

_NO_TOKENS = Tokens(0, 0, 0, 0)

_encode = msgspec.json.Encoder().encode


def _ignore(count: int) -> None:
    """The callback of a caller that needs none."""


class Ledger:
    """Takes the tracks of finished exchanges and writes their receipts."""

    def __init__(self, store: Store, redactor: Redactor, on_lost: Callable[[int], None] = _ignore) -> None:
        """`on_lost` is told how many receipts were lost."""
        self.pending: dict[str, Track] = {}
        """Finished exchanges that are not in the store yet."""
        self._store = store
        self._redactor = redactor
        self._gathered: list[Track] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: set[Future[None]] = set()
        self._warned = False
        self._on_lost = on_lost
        self.lost = 0
        """Receipts that could not be written, in this process."""

    def add(self, track: Track) -> None:
        if len(self.pending) >= _MAX_PENDING:
            self._lose(1, StoreError(self._store.problem or "the store writes too slowly"))
            return
        self.pending[track.id] = track
        self._gathered.append(track)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_BATCH_SECONDS, self._flush)

    async def close(self) -> None:
        """Write the receipts that are still pending."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()
        writing = [asyncio.wrap_future(job) for job in tuple(self._writing)]
        if writing:
            await asyncio.wait(writing, timeout=_CLOSE_TIMEOUT)

    def _flush(self) -> None:
        """Hand the batch to the store's thread. The event loop does no further work for it."""
        self._timer = None
        tracks, self._gathered = self._gathered, []
        try:
            job = self._store.add_receipts(lambda: self._receipts(tracks))
        except StoreError as error:
            self._done(tracks, error)
            return
        self._writing.add(job)
        job.add_done_callback(lambda job: self._written(tracks, job))

    def _written(self, tracks: list[Track], job: Future[None]) -> None:
        """Runs in the store's thread."""
        self._done(tracks, job.exception())
        self._writing.discard(job)

    def _done(self, tracks: list[Track], error: BaseException | None) -> None:
        if error is None:
            self._warned = False
        else:
            self._lose(len(tracks), error)
        for track in tracks:
            self.pending.pop(track.id, None)

    def _lose(self, count: int, error: BaseException) -> None:
        """Count lost receipts. Log them once until a write succeeds again."""
        self.lost += count
        self._on_lost(count)
        if not self._warned:
            self._warned = True
            fault = (
                None if isinstance(error, StoreError) else error
            )  # a bug needs its traceback, a full disk does not
            log.warning("receipts are lost: %s", error, exc_info=fault)

    def _shortened(self, track: Track, text: str) -> str:
        """The part of a call's arguments to keep. Redact before the cut: half a secret would not be found."""
        if len(text) <= LONGEST_KEPT:
            return text
        return self._redactor.scrub_text(text, track.secrets)[:LONGEST_KEPT]

    def _receipts(self, tracks: list[Track]) -> list[Receipt]:
        """The receipts of `tracks`, redacted. The search fields come from the redacted text, too."""
        summaries: list[ExchangeSummary] = []
        shown: list[bytes] = []
        values: list[bytes] = []
        scores: list[tuple[ScoreCount, ...]] = []
        for track in tracks:
            try:
                one = summary(track, recorded=False, opening=track.opening)
                encoded, value = _encode(one), _encode(detail(track, partial(self._shortened, track)))
                counted = score_counts(track)
            except Exception:  # write the other receipts of the batch
                log.exception("the receipt of an exchange cannot be written", extra={"exchange": track.id})
                self.lost += 1
                self._on_lost(1)
                continue
            summaries.append(one)
            shown.append(encoded)
            values.append(value)
            scores.append(counted)
        secrets = {secret for track in tracks for secret in track.secrets}
        safe = self._redactor.scrub_all([*shown, *values], secrets)
        return [
            receipt_from(one, clean, value, counted)
            if clean == was
            else receipt_from(_redacted(one, clean), clean, value, self._named(counted, secrets))
            for one, was, clean, value, counted in zip(
                summaries, shown, safe, safe[len(summaries) :], scores, strict=False
            )
        ]

    def _named(self, counted: tuple[ScoreCount, ...], secrets: Iterable[Secret]) -> tuple[ScoreCount, ...]:
        """The same counts without secrets: clients choose the names of models."""
        return tuple(
            count._replace(model=self._redactor.scrub_text(count.model, secrets)) for count in counted
        )


def _redacted(was: ExchangeSummary, clean: bytes) -> ExchangeSummary:
    """The summary without secrets. The owner stays as it is: it decides who may see the receipt."""
    shown = msgspec.json.decode(clean, type=ExchangeSummary)
    return msgspec.structs.replace(shown, key=was.key, team=was.team, session=was.session)


def receipt_from(
    of: ExchangeSummary, shown: bytes, value: bytes, scores: tuple[ScoreCount, ...] = ()
) -> Receipt:
    """A receipt of the summary `of`, which is `shown` without secrets, and the encoded detail `value`.

    `scores` is what the exchange adds to the scores of its targets.
    """
    used = of.usage or _NO_TOKENS
    return Receipt(
        id=of.id,
        at=of.at,
        client=of.client,
        profile=of.profile or "",
        model=of.model,
        outcome=of.outcome,
        status=of.status,
        seconds=of.seconds,
        failed=int(of.failed),
        mended=of.mended,
        rules=f" {' '.join(of.rules)} ",
        words=of.words,
        key=of.key,
        team=of.team,
        upstream=of.upstream,
        session=of.session,
        input=used.input,
        output=used.output,
        cached=used.cached_input,
        reasoning=used.reasoning,
        calls=of.calls,
        invalid=of.invalid,
        micros=micros(of.cost),
        opening=of.opening,
        summary=shown,
        value=value,
        scores=scores,
    )
