"""The keys of the tables about people: `[keys.NAME]`, `[teams.NAME]` and `[limits]`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any

from .limits import Budget, Rate, UsageLimits, one_per_period, parse_budget, parse_rate
from .nested_keys import ConfigKey, Keys, client_key
from .values import Context, InvalidValue, choice, glob, list_of, text, toml_type, whole_number

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
NAME_RULE = 'has at most 64 letters, digits, ".", "_", "@" and "-", and starts with a letter or digit'
_LIMITS = ("rate", "tokens", "streams", "budget")


def _parsed(parse: Callable[[str], Any]) -> Callable[[Any, Context], Any]:
    def read(value: Any, context: Context) -> Any:
        content = text(value, context)
        try:
            return parse(content)
        except ValueError as error:
            raise InvalidValue(f'{error}, not "{content}"') from None

    return read


def _budgets(value: Any, context: Context) -> tuple[Budget, ...]:
    found = list_of(_parsed(parse_budget), allow_single=True)(value, context)
    try:
        return one_per_period(found)
    except ValueError as error:
        raise InvalidValue(str(error)) from None


def team_name(value: Any, context: Context) -> str:
    name = text(value, context)
    if not NAME.fullmatch(name):
        raise InvalidValue(f'is not a valid name: "{name}"; a name {NAME_RULE}')
    return name


def date_or_time(value: Any, context: Context) -> float:
    """A date or a time, as TOML's own type or as text. Without a zone, it is in UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise InvalidValue(
                'must be a date or a time, such as 2027-01-31 or "2027-01-31T18:00Z"'
            ) from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise InvalidValue(f"must be a date or a time, not {toml_type(value)}")
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def with_limits(fields: dict[str, Any]) -> dict[str, Any]:
    """`fields` with the limits as one value."""
    given = {name: fields.pop(name) for name in _LIMITS if name in fields}
    budgets: tuple[Budget, ...] = given.pop("budget", ())
    return {**fields, "limits": UsageLimits(budgets=budgets, **given)}


_rate: Callable[[Any, Context], Rate] = _parsed(parse_rate)

TEAM: Keys = {
    "budget": ConfigKey(
        _budgets,
        "text or list",
        "-",
        'US dollars or tokens per `day` or `month` (UTC): `"50/month"`, `"2M tokens/day"`, or a list.',
    ),
    "rate": ConfigKey(_rate, "text", "-", 'Requests per `min`, `hour` or `day`: `"60/min"`.'),
    "tokens": ConfigKey(_rate, "text", "-", 'Tokens per `min`, `hour` or `day`: `"200k/min"`.'),
    "streams": ConfigKey(whole_number(1), "whole number", "-", "Requests at the same time."),
}

KEY: Keys = {
    "secret": ConfigKey(
        client_key, "text", "", "The key that the client sends: `env:NAME`, `file:PATH`, or the key itself."
    ),
    "role": ConfigKey(
        choice("user", "admin"),
        "text",
        '"user"',
        "`user` sees only its own exchanges and usage; `admin` sees those of every key, and `/metrics`.",
    ),
    "team": ConfigKey(
        team_name, "text", "-", "The team that the key belongs to. Its limits are in `[teams.NAME]`."
    ),
    "models": ConfigKey(
        list_of(glob, allow_single=True),
        "glob or list",
        "all",
        "The model names that the key may ask for, as the client writes them.",
    ),
    **TEAM,
    "expires": ConfigKey(
        date_or_time, "date or time", "-", "From then on the key is refused; in UTC unless it names a zone."
    ),
}

LIMITS: Keys = {
    "when_unshared": ConfigKey(
        choice("allow", "refuse"),
        "text",
        '"allow"',
        "If the shared counters cannot be reached: count in each process alone, or refuse limited keys.",
    ),
}
