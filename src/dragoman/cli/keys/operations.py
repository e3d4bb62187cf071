"""The work of the `keys` commands: read the config, and change keys in its store."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from ...access import stored_keys
from ...access.stored_keys import KeyCommandError, NewKey
from ...config.limits import UsageLimits, one_per_period, parse_budget, parse_rate
from ...config.store_address import store_place
from ...config.team_keys import NAME, NAME_RULE, date_or_time
from ...config.types import Config
from ...config.values import Context, InvalidValue, duration, glob
from ...gateway.process import event_loop
from ...store import Store, StoredKey, open_store
from ..serve.service import ServeOptions, effective_config
from .table import KeyRow, table

T = TypeVar("T")

_NO_CONTEXT = Context(upstreams=frozenset(), providers=frozenset(), folder=Path())


def new_key(name: str, given: Mapping[str, Any]) -> NewKey:
    """The key that the command line describes."""
    if not NAME.fullmatch(name):
        raise click.BadParameter(f"a name {NAME_RULE}", param_hint="NAME")
    if given["team"] and not NAME.fullmatch(given["team"]):
        raise click.BadParameter(f"a name {NAME_RULE}", param_hint="--team")
    budgets = tuple(_parsed(parse_budget, text, "--budget") for text in given["budget"])
    limits = UsageLimits(
        rate=_parsed(parse_rate, given["rate"], "--rate") if given["rate"] else None,
        tokens=_parsed(parse_rate, given["tokens"], "--tokens") if given["tokens"] else None,
        streams=given["streams"],
        budgets=_parsed(one_per_period, budgets, "--budget"),
    )
    return NewKey(
        name=name,
        role=given["role"],
        team=given["team"],
        models=tuple(
            _parsed(lambda text: glob(text, _NO_CONTEXT), text, "--models") for text in given["models"]
        ),
        limits=limits,
        expires=_expiry(given["expires"]) if given["expires"] else None,
    )


def _parsed(parse: Callable[[Any], T], value: Any, option: str) -> T:
    try:
        return parse(value)
    except InvalidValue as error:
        raise click.BadParameter(f"{error.message}", param_hint=option) from None
    except ValueError as error:
        raise click.BadParameter(f"{error}", param_hint=option) from None


def seconds(text: str, option: str) -> float:
    return _parsed(lambda text: duration(text, _NO_CONTEXT), text, option)


def _expiry(text: str) -> float:
    """A time from now on, or a date."""
    try:
        return time.time() + duration(text, _NO_CONTEXT)
    except InvalidValue:
        pass
    try:
        at = date_or_time(text, _NO_CONTEXT)
    except InvalidValue:
        raise click.BadParameter(
            "must be a time from now (90d, 12h) or a date (2027-01-31)", param_hint="--expires"
        ) from None
    if at <= time.time():
        raise click.BadParameter("is in the past", param_hint="--expires")
    return at


def create(file: Path | None, key: NewKey) -> str:
    config = effective_config(ServeOptions(file=file), needs_upstream=False)
    if key.name in config.named_keys:
        raise KeyCommandError(f"[keys.{key.name}] is in the config already; choose another name")
    secret = _with_store(config, lambda store: stored_keys.create(store, key, time.time()))
    return secret.reveal()


def created(key: NewKey) -> str:
    limits = "; ".join(key.limits.shown()) or "no limits"
    until = f", until {_day(key.expires)}" if key.expires else ""
    return f'The key "{key.name}" ({key.role}, {limits}{until}) is shown only now: the store has its hash.'


def revoke(file: Path | None, name: str) -> str:
    config = _not_configured(file, name, "remove the table from the config to revoke it")
    _with_store(config, lambda store: stored_keys.revoke(store, name, time.time()))
    return f'The key "{name}" is revoked. Running answers may finish.'


def rotate(file: Path | None, name: str, grace: float) -> str:
    config = _not_configured(file, name, "change its secret there to rotate it")
    secret = _with_store(config, lambda store: stored_keys.rotate(store, name, time.time(), grace))
    return secret.reveal()


def rotated(name: str, grace: float) -> str:
    old = f"stays valid until {_minute(time.time() + grace)}" if grace else "is not valid any more"
    return f'This new secret of "{name}" is shown only now. The old one {old}.'


def _not_configured(file: Path | None, name: str, advice: str) -> Config:
    config = effective_config(ServeOptions(file=file), needs_upstream=False)
    if name in config.named_keys:
        raise KeyCommandError(f'the key "{name}" is in the config: {advice}')
    return config


def listed(file: Path | None, *, as_json: bool) -> list[str]:
    config = effective_config(ServeOptions(file=file), needs_upstream=False)
    kept = _with_store(config, lambda store: store.keys())
    rows = [*_configured(config), *(_stored(key) for key in kept if key.name not in config.named_keys)]
    if as_json:
        return [msgspec.json.encode(row).decode() for row in rows]
    if not rows:
        return ["There are no named keys. `dragoman keys create NAME` makes one."]
    return table(rows)


def _configured(config: Config) -> list[KeyRow]:
    return [
        KeyRow(
            name=key.name,
            secret="in the config",
            role=key.role,
            team=key.team,
            models=key.models,
            limits=tuple(key.limits.shown()),
            expires=_minute(key.expires),
        )
        for key in config.named_keys.values()
    ]


def _stored(key: StoredKey) -> KeyRow:
    state = "revoked" if key.revoked is not None else ""
    if not state and key.expires is not None and key.expires <= time.time():
        state = "expired"
    return KeyRow(
        name=key.name,
        secret=f"{key.prefix}…",
        role=key.role,
        team=key.team,
        models=key.models,
        limits=tuple(stored_keys.settings(key).limits.shown()),
        state=state,
        created=_minute(key.created),
        last_used=_minute(key.last_used),
        expires=_minute(key.expires),
    )


def _with_store(config: Config, work: Callable[[Store], Awaitable[T]]) -> T:
    async def run() -> T:
        store = open_store(store_place(config.server.store, os.environ), fallback=False)
        try:
            return await work(store)
        finally:
            await store.close()

    return event_loop.run(run())


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"


def _minute(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%MZ}"
