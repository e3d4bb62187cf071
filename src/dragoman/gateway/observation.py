"""What is kept and told about exchanges: the live copy, receipts, recordings, metrics, traces."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ..config.types import Config
from ..observe.metrics import Metrics
from ..observe.receipts import Ledger
from ..observe.tap import Redactor, Tap, Track
from ..observe.tracing import open_tracing
from ..recording.kept_failures import KeptFailures, failures_folder
from ..recording.recorder import Recorder
from ..shared import SharedState
from ..store import Store
from .process.orphaned_exchanges import OrphanedExchanges
from .process.retention import failure_limits, recording_limits
from .process.shared_feed import SharedFeed


class Observation:
    """Everything that reads the records of a process's exchanges. Each part reads them from the tap."""

    def __init__(
        self, config: Config, tap: Tap, store: Store, shared: SharedState, env: Mapping[str, str]
    ) -> None:
        server = config.server
        self.tap = tap
        self.metrics = Metrics()
        self.redactor = redactor = Redactor()
        self.tracing = open_tracing(config.telemetry, env)
        self.ledger = Ledger(store, redactor, self.metrics.receipts_lost.inc)
        place = None if store.warning else failures_folder(server.store)
        lost = self.metrics.failures_lost.inc
        self.kept = KeptFailures(place, redactor, failure_limits(config), lost) if place else None
        limits = recording_limits(config)
        self.recorder = Recorder(server.record, tap, redactor, limits) if server.record else None
        self.feed = SharedFeed(tap, redactor, shared)
        self._orphaned = OrphanedExchanges(tap, redactor, shared, store) if server.redis else None
        tap.on_end = self._on_end

    def use(self, config: Config) -> None:
        """Use `config` from now on."""
        self.redactor.patterns = config.server.redact
        self.tap.ring.resize(config.server.ring)
        if self.kept is not None:
            self.kept.limits = failure_limits(config)

    def _on_end(self, track: Track) -> None:
        self.ledger.add(track)
        if self.kept is not None:
            self.kept.add(track)

    async def close(self) -> None:
        await self.ledger.close()
        if self.tracing is not None:
            await self.tracing.close()
        for writer in (self.recorder, self.kept):
            if writer is not None:
                await asyncio.to_thread(writer.close)
        await self.feed.close()
        if self._orphaned is not None:
            await self._orphaned.close()
