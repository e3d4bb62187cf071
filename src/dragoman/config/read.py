"""Turn a TOML document into a `Config`, section by section, and report every problem with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec

from ..profiles import PROFILES
from . import checks
from .keys import ALIAS, CLIENT, ROUTE, SERVER, TELEMETRY, TIERS, TOOLS, UPSTREAM, Keys
from .lines import Path as KeyPath
from .providers import providers
from .types import (
    ClientConfig,
    Config,
    ConfigError,
    RouteConfig,
    ServerConfig,
    TargetConfig,
    TelemetryConfig,
    TiersConfig,
    ToolsConfig,
    UpstreamConfig,
)
from .upstream import upstream as read_upstream
from .values import Context, InvalidValue, has_wildcard, kind, nearest

_TOP = ("server", "upstreams", "routes", "aliases", "tiers", "tools", "clients", "telemetry")
_ADDRESS_KEYS = {"provider", "protocol", "base_url"}
_MAX_LISTED = 6  # keys that an error lists; longer lists are unreadable


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A TOML document, and where it comes from."""

    raw: dict[str, Any]
    shown: str
    """Its name in errors: a file name, or "the environment"."""
    lines: dict[KeyPath, int] = {}
    folder: Path = Path()
    path: Path | None = None


def read(source: Source) -> Config:
    """Read a document. Raises one `ConfigError` with all problems."""
    reader = _Reader(source)
    config = reader.config()
    if reader.problems:
        raise ConfigError(*(sentence for _, sentence in sorted(reader.problems, key=lambda found: found[0])))
    return config


