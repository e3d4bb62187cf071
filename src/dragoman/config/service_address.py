"""The address of a service, which may hold a password: in the config, in a variable, or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..credentials.secret import Secret
from ..model.errors import DragomanError
from .values import Context, InvalidValue, path, text

_REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


class ServiceAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a service, or where the config says to read it: a variable or a file."""

    setting: str
    """The key of the config that names it, for errors."""
    literal: Secret | None = None
    env: str = ""
    file: Path | None = None

    def secret(self, env: Mapping[str, str]) -> Secret:
        """The address. Raises DragomanError if the variable or the file cannot be read."""
        if self.literal is not None:
            return self.literal
        return Secret(self._from_file(self.file) if self.file is not None else self._from(env))

    def _from(self, env: Mapping[str, str]) -> str:
        value = env.get(self.env, "").strip()
        if not value:
            raise DragomanError(
                f"{self.setting} names the environment variable {self.env}, which is not set; "
                f"set it, or change {self.setting}"
            )
        return value

    def _from_file(self, file: Path) -> str:
        try:
            value = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DragomanError(
                f"{self.setting} names the file {file}, which cannot be read: {error}; "
                f"create it with the address of the service, or change {self.setting}"
            ) from None
        if not value:
            raise DragomanError(f"{self.setting} names the file {file}, which is empty")
        return value


def reference(content: str, context: Context) -> dict[str, Any] | None:
    """`env:NAME` or `file:PATH` as members of a `ServiceAddress`; None if it is neither."""
    kind, colon, rest = content.partition(":")
    if not colon or kind not in ("env", "file"):
        return None
    if not rest.strip():
        raise InvalidValue(f'must name a {"variable" if kind == "env" else "file"} after "{kind}:"')
    return {"env": rest.strip()} if kind == "env" else {"file": path(rest, context)}


def redis_address(value: Any, context: Context) -> ServiceAddress:
    """`redis://…`, `rediss://…`, `unix://…`, `env:NAME` or `file:PATH`. Errors never repeat an address."""
    content = text(value, context)
    if content.startswith(_REDIS_SCHEMES):
        return ServiceAddress(setting="server.redis", literal=Secret(content))
    named = reference(content, context)
    if named is None:
        raise InvalidValue(
            "must be an address that begins with redis:// or rediss://, or env:NAME or file:PATH"
        )
    return ServiceAddress(setting="server.redis", **named)
