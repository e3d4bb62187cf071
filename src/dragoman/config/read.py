"""Turn a TOML document into a `Config`, section by section, and report every problem with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec

from ..profiles import PROFILES
from ..protocols.registry import PROTOCOLS
from . import checks, environment, team_keys
from .keys import (
    ALIAS,
    CLIENT,
    IMAGES,
    MODEL_PRICE,
    ROUTE,
    SEARCH,
    SERVER,
    TELEMETRY,
    TIERS,
    TOOLS,
    UPSTREAM,
    Keys,
)
from .lines import Path as KeyPath
from .platforms import PLACE
from .providers import providers
from .types import (
    ClientConfig,
    Config,
    ConfigError,
    ImagesConfig,
    KeyConfig,
    LimitsConfig,
    PriceConfig,
    RouteConfig,
    SearchConfig,
    ServerConfig,
    TargetConfig,
    TeamConfig,
    TelemetryConfig,
    TiersConfig,
    ToolsConfig,
    UpstreamConfig,
)
from .upstream import upstream as read_upstream
from .values import Context, InvalidValue, glob, has_wildcard, nearest, toml_type

_TOP = (
    "server",
    "upstreams",
    "routes",
    "aliases",
    "tiers",
    "tools",
    "clients",
    "search",
    "images",
    "prices",
    "telemetry",
    "keys",
    "teams",
    "limits",
)
_NAMING_UPSTREAMS = frozenset({"routes", "aliases", "tiers", "images"})
_ADDRESS_KEYS = {"provider", "protocol", "base_url", *PLACE}
_DOUBLE_BRACKETS = "write [[routes]] with double brackets, once for each route; it is "
_MAX_LISTED = 6  # keys that an error lists; longer lists are unreadable


class ConfigDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A TOML document, and where it comes from."""

    raw: dict[str, Any]
    shown: str
    """Its name in errors: a file name, or "the environment"."""
    lines: dict[KeyPath, int] = {}
    folder: Path = Path()
    path: Path | None = None


def read(source: ConfigDocument, *, needs_upstream: bool = True) -> Config:
    """Read a document. Raises one `ConfigError` with all problems.

    Without `needs_upstream`, a document without upstreams is read without the tables that name some.
    """
    if not needs_upstream and not source.raw.get("upstreams"):
        rest = {name: value for name, value in source.raw.items() if name not in _NAMING_UPSTREAMS}
        source = msgspec.structs.replace(source, raw=rest)
    reader = _DocumentReader(source, needs_upstream=needs_upstream)
    config = reader.config()
    if reader.problems:
        raise ConfigError(*(sentence for _, sentence in sorted(reader.problems, key=lambda found: found[0])))
    return config


