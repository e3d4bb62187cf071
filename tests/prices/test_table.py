"""The table of prices says what genai-prices says, from which it is made."""

from datetime import UTC, datetime

import genai_prices
import prices as script
import pytest
from genai_prices import types
from genai_prices.data import providers
from genai_prices.data_snapshot import get_snapshot

from dragoman.model.events import Usage
from dragoman.prices import cost, table

USAGES = [
    Usage(input=1000, output=500),
    Usage(input=10, cache_read=90_000, cache_write=4_000, output=700, reasoning=300),
    Usage(input=250_000, cache_read=40_000, cache_write=1, output=20),
    Usage(input=3, output=0),
    Usage(input=150_000, tool_prompt=90_000, output=20),  # Gemini's own tools read too
]
# A weekday morning, a night (prices of the night), and a day before many prices changed.
TIMES = [
    datetime(2026, 11, 18, 3, 0, tzinfo=UTC),
    datetime(2026, 11, 18, 18, 30, tzinfo=UTC),
    datetime(2025, 6, 1, 12, 0, tzinfo=UTC),
]


def test_the_table_is_made_from_the_installed_data() -> None:
    assert script.TABLE.read_text("utf-8") == script.table(), "run `make prices`"


def names(model: types.ModelInfo) -> list[str]:
    """The id, and every name that a clause tells."""
    texts = [clause[1:] for clause in script._clauses(model.match) if isinstance(clause, str)]
    return [model.id, *texts, *(f"{text}-20251211" for text in texts)]


def theirs(usage: Usage, name: str, provider: str | None, at: datetime) -> float | None:
    counted = genai_prices.Usage(
        input_tokens=usage.prompt + (usage.tool_prompt or 0),
        cache_read_tokens=usage.cache_read or 0,
        cache_write_tokens=usage.cache_write or 0,
        output_tokens=usage.output or 0,
        output_reasoning_tokens=usage.reasoning or 0,
    )
    try:
        found = genai_prices.calc_price(counted, name, provider_id=provider, genai_request_timestamp=at)
    except LookupError:
        return None
    price = found.model_price
    # A model without a price for these tokens costs 0 there. That is unknown here.
    if (usage.output and price.output_mtok is None) or price.input_mtok is None:
        return None
    return float(found.total_price)


def ours(usage: Usage, name: str, provider: str | None, at: datetime) -> float | None:
    known = table.find(name, provider)
    price = None if known is None else known.price(at.timestamp())
    return None if price is None else cost(usage, price)


@pytest.mark.parametrize("provider", providers, ids=lambda one: one.id)
def test_every_model_costs_what_genai_prices_says(provider: types.Provider) -> None:
    wrong = [
        (name, usage, at, ours(usage, name, provider.id, at), theirs(usage, name, provider.id, at))
        for model in provider.models
        for number, name in enumerate(names(model))
        for usage in USAGES[: 5 if number == 0 else 1]
        for at in TIMES[: 3 if number == 0 else 1]
        if ours(usage, name, provider.id, at)
        != pytest.approx(theirs(usage, name, provider.id, at), abs=1e-12)
    ]
    assert wrong == []


def test_every_context_window_is_there() -> None:
    snapshot = get_snapshot()
    for provider in providers:
        for model in provider.models:
            known = table.find(model.id, provider.id)
            try:
                expected = snapshot.find_provider_model(model.id, None, provider.id, None)[1].context_window
            except LookupError:
                assert known is None
            else:
                assert known is not None
                assert known.context == expected


@pytest.mark.parametrize(
    "name", ["claude-opus-4-5", "gpt-5-mini", "o3", "gemini-2.5-pro", "kimi-k2", "grok-4", "mixtral", "x-y-z"]
)
def test_a_model_without_a_provider_has_its_makers_price(name: str) -> None:
    assert ours(USAGES[1], name, None, TIMES[0]) == pytest.approx(theirs(USAGES[1], name, None, TIMES[0]))
