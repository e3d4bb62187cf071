"""The keys of [server] about what is kept or shared: the store, Redis and recordings."""

from __future__ import annotations

from typing import Any

from ..credentials.secret import Secret
from .nested_keys import ConfigKey, Keys
from .secret_reference import SecretReference, reference
from .store_address import store_address
from .values import Context, InvalidValue, duration, path, positive_duration, positive_size, size, text

_REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


def _redis_address(value: Any, context: Context) -> SecretReference:
    """`redis://…`, `rediss://…`, `unix://…`, `env:NAME` or `file:PATH`. Errors never repeat an address."""
    content = text(value, context)
    if content.startswith(_REDIS_SCHEMES):
        return SecretReference(literal=Secret(content))
    if (named := reference(content, context)) is not None:
        return named
    raise InvalidValue("must be an address that begins with redis:// or rediss://, or env:NAME or file:PATH")


STORE: Keys = {
    "store": ConfigKey(
        store_address,
        "path or URL",
        "-",
        "Where reasoning, stored responses and receipts are kept: an SQLite file (by default in the user's "
        "data folder), `postgresql://…`, or `env:NAME` or `file:PATH` with one of these in it.",
    ),
    "redis": ConfigKey(
        _redis_address,
        "URL",
        "-",
        "A Redis or Valkey through which processes share limits, cooldowns and the live feed: `redis://…`, "
        "`rediss://…`, `unix://…`, or `env:NAME` or `file:PATH` with one of these in it.",
    ),
    "retention": ConfigKey(
        duration,
        "time",
        '"30d"',
        "How long the store keeps receipts and answers; in PostgreSQL by whole days.",
    ),
    "store_size": ConfigKey(
        positive_size,
        "size",
        "-",
        "The most space of the store; the oldest receipts and answers go first. By default 1 GB for a file, "
        "no limit for PostgreSQL.",
    ),
    "record": ConfigKey(
        path, "path", "-", "A folder for recordings, one file per exchange. Without it, nothing is recorded."
    ),
    "record_retention": ConfigKey(
        positive_duration, "time", "-", "How long recordings are kept; by default until you delete them."
    ),
    "record_size": ConfigKey(
        positive_size, "size", "-", "The most space of recordings; the oldest go first."
    ),
    "keep_failed": ConfigKey(
        size,
        "size",
        '"50MB"',
        "The most space for recordings of failed exchanges, beside the store's file; the oldest go "
        "first, also by `retention`. 0: none are kept.",
    ),
}
