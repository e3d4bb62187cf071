"""The config: found, read, and read again when it changes.

Everything a config can say is in `keys.py`, everything it becomes in `types.py`. A complaint is
one sentence that begins with the file and the line.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from . import checks, environment
from .lines import line_index
from .read import Source, read
from .types import Config, ConfigError, ServerConfig

__all__ = [
    "Config",
    "ConfigError",
    "Fingerprint",
    "Reload",
    "find",
    "fingerprint",
    "from_environment",
    "load",
    "loads",
    "reload",
    "user_folder",
    "with_server",
]

FILE = "dragoman.toml"
VARIABLE = "DRAGOMAN_CONFIG"
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_NEEDS_RESTART = (
    "host", "port", "unix", "tls", "trusted_proxies", "workers", "store", "record", "max_body",
    "max_connections", "client_timeout",
)  # fmt: skip

Fingerprint = tuple[int, int, int]


def find(path: Path | str | None, env: Mapping[str, str], cwd: Path) -> Path | None:
    """The config to use: the one that is named, else the nearest; None when there is none.

    The order is `--config`, `$DRAGOMAN_CONFIG`, the working directory, the user's config folder.
    """
    named = (("--config", path), (f"${VARIABLE}", env.get(VARIABLE, "").strip()))
    for by, name in named:
        if name:
            file = cwd / Path(name).expanduser()
            if not file.is_file():
                raise ConfigError(f"{by} names the file {name}, which does not exist")
            return file
    for file in (cwd / FILE, user_folder(env) / FILE):
        if file.is_file():
            return file
    return None


def user_folder(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where this user's programs keep their configs."""
    home = Path(env.get("HOME") or Path.home())
    xdg = env.get("XDG_CONFIG_HOME", "")
    if xdg and Path(xdg).is_absolute():  # the standard says to ignore relative ones
        return Path(xdg) / "dragoman"
    if platform == "win32" and env.get("APPDATA"):
        return Path(env["APPDATA"]) / "dragoman"
    # On a Mac both are usual; command-line people look into ~/.config.
    library = home / "Library" / "Application Support" / "dragoman"
    if platform == "darwin" and (library / FILE).is_file():
        return library
    return home / ".config" / "dragoman"


def load(path: Path, env: Mapping[str, str] | None = None) -> Config:
    """Read a config file. One without upstreams gets those of the environment."""
    shown = _shown(path)
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{shown}: the file is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{shown}: the file cannot be read: {error.strerror or error}") from None
    return loads(text, shown=shown, path=path, env=env)


def loads(
    text: str, *, shown: str = FILE, path: Path | None = None, env: Mapping[str, str] | None = None
) -> Config:
    """Read a config's text; `shown` is what complaints call it."""
    text = text.replace("\r\n", "\n")
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(str(error), text, shown)) from None
    if "upstreams" not in raw:
        raw = {**environment.document(os.environ if env is None else env), **raw}
    folder = path.absolute().parent if path else Path.cwd()
    return read(Source(raw=raw, shown=shown, lines=line_index(text), folder=folder, path=path))


def from_environment(env: Mapping[str, str]) -> Config:
    """The config for someone who has provider keys in the environment, and no file."""
    return read(Source(raw=environment.document(env), shown="the environment"))


def with_server(
    config: Config, *, host: str | None = None, port: int | None = None, record: Path | None = None
) -> Config:
    """`config` with what the command line says, checked again: a host may be one that needs keys."""
    said = {"host": host, "port": port, "record": record}
    changes = {key: value for key, value in said.items() if value is not None}
    server: ServerConfig = msgspec.structs.replace(config.server, **changes)
    changed = msgspec.structs.replace(config, server=server)
    found = [sentence for _, sentence in checks.problems(changed)]
    if found:
        raise ConfigError(*found)
    return changed


def fingerprint(path: Path) -> Fingerprint | None:
    """Changes whenever the file does; None while there is no file. Costs one `stat`."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


class Reload(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a changed file."""

    config: Config
    """The new config; the old one where the new one cannot be used."""
    changed: bool
    message: str
    """For the log."""


def reload(
    current: Config, env: Mapping[str, str] | None = None, pinned: frozenset[str] = frozenset()
) -> Reload:
    """Read `current`'s file again. A config that cannot be used changes nothing but the message.

    `pinned` are keys of [server] that are not the file's to say: they stay, and nobody is told.
    """
    if current.path is None:
        return Reload(config=current, changed=False, message="the config is from the environment")
    try:
        new = load(current.path, env)
        new.keys(os.environ if env is None else env)
        fixed = [key for key in _NEEDS_RESTART if getattr(new.server, key) != getattr(current.server, key)]
        kept = {key: getattr(current.server, key) for key in fixed}
        new = with_server(msgspec.structs.replace(new, server=msgspec.structs.replace(new.server, **kept)))
    except ConfigError as error:
        return Reload(config=current, changed=False, message=f"the old config stays in use: {error.message}")
    message = f"{_shown(current.path)} was read again"
    told = [key for key in fixed if key not in pinned]
    if told:
        message += f"; a change of server.{', server.'.join(told)} needs a restart"
    return Reload(config=new, changed=new != current, message=message)


def _shown(path: Path) -> str:
    """The shortest way to name a file: below the working directory, or below home."""
    for folder, prefix in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_absolute() and path.is_relative_to(folder):
            return prefix + str(path.relative_to(folder))
    return str(path)


def _syntax(message: str, text: str, shown: str) -> str:
    """What `tomllib` says, as a sentence with the line in front."""
    at = _AT.search(message)
    what = message[: at.start()] if at else message
    line = int(at[1]) if at and at[1] else text.count("\n") + 1
    lines = text.split("\n")
    written = lines[line - 1].strip() if line <= len(lines) else ""
    if what.startswith("Cannot overwrite a value") and "=" in written:
        return f'{shown}:{line}: "{written.partition("=")[0].strip()}" is given twice'
    if what.startswith("Cannot declare") and written.startswith("["):
        return f"{shown}:{line}: {written} is given twice"
    return f"{shown}:{line}: this is not TOML: {what[:1].lower()}{what[1:]}"
