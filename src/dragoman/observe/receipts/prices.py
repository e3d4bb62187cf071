"""The cost of exchanges, if `genai-prices` is installed and knows the model.

The package takes half a second and 75 MB to import. So it is an optional extra, and it is imported, in a
thread, when somebody requests exchanges for the first time.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence

import msgspec

from ...routing.model_limits import prices_name
from .summary import Summary

Price = Callable[[Summary], float | None]


class Prices:
    """Adds costs to summaries. Tests can give their own `price` function."""

    def __init__(self, price: Price | None = None) -> None:
        if price is None and importlib.util.find_spec("genai_prices"):
            price = by_package
        self._price = price

    def added(self, summaries: Sequence[Summary]) -> list[Summary]:
        """The summaries with their costs. Slow at first: do not call it in the event loop."""
        price = self._price
        if price is None:
            return list(summaries)
        return [msgspec.structs.replace(summary, cost=price(summary)) for summary in summaries]


def by_package(summary: Summary) -> float | None:
    """The cost in US dollars; None if the model or its token counts are unknown."""
    import genai_prices

    if summary.usage is None or summary.target is None:
        return None
    counted = genai_prices.Usage(
        input_tokens=summary.usage.input,
        cache_read_tokens=summary.usage.cached_input,
        cache_write_tokens=summary.usage.cache_written,
        output_tokens=summary.usage.output,
    )
    model = summary.target.partition("/")[2]
    for name, at in ((model, prices_name(summary.provider)), (model.rpartition("/")[2], None)):
        try:
            return float(genai_prices.calc_price(counted, name, provider_id=at).total_price)
        except (LookupError, ValueError):
            continue
    return None
