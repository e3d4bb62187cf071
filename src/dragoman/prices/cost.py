"""The cost of an answer, from its token counts and the price of its model."""

from __future__ import annotations

from ..model.events import Usage
from .table import Price, Rate

_MILLION = 1e6
_THOUSAND = 1e3


def cost(usage: Usage, price: Price) -> float | None:
    """US dollars. None if the counts are unknown, or if `price` says nothing about tokens that were used."""
    if not usage.known:
        return None
    tool_prompt = usage.tool_prompt or 0
    prompt = usage.prompt + tool_prompt
    reasoning = min(usage.reasoning or 0, usage.output or 0) if price.reasoning is not None else 0
    parts = (
        ((usage.input or 0) + tool_prompt, price.input),
        # A provider without a price for the cache charges cached tokens like other ones.
        (usage.cache_read, price.input if price.cache_read is None else price.cache_read),
        (usage.cache_write, price.input if price.cache_write is None else price.cache_write),
        ((usage.output or 0) - reasoning, price.output),
        (reasoning, price.reasoning),
    )
    total = _at(price.request, prompt) / _THOUSAND if price.request is not None else 0.0
    for count, rate in parts:
        if not count:
            continue
        if rate is None:
            return None
        total += count * _at(rate, prompt) / _MILLION
    return total


def _at(rate: Rate, prompt: int) -> float:
    """The rate for a prompt of that length. A higher tier holds for all tokens, not only for those above."""
    if not isinstance(rate, tuple):
        return rate or 0.0
    price = rate[0]
    for start, above in zip(rate[1::2], rate[2::2], strict=True):
        if prompt > start:
            price = above
    return price
