"""What the requests of one gateway process share: config, connections, credentials, health, counters."""

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
from .client_settings import Manners
from .keepalive import Beats
from .keyring import Keyring
from .model_catalogue import Catalogue
from .upstream import Pool

log = logging.getLogger("dragoman.gateway")

# A file that has not changed for so long is whole.
_SETTLED = 0.1
# Clients may bring keys of their own invention: what is kept must not grow with them.
_MOST_CARRIAGES = 256
_MOST_REMEMBERED = 256 * 1024 * 1024
"""Bytes of responses that WebSocket clients go on from and do not want stored, of all connections."""


class State:
    """Lives as long as the process. The config may be replaced; running answers keep the one they have."""

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
        """The time of day, for timestamps."""
        self.monotonic = monotonic
        """For cooldowns and other spans: it does not jump when somebody sets the clock."""
        self.random = random_value
        self._client = client
        self.metrics = Metrics()
        self.health = Health()
        self.limits = LimitsCache()
        self.tracing = open_tracing(config.telemetry, self.env)
        self.store = open_store(config.server.store)
        if self.store.warning:
            log.warning(self.store.warning)
        self.memories = Memories(_MOST_REMEMBERED)
        self.redactor = Redactor()
        self.tap = Tap(Ring(config.server.ring), clock)
        self.ledger = Ledger(self.store, self.redactor)
        self.tap.on_end = self.ledger.add
        self.prices = Prices()
        folder = config.server.record
        self.recorder = Recorder(folder, self.tap, self.redactor) if folder else None
        self.beats = Beats()
        self.onlookers: set[asyncio.Event] = set()
        """Those who look on until the gateway ends, woken when it does."""
        self.closing = False
        self.running = 0
        self.cannot_count: set[str] = set()
        """The upstreams that were asked for a token count and have none to give."""
        self.keyring = Keyring(self.env, self.redactor.learn)
        self.catalogue = Catalogue(lambda: self.pool, self.keyring.headers)
        self.replace(config)

    def replace(self, config: Config) -> None:
        """From now on, new requests go by `config`."""
        self.config = config
        self.manners = Manners(config)
        self._router = Router(config)
        self._speakers = Counter(upstream.protocol for upstream in config.upstreams.values())
        self._carriages: dict[tuple[str, str, str, bool], tuple[UpstreamConfig, ReasoningContext]] = {}
        self.keys: tuple[Secret, ...] = config.keys(self.env)
        self.redactor.learn((*self.keys, *_in_config(config)))
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
        """Made at the first call, when there is an event loop to live in."""
        return Pool(self._client)

    def end_onlookers(self) -> None:
        """The gateway is being stopped: nobody is to be waited for who only looks on."""
        self.closing = True
        for wake in self.onlookers:
            wake.set()

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

    def carriage(self, client: str, upstream: UpstreamConfig, scope: str, asked: bool) -> ReasoningContext:
        """How reasoning is carried between a client's protocol and `upstream`. The same one each time:
        what was looked up of a conversation is known by it."""
        key = (client, upstream.name, scope, asked)
        found = self._carriages.get(key)
        if found is None or found[0] is not upstream:
            if len(self._carriages) >= _MOST_CARRIAGES:
                self._carriages.clear()
            carriage = ReasoningContext(
                client=client,
                issuer=upstream.name,
                scope=scope,
                wants_unsealed=upstream.facts.reasoning_field is not None,
                same_protocol=upstream.protocol == client,
                client_asked=asked,
                track_issuers=self._speakers[client] > 1,
            )
            found = self._carriages[key] = (upstream, carriage)
        return found[1]

    def choices(self, model: str, conversation: Callable[[], str] = str) -> tuple[Choice, ...]:
        """Where a request for `model` may go, in order of trial. Where weights decide, all requests of a
        `conversation` go the same way; one that tells nothing of it goes anywhere."""
        choices = None if self.health.failing else self._router.cached.get(model)
        return self._routed(model, conversation) if choices is None else choices

    def _routed(self, model: str, conversation: Callable[[], str]) -> tuple[Choice, ...]:
        def draw() -> float:
            key = conversation()
            return sticky(key) if key else self.random()

        return self._router.route(model, self.health, self.monotonic(), draw)


def _check_certificates(config: Config, env: Mapping[str, str]) -> None:
    """A variable that names no certificates would make every https upstream fail, one by one."""
    if not any(upstream.base_url.startswith("https:") for upstream in config.upstreams.values()):
        return
    try:
        trust.environment_roots(env)
    except trust.Unusable as error:
        raise ConfigError(f"{error}; name a PEM file there, or unset the variable") from None


def _retention(config: Config) -> Retention:
    keep = config.server.retention
    return Retention(entries=Keep(seconds=keep), receipts=Keep(seconds=keep, rows=100_000))


def _in_config(config: Config) -> Iterator[Secret]:
    """What the config has written into headers and addresses may be a key."""
    for upstream in config.upstreams.values():
        yield from sent_secrets(upstream.headers, upstream.base_url)


async def watch_config(state: State, interval: float = 1.0, *, pinned: frozenset[str] = frozenset()) -> None:
    """Look at the config file now and then; a good change is taken, a bad one is told and left.

    `pinned` are the keys of [server] that the command line has the last word on.
    """
    path = state.config.path
    if path is None:
        return
    seen = fingerprint(path)
    while True:
        await asyncio.sleep(interval)
        now = fingerprint(path)
        if now == seen:
            continue
        await asyncio.sleep(min(interval, _SETTLED))
        if fingerprint(path) != now:
            continue  # still being written: half a file may be a good config, but not the one that is meant
        seen = now
        result = reload(state.config, state.env, pinned)
        kept = result.config is state.config
        (log.warning if kept else log.info)(result.message)
        if result.changed:
            state.replace(result.config)
