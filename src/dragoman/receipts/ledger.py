"""Writing receipts down: after the answer was sent, in a thread, and all that have gathered at once."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from ..store import Receipt, Store, StoreError
from ..tap import Redactor, Track
from .detail import detail
from .summary import Summary, summary

log = logging.getLogger("dragoman.gateway")

# How long a receipt may wait for others to be written with.
_GATHERS = 0.25
# Of a call's arguments, in characters: a receipt is to be small, and the bytes are the ring's.
LONGEST_KEPT = 4096
_MOST_WAITING = 10_000

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
        self._writing: set[asyncio.Task[None]] = set()
        self._complained = False

    def add(self, track: Track) -> None:
        if len(self.waiting) >= _MOST_WAITING:
            self._complain("the store is too slow for them")
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
        while self._writing:
            await asyncio.gather(*self._writing)

    def _flush(self) -> None:
        self._timer = None
        gathered, self._gathered = self._gathered, []
        task = asyncio.get_running_loop().create_task(self._write(gathered))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, tracks: list[Track]) -> None:
        try:
            receipts = await asyncio.to_thread(self._encoded, tracks)
            await self._store.add_receipts(receipts)
            self._complained = False
        except StoreError as error:
            self._complain(error.message)
        finally:
            for track in tracks:
                self.waiting.pop(track.id, None)

    def _complain(self, why: str) -> None:
        """Once, until receipts are written again."""
        if not self._complained:
            self._complained = True
            log.warning("receipts are lost: %s", why)

    def _encoded(self, tracks: list[Track]) -> list[Receipt]:
        return [self._receipt(track) for track in tracks]

    def _receipt(self, track: Track) -> Receipt:
        said = summary(track, recorded=False)
        shown = _encode(said)
        # Found by what is shown, and by nothing that is not.
        safe = self._redactor.scrub(shown, track.secrets)
        if safe != shown:
            said = msgspec.json.decode(safe, type=Summary)
        value = self._redactor.scrub(_encode(detail(track, LONGEST_KEPT)), track.secrets)
        return Receipt(
            id=said.id,
            at=said.at,
            client=said.client,
            profile=said.profile or "",
            model=said.model,
            outcome=said.outcome,
            status=said.status,
            seconds=said.seconds,
            failed=said.failed,
            mended=said.mended,
            rules=f" {' '.join(said.rules)} ",
            words=said.words,
            summary=safe,
            value=value,
        )
