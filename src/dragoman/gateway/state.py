"""What the requests of one gateway process share: config, connections, credentials, health, counters."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Mapping

from aiohttp import web

from ..config_types import Config, UpstreamConfig
from ..credentials import BoundCredential, open_bound
from ..health import Health
from ..metrics import Metrics
from ..router import Choice, route
from ..secret import Secret
from ..upstream import Pool

log = logging.getLogger("dragoman.gateway")


class State:
    """Lives as long as the process. The config may be replaced; running answers keep the one they have."""

    def __init__(
        self,
        config: Config,
        *,
        env: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        random_value: Callable[[], float] = random.random,
    ) -> None:
        self.env = os.environ if env is None else env
        self.clock = clock
        self.random = random_value
        self.metrics = Metrics()
        self.health = Health()
        self.running = 0
        self._credentials: dict[str, tuple[UpstreamConfig, BoundCredential]] = {}
        self._pool: Pool | None = None
        self.replace(config)

    def replace(self, config: Config) -> None:
        """From now on, new requests go by `config`."""
        self.config = config
        self.keys: tuple[Secret, ...] = config.keys(self.env)
        for warning in config.warnings:
            log.warning(warning)

    @property
    def pool(self) -> Pool:
        """Made at the first call, when there is an event loop to live in."""
        if self._pool is None:
            self._pool = Pool()
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    def choices(self, model: str) -> tuple[Choice, ...]:
        """Where a request for `model` may go, in order of trial."""
        return route(self.config, model, self.health, self.clock(), self.random())

    def credential(self, upstream: UpstreamConfig) -> BoundCredential:
        """The upstream's credential: one per upstream, as long as its config stays the same."""
        known = self._credentials.get(upstream.name)
        if known is None or known[0] != upstream:
            known = (upstream, open_bound(upstream, self.env))
            self._credentials[upstream.name] = known
        return known[1]


STATE = web.AppKey("state", State)


async def watch_config(state: State, reload: Callable[[], Config | None], interval: float = 1.0) -> None:
    """Look at the config file now and then; a good change is taken, a bad one is told and left."""
    while True:
        await asyncio.sleep(interval)
        config = reload()
        if config is not None:
            state.replace(config)
            log.info("config reloaded", extra={"file": str(config.path)})
