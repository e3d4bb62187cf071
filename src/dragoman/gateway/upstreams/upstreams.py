"""The way to the upstreams: connections, keys, routes, and what is known about each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property

from ...config.types import Config
from ...routing.conditions import Traits
from ...routing.health import Health
from ...routing.learned_facts import LearnedFacts
from ...routing.model_limits import LimitsCache
from ...routing.reliability import Rating
from ...routing.router import ChosenTarget, Router, sticky, targets
from ...transport.client import OpenClient
from .call import Pool
from .keyring import Keyring
from .model_catalogue import Catalogue


class Upstreams:
    """The upstreams of one process."""

    router: Router
    learned: LearnedFacts
    protocols: Counter[str]
    """How many of them speak each protocol."""

    def __init__(
        self,
        keyring: Keyring,
        client: OpenClient,
        monotonic: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        self.keyring = keyring
        self.health = Health()
        self.limits = LimitsCache()
        self.catalogue = Catalogue(lambda: self.pool, keyring.headers)
        self.cannot_count: set[str] = set()
        """Those without an endpoint that counts tokens."""
        self.monotonic = monotonic
        """For cooldowns."""
        self.random = random
        self._client = client
        self._ratings: Mapping[str, Rating] = {}

    def use(self, config: Config) -> None:
        """Use `config` for all new requests."""
        self.router = Router(config)
        self.router.rate(self._ratings)
        self.learned = LearnedFacts()
        self.protocols = Counter(upstream.protocol for upstream in config.upstreams.values())
        self.cannot_count.clear()
        self.health.keep_only(targets(config))
        self.keyring.keep_only(config.upstreams.values())

    def rate(self, ratings: Mapping[str, Rating]) -> None:
        """How reliable targets were, for routes that prefer reliable ones."""
        self._ratings = ratings
        self.router.rate(ratings)

    @cached_property
    def pool(self) -> Pool:
        """Opened at the first call: the HTTP client needs a running event loop."""
        return Pool(self._client)

    def choices(
        self, model: str, conversation: Callable[[], str] = str, traits: Traits | None = None
    ) -> tuple[ChosenTarget, ...]:
        """The targets for `model`, in the order in which they are tried.

        On a route with weights, all requests of one `conversation` get the same order. A request without a
        conversation ("") gets a random one. `traits` are for routes with conditions.
        """
        cached = None if self.health.failing else self.router.cached.get(model)
        if cached is not None:
            return cached

        def draw() -> float:
            found = conversation()
            return sticky(found) if found else self.random()

        return self.router.route(model, self.health, self.monotonic(), draw, traits)

    async def close(self) -> None:
        await self.catalogue.close()
        if "pool" in vars(self):
            await self.pool.close()
        await self.keyring.close()
