"""Writes the price table of the package from the data of genai-prices. Run it with `make prices`.

genai-prices is kept current by its makers, but takes half a second and 75 MB to import. The table has only
what `dragoman.prices` reads: names, context windows, and prices of tokens. Prices of batches, of service
tiers, of sound and of single searches are left out, because the usage of an answer does not tell them.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices import types
from genai_prices.data import providers

TABLE = Path(__file__).parent.parent / "src" / "dragoman" / "prices" / "table.json"
# The order in `dragoman.prices.table.Price`. Each key counts tokens, except the last, which counts requests.
_RATES = (
    "input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "output_reasoning_mtok",
    "requests_kcount",
)  # fmt: skip
_CLAUSES = {
    types.ClauseEquals: ("=", "equals"),
    types.ClauseStartsWith: ("^", "starts_with"),
    types.ClauseEndsWith: ("$", "ends_with"),
    types.ClauseContains: ("~", "contains"),
}


def table() -> str:
    """The whole file, with one line per model: a change of prices is a readable difference."""
    rows: dict[str, int] = {}
    models = {one.id: [_model(model, rows) for model in one.models] for one in providers}
    about = {one.id: _provider(one) for one in providers}
    parts = [
        f'"source": {json.dumps("genai-prices " + version("genai-prices"))}',
        f'"prices": [\n{_lines(rows)}\n]',
        f'"providers": {{\n{_lines(f"{json.dumps(name)}: {_text(one)}" for name, one in about.items())}\n}}',
    ]
    lists = (f"{json.dumps(name)}: [\n{_lines(map(_text, found))}\n]" for name, found in models.items())
    parts.append(f'"models": {{\n{_lines(lists)}\n}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(texts: Any) -> str:
    return ",\n".join(texts)


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _provider(one: types.Provider) -> dict[str, Any]:
    found = {
        "names": _clauses(one.provider_match),
        "families": _clauses(one.model_match),
        "others": one.fallback_model_providers or [],
    }
    return {name: value for name, value in found.items() if value}


def _model(model: types.ModelInfo, rows: dict[str, int]) -> list[Any]:
    """Names, context window, and the prices: a row, or several with their conditions, the last match wins."""
    row: list[Any] = [_clauses(model.match), model.context_window, _prices(model, rows)]
    while row[-1] is None:
        row.pop()
    return row


def _prices(model: types.ModelInfo, rows: dict[str, int]) -> Any:
    if isinstance(model.prices, types.ModelPrice):
        return _row(model.prices, rows)
    listed = [(_condition(one.constraint), _row(one.prices, rows)) for one in model.prices]
    return listed[0][1] if len(listed) == 1 else listed


def _row(price: types.ModelPrice, rows: dict[str, int]) -> int | None:
    """The index of the price; None if it has none for tokens."""
    rates = [_rate(getattr(price, key)) for key in _RATES]
    if not any(rate is not None for rate in rates[:2]):
        return None
    while rates[-1] is None:
        rates.pop()
    return rows.setdefault(f"[{','.join(rate or 'null' for rate in rates)}]", len(rows))


def _rate(value: Decimal | types.TieredPrices | None) -> str | None:
    """US dollars per million, or `[base, start, price, …]` if the length of the prompt decides."""
    if isinstance(value, types.TieredPrices):
        tiers = [text for tier in value.tiers for text in (str(tier.start), _number(tier.price))]
        return f"[{','.join([_number(value.base), *tiers])}]"
    return None if value is None else _number(value)


def _number(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _condition(constraint: Any) -> Any:
    """None, the first second of the price, or the seconds of the UTC day between which it holds."""
    match constraint:
        case None:
            return None
        case types.StartDateConstraint(start_date=start):
            return int(datetime.combine(start, time(), UTC).timestamp())
        case types.TimeOfDateConstraint(start_time=start, end_time=end):
            return [_seconds(start), _seconds(end)]
        case _:
            raise TypeError(f"unknown condition of a price: {constraint!r}")


def _seconds(moment: time) -> int:
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    utc = datetime.combine(date(1970, 1, 2), known).astimezone(UTC)
    return utc.hour * 3600 + utc.minute * 60 + utc.second


def _clauses(logic: Any) -> list[Any]:
    """Alternatives. Each is a text that begins with its kind, or a list of clauses that must all match."""
    match logic:
        case None:
            return []
        case types.ClauseOr(or_=alternatives):
            return [clause for one in alternatives for clause in _clauses(one)]
        case types.ClauseAnd(and_=parts):
            return [[_single(part) for part in parts]]
        case _:
            return [_single(logic)]


def _single(clause: Any) -> str:
    if isinstance(clause, types.ClauseRegex):
        return f"/{clause.regex}"  # the only kind in which upper case may mean something
    mark, field = _CLAUSES[type(clause)]
    return mark + getattr(clause, field).lower()


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
