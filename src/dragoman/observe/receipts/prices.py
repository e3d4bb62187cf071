"""What exchanges cost, where `genai-prices` is installed and knows the model.

The package takes half a second and 75 MB to import. So it is an extra, and it is imported, in a thread, when
somebody looks: a gateway that nobody looks at does without.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence

import msgspec

from ...routing.model_limits import prices_name
from .summary import Summary

Price = Callable[[Summary], float | None]


class Prices:
    """`price` finds what one exchange cost; for tests."""

    def __init__(self, price: Price | None = None) -> None:
        if price is None and importlib.util.find_spec("genai_prices"):
            price = by_package
        self._price = price

    def added(self, summaries: Sequence[Summary]) -> list[Summary]:
        """The same with their costs. May take a while: not for the event loop."""
        price = self._price
        if price is None:
            return list(summaries)
        return [msgspec.structs.replace(said, cost=price(said)) for said in summaries]


def by_package(said: Summary) -> float | None:
    """In US dollars; None where the model or its tokens are not known."""
    import genai_prices

    if said.usage is None or said.target is None:
        return None
    counted = genai_prices.Usage(
        input_tokens=said.usage.input,
        cache_read_tokens=said.usage.cached_input,
        cache_write_tokens=said.usage.cache_written,
        output_tokens=said.usage.output,
    )
    model = said.target.partition("/")[2]
    for name, at in ((model, prices_name(said.provider)), (model.rpartition("/")[2], None)):
        try:
            return float(genai_prices.calc_price(counted, name, provider_id=at).total_price)
        except (LookupError, ValueError):
            continue
    return None
