"""Find, read and reload the config.

`keys.py` lists every key of the file, `types.py` defines the values that the file becomes. An error is one
sentence that starts with the file and the line.
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
from .read import ConfigDocument, read
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
# The position at the end of a message of `tomllib`, whose exception has no field for it in Python 3.11.
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
# Keys of [server] that a running gateway cannot change: the socket is open, the store is in use.
_NEEDS_RESTART = (
    "host", "port", "unix", "tls", "trusted_proxies", "workers", "store", "redis",
    "record", "record_retention", "record_size", "max_body", "max_connections", "client_timeout",
)  # fmt: skip

Fingerprint = tuple[int, int, int]


def find(path: Path | str | None, env: Mapping[str, str], cwd: Path) -> Path | None:
    """Find the config file. None if there is no file.

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
    """The folder of this user's Dragoman config."""
    home = Path(env.get("HOME") or Path.home())
    xdg = env.get("XDG_CONFIG_HOME", "")
    if xdg and Path(xdg).is_absolute():  # the XDG specification says to ignore relative paths
        return Path(xdg) / "dragoman"
    if platform == "win32" and env.get("APPDATA"):
        return Path(env["APPDATA"]) / "dragoman"
    # macOS has both folders. A new file goes to ~/.config, where users of command-line tools look for it.
    library = home / "Library" / "Application Support" / "dragoman"
    if platform == "darwin" and (library / FILE).is_file():
        return library
    return home / ".config" / "dragoman"


def load(path: Path, env: Mapping[str, str] | None = None, *, needs_upstream: bool = True) -> Config:
    """Read a config file. A file without upstreams gets the upstreams of the environment."""
    shown = _shown(path)
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{shown}: the file is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{shown}: the file cannot be read: {error.strerror or error}") from None
    return loads(text, shown=shown, path=path, env=env, needs_upstream=needs_upstream)


def loads(
    text: str,
    *,
    shown: str = FILE,
    path: Path | None = None,
    env: Mapping[str, str] | None = None,
    needs_upstream: bool = True,
) -> Config:
    """Read the text of a config. `shown` is its name in errors.

    Without `needs_upstream`, a config may have no upstream, and then it has no routes either.
    """
    text = text.replace("\r\n", "\n")
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax(str(error), text, shown)) from None
    if "upstreams" not in raw:
        raw = {**environment.document(os.environ if env is None else env), **raw}
    folder = path.absolute().parent if path else Path.cwd()
    document = ConfigDocument(raw=raw, shown=shown, lines=line_index(text), folder=folder, path=path)
    return read(document, needs_upstream=needs_upstream)


def from_environment(env: Mapping[str, str], *, needs_upstream: bool = True) -> Config:
    """Make a config from the provider keys in the environment, without a file."""
    found = environment.document(env)
    if needs_upstream and not found:
        raise ConfigError(environment.no_config())
    return read(ConfigDocument(raw=found, shown="the environment"), needs_upstream=needs_upstream)


def discover(file: Path | None, env: Mapping[str, str], *, needs_upstream: bool = True) -> Config:
    """The config of `file`, of the default locations, or of the keys in the environment."""
    found = find(file, env, Path.cwd())
    if found is None:
        return from_environment(env, needs_upstream=needs_upstream)
    return load(found, needs_upstream=needs_upstream)


def with_server(
    config: Config, *, host: str | None = None, port: int | None = None, record: Path | None = None
) -> Config:
    """Apply command-line options to `config`, and check it again: another host may need keys."""
    options = {"host": host, "port": port, "record": record}
    changes = {key: value for key, value in options.items() if value is not None}
    server: ServerConfig = msgspec.structs.replace(config.server, **changes)
    changed = msgspec.structs.replace(config, server=server)
    found = [sentence for _, sentence in checks.problems(changed)]
    if found:
        raise ConfigError(*found)
    return changed


def fingerprint(path: Path) -> Fingerprint | None:
    """A value that changes when the file changes; None if there is no file. Costs one `stat`."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


class Reload(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reading the config file again."""

    config: Config
    """The new config, or the old one if the new one is invalid."""
    changed: bool
    message: str
    """For the log."""


def reload(
    current: Config, env: Mapping[str, str] | None = None, pinned: frozenset[str] = frozenset()
) -> Reload:
    """Read the file of `current` again. An invalid config changes only the message.

    `pinned` are keys of [server] that the command line sets. They stay, and the message does not name them.
    """
    if current.path is None:
        return Reload(
            config=current,
            changed=False,
            message="the config comes from the environment: there is no file to read again",
        )
    try:
        new = load(current.path, env)
        new.named_secrets(os.environ if env is None else env)
        fixed = [key for key in _NEEDS_RESTART if getattr(new.server, key) != getattr(current.server, key)]
        kept = {key: getattr(current.server, key) for key in fixed}
        new = with_server(msgspec.structs.replace(new, server=msgspec.structs.replace(new.server, **kept)))
    except ConfigError as error:
        return Reload(config=current, changed=False, message=f"the old config stays in use: {error.message}")
    message = f"{_shown(current.path)} was read again"
    ignored = [key for key in fixed if key not in pinned]
    if ignored:
        message += f"; a change of server.{', server.'.join(ignored)} needs a restart"
    return Reload(config=new, changed=new != current, message=message)


def _shown(path: Path) -> str:
    """The shortest name of a file: relative to the working directory or the home folder."""
    for folder, prefix in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_absolute() and path.is_relative_to(folder):
            return prefix + str(path.relative_to(folder))
    return str(path)


def _syntax(message: str, text: str, shown: str) -> str:
    """Turn an error of `tomllib` into a sentence that starts with the file and the line."""
    at = _POSITION.search(message)
    what = message[: at.start()] if at else message
    line = int(at[1]) if at and at[1] else text.count("\n") + 1
    lines = text.split("\n")
    source = lines[line - 1].strip() if line <= len(lines) else ""
    if what.startswith("Cannot overwrite a value") and "=" in source:
        return f'{shown}:{line}: "{source.partition("=")[0].strip()}" is given twice'
    if what.startswith("Cannot declare") and source.startswith("["):
        return f"{shown}:{line}: {source} is given twice"
    return f"{shown}:{line}: this is not valid TOML: {what[:1].lower()}{what[1:]}"
