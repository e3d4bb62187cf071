"""Warns about budgets in money that cannot be counted."""

from __future__ import annotations

from collections.abc import Iterator

from ..config.types import Config
from ..prices import Prices
from ..routing.router import named_targets


def warn_unpriced_targets(config: Config, prices: Prices, now: float) -> Iterator[str]:
    """Warnings about targets that budgets in money cannot count."""
    owners = [(f"keys.{key.name}", key.limits) for key in config.named_keys.values()]
    owners += [(f"teams.{team.name}", team.limits) for team in config.teams.values()]
    names = [name for name, limits in owners if any(budget.unit == "money" for budget in limits.budgets)]
    if not names:
        return
    for upstream, model in named_targets(config):
        if prices.price(config.upstreams[upstream], model, now) is None:
            yield (
                f"the price of {upstream}/{model} is unknown, so the budget of {', '.join(names)} does not "
                "count it: use a budget in tokens, or set the price in [prices]"
            )
