"""What an exchange cost, where `genai-prices` is installed and knows the model.

The package takes half a second and 75 MB to import, so it is an extra, and imported in a thread at the first
question: never on the way of a request.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable

from ..events import Usage
from ..tap import Track

Price = Callable[[Usage, str, str | None], float | None]


class Prices:
    """`price` finds a cost by usage, model and provider; for tests."""

    def __init__(self, price: Price | None = None) -> None:
        self._price = price

    def of(self, track: Track) -> float | None:
        """In US dollars."""
        if track.choice is None or not track.usage.known:
            return None
        price = self._price or _installed()
        return price(track.usage, track.choice.model, track.choice.upstream.provider) if price else None


@functools.cache
def _installed() -> Price | None:
    return _by_package if importlib.util.find_spec("genai_prices") else None


def _by_package(usage: Usage, model: str, provider: str | None) -> float | None:
    import genai_prices

    from ..limits import prices_name

    counted = genai_prices.Usage(
        input_tokens=usage.prompt,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        output_tokens=usage.output,
    )
    for name, at in ((model, prices_name(provider)), (model.rpartition("/")[2], None)):
        try:
            return float(genai_prices.calc_price(counted, name, provider_id=at).total_price)
        except (LookupError, ValueError):
            continue
    return None
