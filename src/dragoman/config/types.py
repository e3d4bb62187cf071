"""The config as frozen values. `read.py` makes them; no other module changes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..credentials.secret import Secret
from ..credentials.spec import CredentialSpec
from ..profiles import Arguments
from ..protocols.base import Freeform, Target
from ..protocols.common import call_ids as ids
from ..protocols.model_facts import ModelFacts, known_facts
from ..transport.client import DEFAULT_NETWORK, Network
from .errors import ConfigError
from .limits import NO_LIMITS, UsageLimits
from .platforms import Hosting
from .route_types import RouteConfig, TargetConfig, TiersConfig
from .secret_reference import SecretReference
from .urls import Endpoint

Role = Literal["user", "admin"]

ID_RULES = {"mistral": ids.MISTRAL, "openai": ids.OPENAI, "any": ids.ANY}


_MODEL_FACTS = (
    *("reasons", "efforts", "images", "audio", "search", "media_results"),
    *("sampling", "stop", "verbosity", "max_tokens"),
)


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A model of an upstream. Limits given here win over `providers.toml` and the table of `prices/`."""

    name: str
    context: int | None = None
    max_output: int | None = None
    reasons: bool | None = None
    efforts: tuple[str, ...] | None = None
    images: bool | None = None
    audio: bool | None = None
    search: bool | None = None
    media_results: bool | None = None
    sampling: bool | None = None
    stop: bool | None = None
    verbosity: bool | None = None
    max_tokens: bool | None = None

    def facts(self) -> dict[str, Any]:
        """The facts that the config sets. They replace those that `protocols.model_facts` finds by name."""
        given = {name: getattr(self, name) for name in _MODEL_FACTS}
        return {name: value for name, value in given.items() if value is not None}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an upstream that `protocols.base.Target` needs."""

    ids: Literal["mistral", "openai", "any"] | None = None
    anthropic_version: str = "2023-06-01"
    default_max_tokens: int = 32_000
    reasoning_field: str | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_completion_tokens"
    chat_compatible: bool = False
    cache_marks: bool | Literal["blocks"] = False
    compaction: bool = False


class UpstreamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A model endpoint."""

    name: str
    protocol: str
    endpoint: Endpoint
    credential: CredentialSpec = CredentialSpec(kind="none")
    each_key: tuple[UpstreamConfig, ...] = ()
    """This upstream once for each of its keys, in their order; empty if it has only one."""
    key_number: int = 0
    """The number of `credential` among the keys."""
    auth: str | None = None
    """The header for the key; None: the header that the protocol uses."""
    provider: str | None = None
    """The entry of `providers.toml` that supplied values."""
    withheld: str = ""
    """The provider's own credential, if it is not sent because the address is not the provider's."""
    headers: dict[str, str] = {}
    facts: Facts = Facts()
    connect_timeout: float = 10.0
    idle_timeout: float = 300.0
    """Seconds that an answer may stay silent."""
    models: tuple[ModelConfig, ...] = ()
    strict: bool | None = None
    other_endpoints: frozenset[str] = frozenset()
    """Endpoints beside answers (`OtherEndpoint.name`) that go to this upstream if no route says where."""
    web_search: bool = True
    """May it be asked to search the web itself?"""
    network: Network = DEFAULT_NETWORK
    """Proxy and certificates."""
    place: dict[str, str] = {}
    """Where in a cloud the models are: `region`, `project`, `location`, `api_version`."""
    hosting: Hosting | None = None
    """Set if a cloud hosts the protocol at its own paths."""

    @property
    def base_url(self) -> str:
        """The start of the upstream's URLs. Use `url` to build one: some roots already contain a version."""
        return self.endpoint.root

    @property
    def credentials(self) -> tuple[CredentialSpec, ...]:
        return tuple(one.credential for one in self.each_key) or (self.credential,)

    def url(self, path: str) -> str:
        """The URL of `Outgoing.path` at this upstream."""
        return self.endpoint.url(path)

    def fields(self, model: str) -> dict[str, str]:
        """The values of the fields in the paths and bodies of `hosting`."""
        return {**self.place, "model": model, "anthropic_version": self.facts.anthropic_version}

    def target(self, model: str, *, strict: bool = False) -> Target:
        """What the request writer needs to know about `model` at this upstream."""
        facts = self.facts
        return Target(
            model=model,
            issuer=self.name,
            ids=ID_RULES[facts.ids] if facts.ids else None,
            anthropic_version=facts.anthropic_version,
            default_max_tokens=facts.default_max_tokens,
            reasoning_field=facts.reasoning_field,
            max_tokens_field=facts.max_tokens_field,
            chat_compatible=facts.chat_compatible,
            cache_marks=facts.cache_marks,
            compacts=facts.compaction,
            strict=strict if self.strict is None else self.strict,
            facts=self._model_facts(model),
        )

    def _model_facts(self, model: str) -> ModelFacts | None:
        """The facts about `model` with the values from this config on top. None: the config sets none."""
        listed = next((one for one in self.models if one.name == model), None)
        facts = {} if listed is None else listed.facts()
        return msgspec.structs.replace(known_facts(model), **facts) if facts else None


class LoopsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The number of equal calls with equal results after which Dragoman acts; 0: never."""

    note_after: int = 0
    stop_after: int = 0


class ToolsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How Dragoman treats tool calls."""

    invalid: Literal["pass", "reask", "error"] = "pass"
    reask_attempts: int = 2
    off: frozenset[str] = frozenset()
    loops: LoopsConfig = LoopsConfig()


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How Dragoman searches the web for upstreams that cannot."""

    url: str | None = None
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    max_uses: int = 5
    results: int = 5
    timeout: float = 10.0

    @property
    def can_search(self) -> bool:
        return self.url is not None or bool(self.command)


class ImagesConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How models without vision get images."""

    describe_with: TargetConfig | None = None
    """The model that describes them; None: a placeholder."""
    timeout: float = 60.0


class PriceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A price of `[prices]`: US dollars per million tokens."""

    match: str = ""
    """A glob on `upstream/model` or on the model's name at the upstream."""
    input: float
    output: float
    cache_read: float | None = None
    """None: like `input`."""
    cache_write: float | None = None


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides of a client's profile."""

    name: str
    arguments: Arguments | None = None
    freeform: Freeform | None = None
    keepalive: float | None = None


class KeyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A person, a team or a machine that may use the gateway."""

    name: str
    secret: SecretReference
    role: Role = "user"
    team: str = ""
    models: tuple[str, ...] = ()
    """Globs on the client's model name. Empty: every model."""
    limits: UsageLimits = NO_LIMITS
    expires: float | None = None
    """Seconds since the epoch."""


class TeamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that all keys of a team share."""

    name: str
    limits: UsageLimits = NO_LIMITS


class LimitsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How limits are counted."""

    when_unshared: Literal["allow", "refuse"] = "allow"


class TlsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The server certificate and its private key, as PEM files."""

    cert: Path
    key: Path


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway itself."""

    host: str = "127.0.0.1"
    port: int = 4545
    unix: Path | None = None
    """A Unix socket to listen on, instead of `host` and `port`."""
    tls: TlsConfig | None = None
    trusted_proxies: tuple[str, ...] = ()
    """Networks whose X-Forwarded headers are trusted."""
    keys: tuple[SecretReference, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    max_body: int = 64 * 1024 * 1024
    max_upload: int = 512 * 1024 * 1024
    """Bytes of a body that is sent on while it arrives."""
    max_streams: int = 1000
    max_connections: int = 4096
    client_timeout: float = 30.0
    keepalive: float = 15.0
    shutdown_grace: float = 30.0
    shutdown_delay: float = 0.0
    """Seconds in which requests are still accepted after a stop, while `/readyz` answers 503."""
    retries: int = 2
    store: Path | SecretReference | None = None
    redis: SecretReference | None = None
    """Where processes share fast state; None: each process is alone."""
    retention: float = 30 * 86_400.0
    store_size: int | None = None
    ring: int = 32 * 1024 * 1024
    """Bytes of memory for the bytes of the last exchanges."""
    record: Path | None = None
    """The folder for recordings."""
    record_retention: float | None = None
    record_size: int | None = None
    keep_failed: int = 50 * 1024 * 1024
    """Bytes of recordings of failed exchanges, beside the store."""
    redact: tuple[str, ...] = ()
    """Regular expressions for text that must not be shown, stored or recorded."""
    strict: bool = False
    direct: bool = True


class TelemetryConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Whether and where to send traces."""

    traces: bool | None = None
    """None: send traces if an endpoint is set, here or in OpenTelemetry's environment variables."""
    endpoint: str | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The whole config of a gateway."""

    server: ServerConfig = ServerConfig()
    upstreams: dict[str, UpstreamConfig] = {}
    routes: tuple[RouteConfig, ...] = ()
    aliases: dict[str, tuple[TargetConfig, ...]] = {}
    tiers: TiersConfig = TiersConfig()
    tools: ToolsConfig = ToolsConfig()
    clients: dict[str, ClientConfig] = {}
    search: SearchConfig = SearchConfig()
    images: ImagesConfig = ImagesConfig()
    prices: tuple[PriceConfig, ...] = ()
    telemetry: TelemetryConfig = TelemetryConfig()
    named_keys: dict[str, KeyConfig] = {}
    """The tables `[keys.NAME]`."""
    teams: dict[str, TeamConfig] = {}
    limits: LimitsConfig = LimitsConfig()
    path: Path | None = None
    """The file; None if the config comes from the environment."""
    warnings: tuple[str, ...] = ()
    """Sentences about settings that are valid but probably a mistake."""

    def keys(self, env: Mapping[str, str]) -> tuple[Secret, ...]:
        """The unnamed keys that clients may use (`server.keys`)."""
        return tuple(key.resolve(env, "server.keys") for key in self.server.keys)

    def local_key(self, env: Mapping[str, str]) -> Secret | None:
        """The key of the config that sees most, for commands on this machine; None without keys."""
        unnamed = self.keys(env)
        if unnamed:
            return unnamed[0]
        named = sorted(self.named_keys.values(), key=lambda key: key.role != "admin")
        return named[0].secret.resolve(env, f"keys.{named[0].name}.secret") if named else None

    def named_secrets(self, env: Mapping[str, str]) -> dict[str, Secret]:
        """The secrets of `[keys.NAME]`, by name. Two keys with one secret are an error: whose would it be?"""
        owners = dict.fromkeys(self.keys(env), "server.keys")
        found: dict[str, Secret] = {}
        for name, key in self.named_keys.items():
            secret = key.secret.resolve(env, f"keys.{name}.secret")
            if secret in owners:
                raise ConfigError(f"keys.{name} has the same secret as {owners[secret]}; give it its own")
            owners[secret] = f"keys.{name}"
            found[name] = secret
        return found
