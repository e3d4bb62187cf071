"""The table of prices and context windows, `table.json`, which `make prices` writes.

The file is read at the first lookup. Only the lists of providers that are looked up are decoded: the rest
stays one piece of bytes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

Rate = float | tuple[float, ...] | None
"""US dollars per million tokens, or `(base, start, price, …)`: a longer prompt than `start` costs `price`."""
Condition = int | tuple[int, int] | None
"""None: always. A number: from that second on. Two numbers: between those seconds of each UTC day."""
Clause = str | tuple[str, ...]
"""A text that begins with its kind, or several of which all must match."""

_DAY = 86_400
# OpenRouter and LiteLLM write gpt-5.2-20251211 for gpt-5.2-2025-12-11.
_COMPACT_DATE = re.compile(r"-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


class Price(msgspec.Struct, frozen=True, array_like=True):
    """What a model costs. None: not stated."""

    input: Rate = None
    output: Rate = None
    cache_read: Rate = None
    cache_write: Rate = None
    reasoning: Rate = None
    request: Rate = None
    """US dollars per thousand requests, besides the tokens."""


class _Model(msgspec.Struct, frozen=True, array_like=True):
    names: tuple[Clause, ...]
    context: int | None = None
    price: int | tuple[tuple[Condition, int | None], ...] | None = None


class _Provider(msgspec.Struct, frozen=True):
    names: tuple[Clause, ...] = ()
    """Other names of the provider."""
    families: tuple[Clause, ...] = ()
    """Names of models that this provider made."""
    others: tuple[str, ...] = ()
    """Providers whose models this one sells too, at their prices."""


class _Table(msgspec.Struct, frozen=True):
    prices: tuple[Price, ...]
    providers: dict[str, _Provider]
    models: dict[str, msgspec.Raw]


class KnownModel(msgspec.Struct, frozen=True):
    """The context window and the prices of a model in the table."""

    context: int | None
    """The context window, in tokens."""
    prices: tuple[tuple[Condition, Price | None], ...]

    def price(self, at: float) -> Price | None:
        """The price at the time `at`, in seconds since the epoch: the last one whose condition holds."""
        for condition, price in reversed(self.prices):
            if _holds(condition, at):
                return price
        return self.prices[0][1] if self.prices else None


def find(model: str, provider: str | None) -> KnownModel | None:
    """The model `model` of `provider`. Without a provider, the one that made the model."""
    name = model.lower()
    known = _table().providers
    chosen = _maker(name, known) if provider is None else _named(provider.lower(), known)
    if chosen is None:
        return None
    dashed = _COMPACT_DATE.sub(r"-\1-\2-\3", name)
    for spelling in dict.fromkeys((name, dashed)):
        for place in (chosen, *known[chosen].others):
            found = _list(place).find(spelling)
            if found is not None:
                return found
    return None


def _maker(model: str, known: dict[str, _Provider]) -> str | None:
    return next((name for name, one in known.items() if _any_matches(one.families, model)), None)


def _named(provider: str, known: dict[str, _Provider]) -> str | None:
    if provider in known:
        return provider
    return next((name for name, one in known.items() if _any_matches(one.names, provider)), None)


@functools.cache
def _table() -> _Table:
    return msgspec.json.decode(Path(__file__).with_name("table.json").read_bytes(), type=_Table)


@functools.cache
def _list(provider: str) -> _ModelList:
    return _ModelList(msgspec.json.decode(_table().models[provider], type=list[_Model]), _table().prices)


class _ModelList:
    """The models of one provider. The first match in the list counts."""

    def __init__(self, models: Sequence[_Model], prices: Sequence[Price]) -> None:
        self._models = models
        self._prices = prices
        self._exact: dict[str, int] = {}
        self._patterns: list[tuple[int, Clause]] = []
        for index, model in enumerate(models):
            for clause in model.names:
                if isinstance(clause, str) and clause[0] == "=":
                    self._exact.setdefault(clause[1:], index)
                else:
                    self._patterns.append((index, clause))

    def find(self, name: str) -> KnownModel | None:
        exact = self._exact.get(name, len(self._models))
        earlier = (at for at, clause in self._patterns if at < exact and _matches(clause, name))
        index = next(earlier, exact)
        return self._known(self._models[index]) if index < len(self._models) else None

    def _known(self, model: _Model) -> KnownModel:
        listed = ((None, model.price),) if isinstance(model.price, int) else model.price or ()
        prices = [(condition, None if row is None else self._prices[row]) for condition, row in listed]
        return KnownModel(model.context, tuple(prices))


def _any_matches(clauses: Iterable[Clause], text: str) -> bool:
    return any(_matches(clause, text) for clause in clauses)


def _matches(clause: Clause, text: str) -> bool:
    if not isinstance(clause, str):
        return all(_matches(part, text) for part in clause)
    value = clause[1:]
    match clause[0]:
        case "=":
            return text == value
        case "^":
            return text.startswith(value)
        case "$":
            return text.endswith(value)
        case "~":
            return value in text
        case _:
            return re.search(value, text) is not None


def _holds(condition: Condition, at: float) -> bool:
    if condition is None:
        return True
    if isinstance(condition, int):
        return at >= condition
    start, end = condition
    second = at % _DAY
    return start <= second < end if start <= end else second >= start or second < end