class _DocumentReader:
    """One pass over a document. Collects problems instead of raising: users want to fix all at once."""

    def __init__(self, source: ConfigDocument, *, needs_upstream: bool) -> None:
        self._needs_upstream = needs_upstream
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
        if self._needs_upstream and not self._raw.get("upstreams"):
            self._report((), environment.no_upstream())
        routes = self._routes()
        config = Config(
            server=server,
            upstreams=upstreams,
            # Routes with conditions answer some requests only. The others need a route, too.
            routes=routes if any(r.when is None for r in routes) else (*routes, *default_routes(upstreams)),
            aliases=self._aliases(),
            tiers=TiersConfig(**self._section("tiers", TIERS)),
            tools=ToolsConfig(**self._section("tools", TOOLS)),
            clients=self._clients(),
            search=SearchConfig(**self._section("search", SEARCH)),
            images=ImagesConfig(**self._section("images", IMAGES)),
            prices=self._prices(),
            telemetry=TelemetryConfig(**self._section("telemetry", TELEMETRY)),
            named_keys=self._keys(),
            teams=self._teams(),
            limits=LimitsConfig(**self._section("limits", team_keys.LIMITS)),
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
            self._report(("routes",), _DOUBLE_BRACKETS + toml_type(raw))
            return ()
        found: list[RouteConfig] = []
        for index, item in enumerate(cast(list[Any], raw)):
            found += self._route(item, index)
        return tuple(found)

    def _route(self, item: Any, number: int) -> list[RouteConfig]:
        path = ("routes", number)
        if not isinstance(item, dict):
            self._report(path, _DOUBLE_BRACKETS + toml_type(item))
            return []
        raw = cast(dict[str, Any], item)
        fields = self._fields(raw, path, ROUTE, "[[routes]]")
        needed = ("to",) if "when" in raw else ("match", "to")
        missing = [key for key in needed if key not in raw]
        if missing and raw.keys() <= ROUTE.keys():
            self._report(path, f'[[routes]] has no "{missing[0]}"')
        if missing or len(fields) < len(raw):
            return []
        when, to, prefer = fields.get("when"), fields["to"], fields.get("prefer", "listed")
        if prefer != "listed" and any(target.weight is not None for target in to):
            sentence = f'[[routes]] has prefer = "{prefer}" and targets with weights: remove one of them'
            self._report((*path, "prefer"), sentence)
        matches = fields.get("match", ("*",))
        return [RouteConfig(match=match, when=when, to=to, prefer=prefer, number=number) for match in matches]

    def _aliases(self) -> dict[str, tuple[TargetConfig, ...]]:
        raw = self._raw.get("aliases")
        names = cast(dict[str, Any], raw) if isinstance(raw, dict) else {}
        return self._section("aliases", dict.fromkeys(names, ALIAS))

    def _prices(self) -> tuple[PriceConfig, ...]:
        raw = self._raw.get("prices")
        globs = cast(dict[str, Any], raw) if isinstance(raw, dict) else {}
        for name in globs:
            try:
                glob(name, self._context)
            except InvalidValue as error:
                self._report(("prices", name), f"[prices] {error.message}")
        found = self._section("prices", dict.fromkeys(globs, MODEL_PRICE))
        return tuple(msgspec.structs.replace(price, match=name) for name, price in found.items())

    def _clients(self) -> dict[str, ClientConfig]:
        found: dict[str, ClientConfig] = {}
        for name, raw in self._tables("clients").items():
            title, path = f"[clients.{name}]", ("clients", name)
            if name not in PROFILES:
                hint = nearest(name, PROFILES) or f"; known clients are {', '.join(PROFILES)}"
                self._report(path, f'{title}: there is no client "{name}"{hint}')
            found[name] = ClientConfig(name=name, **self._fields(raw, path, CLIENT, title))
        return found

    def _keys(self) -> dict[str, KeyConfig]:
        found: dict[str, KeyConfig] = {}
        for name, fields in self._named("keys", team_keys.KEY).items():
            if "secret" in fields:
                found[name] = KeyConfig(name=name, **team_keys.with_limits(fields))
            elif "secret" not in self._raw["keys"][name]:
                self._report(("keys", name), f'[keys.{name}] has no "secret"; write secret = "env:NAME"')
        return found

    def _teams(self) -> dict[str, TeamConfig]:
        tables = self._named("teams", team_keys.TEAM)
        return {name: TeamConfig(name=name, **team_keys.with_limits(f)) for name, f in tables.items()}

    def _named(self, table: str, keys: Keys) -> dict[str, dict[str, Any]]:
        """The tables below `table`, whose names are shown in logs and receipts."""
        found: dict[str, dict[str, Any]] = {}
        for name, raw in self._tables(table).items():
            title, path = f"[{table}.{name}]", (table, name)
            if not team_keys.NAME.fullmatch(name):
                self._report(path, f"{title}: the name is not valid; a name {team_keys.NAME_RULE}")
            found[name] = self._fields(raw, path, keys, title)
        return found

    def _section(self, name: str, keys: Keys) -> dict[str, Any]:
        raw = self._raw.get(name, {})
        if not isinstance(raw, dict):
            self._report((name,), f"{name} must be written as [{name}], not as {toml_type(raw)}")
            return {}
        return self._fields(cast(dict[str, Any], raw), (name,), keys, f"[{name}]")

    def _tables(self, name: str) -> dict[str, dict[str, Any]]:
        """The tables below `name`: `[name.A]`, `[name.B]`."""
        raw = self._raw.get(name, {})
        if not isinstance(raw, dict):
            self._report((name,), f"{name} must be written as [{name}.NAME], not as {toml_type(raw)}")
            return {}
        found: dict[str, dict[str, Any]] = {}
        for key, value in cast(dict[str, Any], raw).items():
            if isinstance(value, dict):
                found[key] = cast(dict[str, Any], value)
            else:
                self._report(
                    (name, key),
                    f'"{key}" in [{name}] must be a table, [{name}.{key}], not {toml_type(value)}',
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
        found = sorted(checks.warnings(config), key=lambda warning: self._line(warning[0]))
        return [f"{self._place(path)}: {sentence}" for path, sentence in found]


# The key names of other tools, and Dragoman's names for them. Used for hints in errors.
_OTHER_NAMES = {
    "url": "base_url", "api_base": "base_url", "api_url": "base_url", "endpoint": "base_url",
    "key": "credential", "api_key": "credential", "apikey": "credential", "token": "credential",
    "keys": "credentials", "api_keys": "credentials", "tokens": "credentials",
    "type": "protocol", "format": "protocol", "api": "protocol",
    "model": "match", "from": "match", "target": "to", "targets": "to", "upstream": "to",
}  # fmt: skip
_EXAMPLES = {
    "base_url": '"https://…/v1"',
    "credential": '"env:NAME", with the name of the variable that holds the key',
    "credentials": '["env:NAME", "env:OTHER"], with the names of the variables that hold the keys',
    "protocol": f"one of {', '.join(PROTOCOLS)}",
    "match": '"claude-*"',
    "to": '"UPSTREAM/MODEL"',
}


def _hint(name: str, keys: Keys) -> str:
    ours = _OTHER_NAMES.get(name.lower())
    if ours in keys:
        return f"; write {ours} = {_EXAMPLES[ours]}"
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
