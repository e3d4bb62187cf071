"""The place of the store: a file, or a database whose address holds a password."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..credentials.secret import Secret
from .service_address import ServiceAddress, reference
from .values import Context, InvalidValue, path, text

_SCHEMES = ("postgresql://", "postgres://")


class StoreAddress(ServiceAddress, frozen=True, kw_only=True):
    """The address of a database: in the config, in an environment variable, or in a file."""

    setting: str = "server.store"

    def resolve(self, env: Mapping[str, str]) -> Secret | Path:
        """The address. What a variable or a file names may also be a file of SQLite."""
        found = self.secret(env)
        content = found.reveal()
        return found if content.startswith(_SCHEMES) else Path(content).expanduser()


def store_place(place: Path | StoreAddress | None, env: Mapping[str, str]) -> Path | Secret | None:
    """Where the store is, with variables and files read."""
    return place.resolve(env) if isinstance(place, StoreAddress) else place


def store_address(value: Any, context: Context) -> Path | StoreAddress:
    """`PATH`, `postgresql://…`, `env:NAME` or `file:PATH`. Errors never repeat an address."""
    content = text(value, context)
    if content.startswith(_SCHEMES):
        return StoreAddress(literal=Secret(content))
    if (named := reference(content, context)) is not None:
        return StoreAddress(**named)
    if "://" in content:
        raise InvalidValue("must be a path, or an address that begins with postgresql://")
    return path(value, context)
