"""The place of the store: a file, or a database whose address holds a password."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..credentials.secret import Secret
from .secret_reference import SecretReference, reference
from .values import Context, InvalidValue, path, text

_SCHEMES = ("postgresql://", "postgres://")


def store_place(store: Path | SecretReference | None, env: Mapping[str, str]) -> Path | Secret | None:
    """Where the store is. What a variable or a file names may also be a file of SQLite."""
    if not isinstance(store, SecretReference):
        return store
    found = store.resolve(env, "server.store")
    content = found.reveal()
    return found if content.startswith(_SCHEMES) else Path(content).expanduser()


def store_address(value: Any, context: Context) -> Path | SecretReference:
    """`PATH`, `postgresql://…`, `env:NAME` or `file:PATH`. Errors never repeat an address."""
    content = text(value, context)
    if content.startswith(_SCHEMES):
        return SecretReference(literal=Secret(content))
    if (named := reference(content, context)) is not None:
        return named
    if "://" in content:
        raise InvalidValue("must be a path, or an address that begins with postgresql://")
    return path(value, context)
