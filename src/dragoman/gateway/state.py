"""The state that all requests of one process share: config, connections, credentials, health, metrics."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from ..config import fingerprint, reload
from ..config.types import Config, ConfigError, UpstreamConfig
from ..credentials.secret import Secret
from ..observe.metrics import Metrics
from ..observe.receipts import Ledger, Prices
from ..observe.tap import Redactor, Ring, Tap, sent_secrets
from ..observe.tracing import open_tracing
from ..recording.recorder import Recorder
from ..routing.health import Health
from ..routing.learned_facts import LearnedFacts
from ..routing.model_limits import LimitsCache
from ..routing.router import Choice, Router, sticky, targets
from ..store import Keep, Retention, open_store
from ..store.memory import Memories
from ..store.reasoning_keys import ReasoningContext
from ..transport.client import OpenClient, open_client, trust
from .client_settings import ClientSettingsCache
from .keepalive import KeepaliveTimer
from .keyring import Keyring
from .model_catalogue import Catalogue
from .upstream import Pool

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
        self.tracing = open_tracing(config.telemetry, self.env)
        self.store = open_store(config.server.store)
        if self.store.warning:
            log.warning(self.store.warning)
        self.memories = Memories(_MAX_MEMORY)
        self.redactor = Redactor()
        self.tap = Tap(Ring(config.server.ring), clock)
        self.ledger = Ledger(self.store, self.redactor)
        self.tap.on_end = self.ledger.add
        self.prices = Prices()
        folder = config.server.record
        self.recorder = Recorder(folder, self.tap, self.redactor) if folder else None
        self.keepalive_timer = KeepaliveTimer()
        self.stop_events: set[asyncio.Event] = set()
        """Set when the gateway stops: live feeds and idle WebSockets would keep the shutdown waiting."""
        self.closing = False
        self.running = 0
        """Exchanges under way."""
        self.cannot_count: set[str] = set()
        """Upstreams without an endpoint that counts tokens."""
        self.keyring = Keyring(self.env, self.redactor.learn)
        self.catalogue = Catalogue(lambda: self.pool, self.keyring.headers)
        self.replace(config)

    def replace(self, config: Config) -> None:
        """Use `config` for all new requests."""
        self.config = config
        self.client_settings = ClientSettingsCache(config)
        self._router = Router(config)
        self._protocol_counts = Counter(upstream.protocol for upstream in config.upstreams.values())
        self.keys: tuple[Secret, ...] = config.keys(self.env)
        self.redactor.learn((*self.keys, *_config_secrets(config)))
        self.redactor.patterns = config.server.redact
        self.tap.ring.resize(config.server.ring)
        self.store.retain(_retention(config))
        self.health.keep_only(targets(config))
        self.keyring.keep_only(config.upstreams.values())
        self.cannot_count.clear()
        self.learned = LearnedFacts()
        for warning in config.warnings:
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
        await self.ledger.close()
        if self.tracing is not None:
            await self.tracing.close()
        if self.recorder is not None:
            await asyncio.to_thread(self.recorder.close)
        await self.store.close()

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

    def choices(self, model: str, conversation: Callable[[], str] = str) -> tuple[Choice, ...]:
        """The targets for `model`, in the order in which they are tried.

        On a route with weights, all requests of one `conversation` get the same order. A request without a
        conversation ("") gets a random one.
        """
        choices = None if self.health.failing else self._router.cached.get(model)
        return self._routed(model, conversation) if choices is None else choices

    def _routed(self, model: str, conversation: Callable[[], str]) -> tuple[Choice, ...]:
        def draw() -> float:
            key = conversation()
            return sticky(key) if key else self.random()

        return self._router.route(model, self.health, self.monotonic(), draw)


def _check_certificates(config: Config, env: Mapping[str, str]) -> None:
    """Check SSL_CERT_FILE and the like at the start. Else every request to an https upstream would fail."""
    if not any(upstream.base_url.startswith("https:") for upstream in config.upstreams.values()):
        return
    try:
        trust.check_environment(env)
    except trust.Unusable as error:
        raise ConfigError(f"{error}; name a PEM file there, or unset the variable") from None


def _retention(config: Config) -> Retention:
    keep = config.server.retention
    return Retention(entries=Keep(seconds=keep), receipts=Keep(seconds=keep, rows=100_000))


def _config_secrets(config: Config) -> Iterator[Secret]:
    """Headers and URLs in the config may contain keys."""
    for upstream in config.upstreams.values():
        yield from sent_secrets(upstream.headers, upstream.base_url)


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
