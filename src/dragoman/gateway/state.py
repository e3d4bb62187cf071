"""The state that all requests of one process share: config, store, upstreams, limits, what is observed."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from ..access.counters import LimitCounters
from ..access.keys import KeyTable
from ..access.limiter import Limiter
from ..access.money import warn_unpriced_targets
from ..config import fingerprint, reload
from ..config.secret_reference import SecretReference
from ..config.store_address import store_place
from ..config.types import Config, ConfigError
from ..credentials import process_lock
from ..credentials.secret import Secret
from ..observe.tap import Ring, Tap, sent_secrets
from ..prices import Prices
from ..routing.router import ChosenTarget
from ..shared import BatchedCounters, LocalState, open_shared
from ..store import open_store
from ..store.memory import Memories
from ..transport.client import OpenClient, open_client, trust
from .client_settings import ClientSettingsCache
from .exchange.images import Descriptions
from .exchange.incoming_request import IncomingRequest
from .exchange.keepalive import KeepaliveTimer
from .observation import Observation
from .process.lifecycle import Lifecycle
from .process.retention import retention_of
from .process.shared_health import SharedHealth
from .upstreams.keyring import Keyring
from .upstreams.upstreams import Upstreams

log = logging.getLogger("dragoman.gateway")

# Seconds. A config file that has not changed for so long is written completely.
_SETTLED = 0.1
_MAX_MEMORY = 256 * 1024 * 1024
"""Bytes of responses that WebSocket clients do not want stored, for all connections together."""


class State:
    """Lives as long as the process. A reload replaces the config; running exchanges keep the old one."""

    def __init__(
        self,
        config: Config,
        *,
        env: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        random_value: Callable[[], float] = random.random,
        client: OpenClient = open_client,
    ) -> None:
        self.env = os.environ if env is None else env
        _check_certificates(config, self.env)
        self.clock = clock
        """Wall-clock time, for timestamps."""
        self._open_store(config)
        redis = config.server.redis
        self.shared = open_shared(redis.resolve(self.env, "server.redis") if redis else None, clock)
        """What this process shares with others: limits, cooldowns, locks, the live feed."""
        self.observed = Observation(
            config, Tap(Ring(config.server.ring), clock), self.store, self.shared, self.env
        )
        keyring = Keyring(self.env, self.observed.redactor.learn, self._token_lock)
        self.upstreams = Upstreams(keyring, client, monotonic, random_value)
        SharedHealth(self.upstreams.health, self.shared, monotonic)
        self._open_limits(config, monotonic)
        self.keys = KeyTable(self.store, clock, monotonic)
        self.memories = Memories(_MAX_MEMORY)
        self.descriptions = Descriptions(self.store)
        self.keepalive_timer = KeepaliveTimer()
        self.lifecycle = Lifecycle()
        self.replace(config)

    def _open_store(self, config: Config) -> None:
        place = store_place(config.server.store, self.env)
        self.store = open_store(place)
        if self.store.warning:
            log.warning(self.store.warning)
        self.store_replaced = isinstance(place, Path) and self.store.warning is not None
        """The file cannot be used, so a store in memory replaces it."""

    def _open_limits(self, config: Config, monotonic: Callable[[], float]) -> None:
        redis = config.server.redis
        # A store in memory belongs to this process alone, so its own counters are as good, and faster.
        alone = config.server.store is None or self.store_replaced
        counters = BatchedCounters(self.shared if redis else self.store) if redis or not alone else None
        self.limit_counters = LimitCounters(counters or LocalState(self.clock), self.clock, monotonic)
        self.shared.on_connect(self.limit_counters.counters_were_reset)
        self.limiter = Limiter(self.limit_counters, self.store, self.clock)

    def replace(self, config: Config) -> None:
        """Use `config` for all new requests."""
        self.config = config
        self.client_settings = ClientSettingsCache(config)
        self.prices = Prices(config.prices)
        self.limit_counters.config = config.limits
        self.observed.redactor.learn((*self.keys.configure(config, self.env), *_config_secrets(config)))
        self.observed.use(config)
        self.upstreams.use(config)
        self.store.retain(retention_of(config))
        for warning in (*config.warnings, *warn_unpriced_targets(config, self.prices, self.clock())):
            log.warning(warning)

    async def close(self) -> None:
        await self.upstreams.close()
        await self.limiter.close()
        await self.keys.close()
        await self.observed.close()
        await self.shared.close()
        await self.store.close()

    @asynccontextmanager
    async def _token_lock(self, path: str) -> AsyncGenerator[None]:
        """Held while the token in `path` is refreshed: among the processes here, and among all machines."""
        async with process_lock(path), self.shared.lock(f"token:{path}"):
            yield

    def targets_for(self, incoming: IncomingRequest) -> tuple[ChosenTarget, ...]:
        """The targets for a request, in the order in which they are tried. The replay server has its own."""
        return self.upstreams.choices(incoming.request.model, incoming.conversation, incoming.traits)


def _check_certificates(config: Config, env: Mapping[str, str]) -> None:
    """Check SSL_CERT_FILE and the like at the start. Else every request to an https upstream would fail."""
    if not any(upstream.base_url.startswith("https:") for upstream in config.upstreams.values()):
        return
    try:
        trust.check_environment(env)
    except trust.Unusable as error:
        raise ConfigError(f"{error}; name a PEM file there, or unset the variable") from None


def _config_secrets(config: Config) -> Iterator[Secret]:
    """Headers and URLs in the config may contain keys."""
    for upstream in config.upstreams.values():
        yield from sent_secrets(upstream.headers, upstream.base_url)
    if config.search.url is not None:
        yield from sent_secrets({}, config.search.url)
    for address in (config.server.store, config.server.redis):
        if isinstance(address, SecretReference) and address.literal is not None:
            yield address.literal


async def watch_config(state: State, interval: float = 1.0, *, pinned: frozenset[str] = frozenset()) -> None:
    """Reload the config file when it changes. An invalid file is logged, and the old config stays.

    `pinned` are the keys of [server] that the command line sets. A reload does not change them.
    """
    path = state.config.path
    if path is None:
        return
    loaded = fingerprint(path)
    while True:
        await asyncio.sleep(interval)
        now = fingerprint(path)
        if now == loaded:
            continue
        await asyncio.sleep(min(interval, _SETTLED))
        if fingerprint(path) != now:
            continue  # still being written: half a file may be valid, but it is not what the user means
        loaded = now
        result = reload(state.config, state.env, pinned)
        unchanged = result.config is state.config
        (log.warning if unchanged else log.info)(result.message)
        if result.changed:
            state.replace(result.config)