class _Reader:
    """One pass over a document. Collects problems instead of raising: users want to fix all at once."""

    def __init__(self, source: Source) -> None:
        self.problems: list[tuple[int, str]] = []
        self._source = source
        self._raw = source.raw
        named = self._raw.get("upstreams")
        self._context = Context(
            upstreams=frozenset(cast(dict[str, Any], named) if isinstance(named, dict) else ()),
            providers=frozenset(providers()),
            folder=source.folder,
        )

    def config(self) -> Config:
        for name in self._raw:
            if name not in _TOP:
                what = "table" if isinstance(self._raw[name], (dict, list)) else "key"
                self._report((name,), f'unknown {what} "{name}"{nearest(name, _TOP)}')
        server = ServerConfig(**self._section("server", SERVER))
        upstreams = self._upstreams()
        routes = self._routes()
        config = Config(
            server=server,
            upstreams=upstreams,
            routes=routes or default_routes(upstreams),
            aliases=self._aliases(),
            tiers=TiersConfig(**self._section("tiers", TIERS)),
            tools=ToolsConfig(**self._section("tools", TOOLS)),
            clients=self._clients(),
            telemetry=TelemetryConfig(**self._section("telemetry", TELEMETRY)),
            path=self._source.path,
        )
        for path, sentence in checks.problems(config):
            self._report(path, sentence)
        return msgspec.structs.replace(config, warnings=tuple(self._warnings(config)))

    def _upstreams(self) -> dict[str, UpstreamConfig]:
        found: dict[str, UpstreamConfig] = {}
        for name, raw in self._tables("upstreams").items():
            title = f"[upstreams.{name}]"
            path = ("upstreams", name)
            if "/" in name or "*" in name or not name.strip():
                self._report(
                    path, f'{title}: the name of an upstream must not be empty or contain "/" or "*"'
                )
            given = self._fields(raw, path, UPSTREAM, title)
            try:
                found[name] = read_upstream(name, given, self._context)
            except InvalidValue as error:
                # A misspelled or invalid key is already reported. Do not report it as missing too.
                if not any(key in _ADDRESS_KEYS or key not in UPSTREAM for key in raw.keys() - given.keys()):
                    self._report((*path, *error.below), f"{title} {error.message}")
        return found

    def _routes(self) -> tuple[RouteConfig, ...]:
        raw = self._raw.get("routes", [])
        if not isinstance(raw, list):
            self._report(("routes",), f"routes must be written as [[routes]], not as {kind(raw)}")
            return ()
        found: list[RouteConfig] = []
        for index, item in enumerate(cast(list[Any], raw)):
            found += self._route(item, ("routes", index))
        return tuple(found)

    def _route(self, item: Any, path: KeyPath) -> list[RouteConfig]:
        if not isinstance(item, dict):
            self._report(path, f"routes must be written as [[routes]], not as {kind(item)}")
            return []
        raw = cast(dict[str, Any], item)
        fields = self._fields(raw, path, ROUTE, "[[routes]]")
        missing = [key for key in ROUTE if key not in raw]
        if missing and raw.keys() <= ROUTE.keys():
            self._report(path, f'[[routes]] has no "{missing[0]}"')
        if len(fields) < len(ROUTE):
            return []
        return [RouteConfig(match=match, to=fields["to"]) for match in fields["match"]]

    def _aliases(self) -> dict[str, tuple[TargetConfig, ...]]:
        raw = self._raw.get("aliases")
        names = cast(dict[str, Any], raw) if isinstance(raw, dict) else {}
        return self._section("aliases", dict.fromkeys(names, ALIAS))

    def _clients(self) -> dict[str, ClientConfig]:
        found: dict[str, ClientConfig] = {}
        for name, raw in self._tables("clients").items():
            title, path = f"[clients.{name}]", ("clients", name)
            if name not in PROFILES:
                hint = nearest(name, PROFILES) or f"; known clients are {', '.join(PROFILES)}"
                self._report(path, f'{title}: there is no client "{name}"{hint}')
            found[name] = ClientConfig(name=name, **self._fields(raw, path, CLIENT, title))
        return found

    def _section(self, name: str, keys: Keys) -> dict[str, Any]:
        raw = self._raw.get(name, {})
        if not isinstance(raw, dict):
            self._report((name,), f"{name} must be written as [{name}], not as {kind(raw)}")
            return {}
        return self._fields(cast(dict[str, Any], raw), (name,), keys, f"[{name}]")

    def _tables(self, name: str) -> dict[str, dict[str, Any]]:
        """The tables below `name`: `[name.A]`, `[name.B]`."""
        raw = self._raw.get(name, {})
        if not isinstance(raw, dict):
            self._report((name,), f"{name} must be written as [{name}.NAME], not as {kind(raw)}")
            return {}
        found: dict[str, dict[str, Any]] = {}
        for key, value in cast(dict[str, Any], raw).items():
            if isinstance(value, dict):
                found[key] = cast(dict[str, Any], value)
            else:
                self._report(
                    (name, key), f'"{key}" in [{name}] must be a table, [{name}.{key}], not {kind(value)}'
                )
        return found

    def _fields(self, raw: dict[str, Any], path: KeyPath, keys: Keys, title: str) -> dict[str, Any]:
        """The valid keys of one table."""
        found: dict[str, Any] = {}
        for name, value in raw.items():
            if name not in keys:
                self._report((*path, name), f'unknown key "{name}" in {title}{_hint(name, keys)}')
                continue
            try:
                found[name] = keys[name].read(value, self._context)
            except InvalidValue as error:
                self._report((*path, name, *error.below), f"{name} in {title} {error.message}")
        return found

    def _report(self, path: KeyPath, sentence: str) -> None:
        self.problems.append((self._line(path), f"{self._place(path)}: {sentence}"))

    def _place(self, path: KeyPath) -> str:
        line = self._line(path)
        return f"{self._source.shown}:{line}" if line else self._source.shown

    def _line(self, path: KeyPath) -> int:
        """The line of the innermost part of `path` that is in the file; 0 if no part is."""
        for end in range(len(path), 0, -1):
            if path[:end] in self._source.lines:
                return self._source.lines[path[:end]]
        return 0

    def _warnings(self, config: Config) -> list[str]:
        found: list[str] = []
        for path, sentence in checks.warnings(config):
            found.append(f"{self._place(path)}: {sentence}")
        return found


def _hint(name: str, keys: Keys) -> str:
    near = nearest(name, keys)
    if near or not keys or len(keys) > _MAX_LISTED:
        return near
    return f"; valid keys are {', '.join(keys)}"


def default_routes(upstreams: dict[str, UpstreamConfig]) -> tuple[RouteConfig, ...]:
    """The routes of a config without `[[routes]]`.

    A model goes to the upstream that lists it, else to the provider of its family, else to the first.
    """
    known = providers()
    found: list[tuple[str, str]] = [
        (model.name, name)
        for name, upstream in upstreams.items()
        for model in upstream.models
        if not has_wildcard(model.name)
    ]
    for name, upstream in upstreams.items():
        families = known[upstream.provider].families if upstream.provider else ()
        found += [(family, name) for family in families]
    found += [("*", name) for name in upstreams][:1]
    by_match: dict[str, str] = {}
    for match, name in found:
        by_match.setdefault(match, name)
    return tuple(
        RouteConfig(match=match, to=(TargetConfig(upstream=name, model="*"),))
        for match, name in by_match.items()
    )
