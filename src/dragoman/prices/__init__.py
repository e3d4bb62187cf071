"""The prices and context windows of models.

`table.json` holds list prices of providers; `[prices]` in the config comes first. An unknown price is None,
never 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..config.providers import providers
from ..config.types import PriceConfig, UpstreamConfig
from ..config.urls import is_private
from ..config.values import glob_matches
from ..model.events import Usage
from . import table
from .cost import cost
from .table import KnownModel, Price

__all__ = ["Price", "Prices", "context_window", "cost"]

# Clients may invent model names. This bounds the memory that they can use.
_MAX_CACHED = 1024


class Prices:
    """The prices of one config. `configured` are the rows of `[prices]`: the first match counts."""

    def __init__(self, configured: Sequence[PriceConfig] = ()) -> None:
        self._configured = configured
        self._cache: dict[tuple[str, str], KnownModel | None] = {}

    def cost(self, upstream: UpstreamConfig, model: str, usage: Usage, at: float) -> float | None:
        """US dollars for `usage` of `model` at `upstream` at the time `at`; None: unknown."""
        price = self.price(upstream, model, at)
        return None if price is None else cost(usage, price)

    def price(self, upstream: UpstreamConfig, model: str, at: float) -> Price | None:
        """The price of `model` at `upstream` at the time `at`; None: unknown."""
        key = (upstream.name, model)
        if key not in self._cache:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = self._find(upstream, model)
        known = self._cache[key]
        return None if known is None else known.price(at)

    def _find(self, upstream: UpstreamConfig, model: str) -> KnownModel | None:
        target = f"{upstream.name}/{model}"
        for row in self._configured:
            if glob_matches(row.match, target) or glob_matches(row.match, model):
                return KnownModel(None, ((None, _price(row)),))
        if upstream.provider is not None:
            return table.find(model, _name(upstream.provider))
        # An unknown server may sell the model at the price of its maker. A server of one's own
        # does not.
        return None if is_private(upstream.endpoint.host) else table.find(model.rpartition("/")[2], None)


def context_window(model: str, provider: str | None) -> int | None:
    """The context window of `model` in tokens, at `provider`, else at the maker of the model."""
    for name, place in ((model, _name(provider)), (model.rpartition("/")[2], None)):
        known = table.find(name, place)
        if known is not None:
            return known.context
    return None


def _name(provider: str | None) -> str | None:
    known = providers().get(provider) if provider else None
    return known.prices_name or provider if known else provider or None


def _price(row: PriceConfig) -> Price:
    return msgspec.convert(row, Price, from_attributes=True)
