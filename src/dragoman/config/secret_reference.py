"""A secret in the config, or where to read it: `env:NAME`, `file:PATH`, or the text itself.

Keys of clients are such secrets, and so are addresses of databases, which hold a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ..credentials.secret import Secret
from .errors import ConfigError
from .values import Context, InvalidValue, path


class SecretReference(msgspec.Struct, frozen=True, kw_only=True):
    """The name of an environment variable, a file, or the secret itself."""

    env: str = ""
    file: Path | None = None
    literal: Secret | None = None

    def resolve(self, env: Mapping[str, str], setting: str) -> Secret:
        """The secret. Raises ConfigError: without its keys, the gateway would let every client in.

        `setting` is the key of the config that names it, for the error.
        """
        if self.literal is not None:
            return self.literal
        if self.file is not None:
            return Secret(_content(self.file, setting))
        value = env.get(self.env, "").strip()
        if not value:
            raise ConfigError(
                f"{setting} names the environment variable {self.env}, which is not set; "
                f"set it, or change {setting}"
            )
        return Secret(value)


def _content(file: Path, setting: str) -> str:
    try:
        value = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(f"{setting} names the file {file}, which cannot be read: {why}") from None
    if not value:
        raise ConfigError(f"{setting} names the file {file}, which is empty; write the secret into it")
    return value


def reference(content: str, context: Context) -> SecretReference | None:
    """The reference that `env:NAME` or `file:PATH` writes; None if `content` is neither."""
    kind, colon, rest = content.partition(":")
    if not colon or kind not in ("env", "file"):
        return None
    name = rest.strip()
    if not name:
        raise InvalidValue(f'must name a {"variable" if kind == "env" else "file"} after "{kind}:"')
    return SecretReference(env=name) if kind == "env" else SecretReference(file=path(name, context))
