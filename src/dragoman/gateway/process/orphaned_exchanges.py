"""Write receipts for the exchanges of a process that was killed.

Each process leaves a note about its exchanges with the shared state: what it knows when an attempt begins,
and what it knows at the end, until the receipt is surely in the store. If the process dies, another one
makes receipts of its notes. Without shared state, such exchanges are not accounted for.
"""

from __future__ import annotations

import asyncio
import logging
import random

import msgspec

from ...model.errors import DragomanError
from ...observe.receipts import Detail, ExchangeSummary, receipt_from, summary
from ...observe.tap import Redactor, Subscription, Tap, Track
from ...shared import SharedState
from ...store import Receipt, Store

log = logging.getLogger("dragoman.gateway")

_OUTCOME = "lost"
_WHY = "the gateway process that served this exchange was killed"
_NO_DETAIL = msgspec.json.encode(Detail())
_WRITTEN = 3.0
"""Seconds after its end in which the receipt of an exchange reaches the store."""
_LOOK = 5.0
"""Seconds between looks for notes of dead processes."""


class _Note(msgspec.Struct, frozen=True):
    """A summary without secrets. The owner is as it is, because it decides who may see the receipt."""

    key: str
    team: str
    summary: msgspec.Raw


class OrphanedExchanges:
    """Notes the exchanges of this process, and makes receipts of those that dead processes noted."""

    def __init__(self, tap: Tap, redactor: Redactor, shared: SharedState, store: Store) -> None:
        self._tap = tap
        self._redactor = redactor
        self._shared = shared
        self._store = store
        self._noted: dict[str, str] = {}
        """The outcome in the note of each exchange."""
        self._subscription = Subscription(records=False, wake=self._on_change)
        tap.subscribe(self._subscription)
        shared.on_connect(self._renew_notes)
        self._looking = asyncio.get_running_loop().create_task(self._take_orphans())

    def _on_change(self, track: Track) -> None:
        if track.choice is None or self._noted.get(track.id) == track.outcome:
            return
        self._note(track)
        if track.outcome != "running":
            asyncio.get_running_loop().call_later(_WRITTEN, self._forget, track.id)

    def _note(self, track: Track) -> None:
        self._noted[track.id] = track.outcome
        data = self._redactor.scrub(msgspec.json.encode(summary(track, recorded=False)), track.secrets)
        note = _Note(track.key, track.team, msgspec.Raw(data))
        self._shared.note(track.id, msgspec.json.encode(note))

    def _forget(self, id: str) -> None:
        self._noted.pop(id, None)
        self._shared.note(id, None)

    def _renew_notes(self) -> None:
        """The notes may be gone: the server of the shared state was restarted."""
        for track in self._tap.running.values():
            if track.choice is not None:
                self._note(track)

    async def _take_orphans(self) -> None:
        while True:
            await asyncio.sleep(_LOOK * random.uniform(0.5, 1.0))
            if self._shared.problem:
                continue
            try:
                notes = await self._shared.take_orphaned()
                if notes:
                    receipts = [_receipt(note) for note in notes]
                    log.warning("a gateway process died", extra={"exchanges": len(receipts)})
                    await asyncio.wrap_future(self._store.add_receipts(lambda made=receipts: made))
            except (DragomanError, msgspec.DecodeError) as error:
                log.warning("exchanges of a process that died are not accounted for: %s", error)

    async def close(self) -> None:
        self._tap.unsubscribe(self._subscription)
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)


def _receipt(data: bytes) -> Receipt:
    note = msgspec.json.decode(data, type=_Note)
    found = msgspec.json.decode(note.summary, type=ExchangeSummary)
    if found.outcome == "running":
        found = msgspec.structs.replace(found, outcome=_OUTCOME, error=_WHY)
    shown = msgspec.json.encode(found)
    owned = msgspec.structs.replace(found, key=note.key, team=note.team)
    return receipt_from(owned, shown, _NO_DETAIL)
