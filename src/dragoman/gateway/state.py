"""The state that all requests of one process share: config, connections, credentials, health, metrics."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path

from ..access.counters import LimitCounters
from ..access.keys import KeyTable
from ..access.limiter import Limiter
from ..access.money import warn_unpriced_targets
from ..config import fingerprint, reload
from ..config.secret_reference import SecretReference
from ..config.store_address import store_place
from ..config.types import Config, ConfigError, UpstreamConfig
from ..credentials import process_lock
from ..credentials.secret import Secret
from ..observe.metrics import Metrics
from ..observe.receipts import Ledger
from ..observe.tap import Redactor, Ring, Tap, Track, sent_secrets
from ..observe.tracing import open_tracing
from ..prices import Prices
from ..recording.kept_failures import KeptFailures, failures_folder
from ..recording.recorder import Recorder
from ..routing.conditions import Traits
from ..routing.health import Health
from ..routing.learned_facts import LearnedFacts
from ..routing.model_limits import LimitsCache
from ..routing.reliability import Rating
from ..routing.router import ChosenTarget, Router, sticky, targets
from ..shared import BatchedCounters, LocalState, open_shared
from ..store import open_store
from ..store.memory import Memories
from ..store.reasoning_keys import ReasoningContext
from ..transport.client import OpenClient, open_client, trust
from .client_settings import ClientSettingsCache
from .exchange.images import Descriptions
from .exchange.incoming_request import IncomingRequest
from .exchange.keepalive import KeepaliveTimer
from .process.orphaned_exchanges import OrphanedExchanges
from .process.retention import failure_limits, recording_limits, retention_of
from .process.shared_feed import SharedFeed
from .process.shared_health import SharedHealth
from .upstreams.call import Pool
from .upstreams.keyring import Keyring
from .upstreams.model_catalogue import Catalogue

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
        self.monotonic = monotonic
        """For cooldowns and durations."""
        self.random = random_value
        self._client = client
        self.metrics = Metrics()
        self.health = Health()
        self.limits = LimitsCache()
        self.ratings: Mapping[str, Rating] = {}
        """How reliable targets were, for routes that prefer reliable ones (`ratings.py`)."""
        self.tracing = open_tracing(config.telemetry, self.env)
        self._open_store(config)
        self._open_shared(config)
        self.keys = KeyTable(self.store, clock, monotonic)
        self.memories = Memories(_MAX_MEMORY)
        self.descriptions = Descriptions(self.store)
        self.redactor = Redactor()
        self.tap = Tap(Ring(config.server.ring), clock)
        self.ledger = Ledger(self.store, self.redactor, self.metrics.receipts_lost.inc)
        self.tap.on_end = self._on_exchange_end
        place = None if self.store.warning else failures_folder(config.server.store)
        lost = self.metrics.failures_lost.inc
        self.kept = KeptFailures(place, self.redactor, failure_limits(config), lost) if place else None
        folder = config.server.record
        limits = recording_limits(config)
        self.recorder = Recorder(folder, self.tap, self.redactor, limits) if folder else None
        self.feed = SharedFeed(self.tap, self.redactor, self.shared)
        self._orphaned = (
            OrphanedExchanges(self.tap, self.redactor, self.shared, self.store)
            if config.server.redis
            else None
        )
        self.keepalive_timer = KeepaliveTimer()
        self.stop_events: set[asyncio.Event] = set()
        """Set when the gateway stops: live feeds and idle WebSockets would keep the shutdown waiting."""
        self.draining = False
        """The gateway stops soon: `/readyz` says so."""
        self.closing = False
        self.running = 0
        """Exchanges under way."""
        self.cannot_count: set[str] = set()
        """Upstreams without an endpoint that counts tokens."""
        self.keyring = Keyring(self.env, self.redactor.learn, self._token_lock)
        self.catalogue = Catalogue(lambda: self.pool, self.keyring.headers)
        self.replace(config)

    def _open_store(self, config: Config) -> None:
        place = store_place(config.server.store, self.env)
        self.store = open_store(place)
        if self.store.warning:
            log.warning(self.store.warning)
        self.store_replaced = isinstance(place, Path) and self.store.warning is not None
        """The file cannot be used, so a store in memory replaces it."""

    def _open_shared(self, config: Config) -> None:
        """Open what this process shares with others: limits, cooldowns, locks, the live feed."""
        redis = config.server.redis
        self.shared = open_shared(redis.resolve(self.env, "server.redis") if redis else None, self.clock)
        SharedHealth(self.health, self.shared, self.monotonic)
        # A store in memory belongs to this process alone, so its own counters are as good, and faster.
        alone = config.server.store is None or self.store_replaced
        counters = BatchedCounters(self.shared if redis else self.store) if redis or not alone else None
        self.limit_counters = LimitCounters(counters or LocalState(self.clock), self.clock, self.monotonic)
        self.shared.on_connect(self.limit_counters.counters_were_reset)
        self.limiter = Limiter(self.limit_counters, self.store, self.clock)

    def replace(self, config: Config) -> None:
        """Use `config` for all new requests."""
        self.config = config
        self.client_settings = ClientSettingsCache(config)
        self.router = Router(config)
        self.router.rate(self.ratings)
        self.prices = Prices(config.prices)
        self._protocol_counts = Counter(upstream.protocol for upstream in config.upstreams.values())
        self.limit_counters.config = config.limits
        self.redactor.learn((*self.keys.configure(config, self.env), *_config_secrets(config)))
        self.redactor.patterns = config.server.redact
        self.tap.ring.resize(config.server.ring)
        self.store.retain(retention_of(config))
        if self.kept is not None:
            self.kept.limits = failure_limits(config)
        self.health.keep_only(targets(config))
        self.keyring.keep_only(config.upstreams.values())
        self.cannot_count.clear()
        self.learned = LearnedFacts()
        for warning in (*config.warnings, *warn_unpriced_targets(config, self.prices, self.clock())):
            log.warning(warning)

    @cached_property
    def pool(self) -> Pool:
        """Opened at the first call: the HTTP client needs a running event loop."""
        return Pool(self._client)

    def announce_stop(self) -> None:
        """Tell live feeds and WebSockets that the gateway stops."""
        self.closing = True
        for event in self.stop_events:
            event.set()

    async def close(self) -> None:
        await self.catalogue.close()
        if "pool" in vars(self):
            await self.pool.close()
        await self.keyring.close()
        await self.limiter.close()
        await self.keys.close()
        await self.ledger.close()
        if self.tracing is not None:
            await self.tracing.close()
        if self.recorder is not None:
            await asyncio.to_thread(self.recorder.close)
        if self.kept is not None:
            await asyncio.to_thread(self.kept.close)
        await self.feed.close()
        if self._orphaned is not None:
            await self._orphaned.close()
        await self.shared.close()
        await self.store.close()

    def _on_exchange_end(self, track: Track) -> None:
        self.ledger.add(track)
        if self.kept is not None:
            self.kept.add(track)

    @asynccontextmanager
    async def _token_lock(self, path: str) -> AsyncGenerator[None]:
        """Held while the token in `path` is refreshed: among the processes here, and among all machines."""
        async with process_lock(path), self.shared.lock(f"token:{path}"):
            yield

    def reasoning_context(
        self, client: str, upstream: UpstreamConfig, scope: str, client_asked: bool
    ) -> ReasoningContext:
        """How reasoning passes between a client's protocol and `upstream`."""
        return ReasoningContext(
            client=client,
            issuer=upstream.name,
            scope=scope,
            wants_unsealed=upstream.facts.reasoning_field is not None,
            same_protocol=upstream.protocol == client,
            client_asked=client_asked,
            # With one upstream of the client's protocol, every seal can only be from that upstream.
            track_issuers=self._protocol_counts[client] > 1,
        )

    def targets_for(self, incoming: IncomingRequest) -> tuple[ChosenTarget, ...]:
        """The targets for a request, in the order in which they are tried. The replay server has its own."""
        return self.choices(incoming.request.model, incoming.conversation, incoming.traits)

    def choices(
        self, model: str, conversation: Callable[[], str] = str, traits: Traits | None = None
    ) -> tuple[ChosenTarget, ...]:
        """The targets for `model`, in the order in which they are tried.

        On a route with weights, all requests of one `conversation` get the same order. A request without a
        conversation ("") gets a random one. `traits` are for routes with conditions.
        """
        choices = None if self.health.failing else self.router.cached.get(model)
        return self._routed(model, conversation, traits) if choices is None else choices

    def _routed(
        self, model: str, conversation: Callable[[], str], traits: Traits | None
    ) -> tuple[ChosenTarget, ...]:
        def draw() -> float:
            key = conversation()
            return sticky(key) if key else self.random()

        return self.router.route(model, self.health, self.monotonic(), draw, traits)


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
