"""Writing receipts down: after the answer was sent, in the store's thread, all that have gathered at once."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from functools import partial

import msgspec

from ...store import Receipt, Store, StoreError
from ..tap import Redactor, Track
from .detail import detail
from .summary import Summary, summary

log = logging.getLogger("dragoman.gateway")

# How long a receipt may wait for others to be written with.
_GATHERS = 0.25
# Of a call's arguments, in characters: a receipt is to be small, and the bytes are the ring's.
LONGEST_KEPT = 4096
_MOST_WAITING = 10_000
# Seconds. A store that takes longer to write them tries a last time when it is closed.
_CLOSING = 2.0

_encode = msgspec.json.Encoder().encode


class Ledger:
    """Takes the tracks of exchanges that are over."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self.waiting: dict[str, Track] = {}
        """Over, and not in the store yet."""
        self._store = store
        self._redactor = redactor
        self._gathered: list[Track] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: set[Future[None]] = set()
        self._complained = False

    def add(self, track: Track) -> None:
        if len(self.waiting) >= _MOST_WAITING:
            self._complain(StoreError("the store is too slow for them"))
            return
        self.waiting[track.id] = track
        self._gathered.append(track)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHERS, self._flush)

    async def close(self) -> None:
        """What has gathered is written."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()
        writing = [asyncio.wrap_future(job) for job in tuple(self._writing)]
        if writing:
            await asyncio.wait(writing, timeout=_CLOSING)

    def _flush(self) -> None:
        """All of it goes to the store's thread in one go. The event loop does not hear of it again."""
        self._timer = None
        tracks, self._gathered = self._gathered, []
        try:
            job = self._store.add_receipts(lambda: self._receipts(tracks))
        except StoreError as error:
            self._over(tracks, error)
            return
        self._writing.add(job)
        job.add_done_callback(lambda job: self._written(tracks, job))

    def _written(self, tracks: list[Track], job: Future[None]) -> None:
        """In the store's thread."""
        self._over(tracks, job.exception())
        self._writing.discard(job)

    def _over(self, tracks: list[Track], error: BaseException | None) -> None:
        if error is None:
            self._complained = False
        else:
            self._complain(error)
        for track in tracks:
            self.waiting.pop(track.id, None)

    def _complain(self, error: BaseException) -> None:
        """Once, until receipts are written again."""
        if not self._complained:
            self._complained = True
            fault = None if isinstance(error, StoreError) else error  # ours, not the disk's
            log.warning("receipts are lost: %s", error, exc_info=fault)

    def _shortened(self, track: Track, text: str) -> str:
        """What is kept of a call's arguments. Secrets go first: half of one would not be found."""
        if len(text) <= LONGEST_KEPT:
            return text
        return self._redactor.scrub_text(text, track.secrets)[:LONGEST_KEPT]

    def _receipts(self, tracks: list[Track]) -> list[Receipt]:
        """Found by what is shown, and by nothing that is not."""
        said: list[Summary] = []
        shown: list[bytes] = []
        values: list[bytes] = []
        for track in tracks:
            try:
                one = summary(track, recorded=False)
                encoded, value = _encode(one), _encode(detail(track, partial(self._shortened, track)))
            except Exception:  # the others are not to suffer
                log.exception("the receipt of an exchange cannot be written", extra={"exchange": track.id})
                continue
            said.append(one)
            shown.append(encoded)
            values.append(value)
        secrets = {secret for track in tracks for secret in track.secrets}
        safe = self._redactor.scrub_all([*shown, *values], secrets)
        return [
            _receipt(one if clean == was else msgspec.json.decode(clean, type=Summary), clean, value)
            for one, was, clean, value in zip(said, shown, safe, safe[len(said) :], strict=False)
        ]


def _receipt(said: Summary, shown: bytes, value: bytes) -> Receipt:
    # Not by name: see `summary`.
    return Receipt(
        said.id,
        said.at,
        said.client,
        said.profile or "",
        said.model,
        said.outcome,
        said.status,
        said.seconds,
        int(said.failed),
        said.mended,
        f" {' '.join(said.rules)} ",
        said.words,
        shown,
        value,
    )
