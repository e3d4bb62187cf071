"""The config as frozen values. `read.py` makes them; no other module changes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..credentials.secret import Secret
from ..credentials.spec import CredentialSpec
from ..model.errors import DragomanError
from ..profiles import Arguments
from ..protocols.base import Freeform, Target
from ..protocols.common import call_ids as ids
from ..protocols.model_facts import ModelFacts, known_facts
from ..transport.client import DEFAULT_NETWORK, Network
from .urls import Endpoint

ID_RULES = {"mistral": ids.MISTRAL, "any": ids.ANY}


class ConfigError(DragomanError):
    """The config is invalid. The message has one line per problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


_MODEL_FACTS = ("reasons", "images", "audio", "search", "media_results")


class KeyRef(msgspec.Struct, frozen=True, kw_only=True):
    """A key that clients must send: the name of an environment variable, or the key itself."""

    env: str = ""
    literal: Secret | None = None

    def resolve(self, env: Mapping[str, str]) -> Secret:
        """The key. An unset variable is an error: without it, the gateway would let every client in."""
        if self.literal is not None:
            return self.literal
        value = env.get(self.env, "").strip()
        if not value:
            raise ConfigError(
                f"server.keys names the environment variable {self.env}, which is not set; "
                "set it, or remove it from server.keys"
            )
        return Secret(value)


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A model of an upstream. Limits given here win over `providers.toml` and genai-prices."""

    name: str
    context: int | None = None
    max_output: int | None = None
    reasons: bool | None = None
    images: bool | None = None
    audio: bool | None = None
    search: bool | None = None
    media_results: bool | None = None

    def facts(self) -> dict[str, bool]:
        """What is said here of the model that `protocols.model_facts` tells by its name."""
        said = {name: getattr(self, name) for name in _MODEL_FACTS}
        return {name: value for name, value in said.items() if value is not None}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about an upstream that `protocols.base.Target` needs."""

    ids: Literal["mistral", "any"] | None = None
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
    auth: str | None = None
    """The header for the key; None: the header that the protocol uses."""
    provider: str | None = None
    """The entry of `providers.toml` that supplied values."""
    headers: dict[str, str] = {}
    facts: Facts = Facts()
    connect_timeout: float = 10.0
    idle_timeout: float = 300.0
    """Seconds that an answer may stay silent."""
    models: tuple[ModelConfig, ...] = ()
    strict: bool | None = None
    network: Network = DEFAULT_NETWORK
    """Proxy and certificates."""

    @property
    def base_url(self) -> str:
        """The start of the upstream's URLs. Use `url` to build one: some roots already contain a version."""
        return self.endpoint.root

    def url(self, path: str) -> str:
        """The URL of `Outgoing.path` at this upstream."""
        return self.endpoint.url(path)

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
        """What this config says of `model`, over what its name tells. None: it says nothing."""
        listed = next((one for one in self.models if one.name == model), None)
        said = {} if listed is None else listed.facts()
        return msgspec.structs.replace(known_facts(model), **said) if said else None


class TargetConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A model of an upstream. `*` in `model` is replaced by the client's model name."""

    upstream: str
    model: str
    weight: float | None = None
    params: dict[str, Any] = {}


class RouteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A glob on the client's model name, and the targets to try in order."""

    match: str
    to: tuple[TargetConfig, ...]


class TiersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Targets by size of model, for names such as `claude-haiku-4-5` or `gpt-5-mini`."""

    small: tuple[TargetConfig, ...] = ()
    middle: tuple[TargetConfig, ...] = ()
    big: tuple[TargetConfig, ...] = ()


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


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides of a client's profile."""

    name: str
    arguments: Arguments | None = None
    freeform: Freeform | None = None
    keepalive: float | None = None


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
    keys: tuple[KeyRef, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    max_body: int = 64 * 1024 * 1024
    max_streams: int = 1000
    max_connections: int = 4096
    client_timeout: float = 30.0
    keepalive: float = 15.0
    shutdown_grace: float = 30.0
    retries: int = 2
    store: Path | None = None
    retention: float = 30 * 86_400.0
    ring: int = 32 * 1024 * 1024
    """Bytes of memory for the bytes of the last exchanges."""
    record: Path | None = None
    """The folder for recordings."""
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
    telemetry: TelemetryConfig = TelemetryConfig()
    path: Path | None = None
    """The file; None if the config comes from the environment."""
    warnings: tuple[str, ...] = ()
    """Sentences about settings that are valid but probably a mistake."""

    def keys(self, env: Mapping[str, str]) -> tuple[Secret, ...]:
        """The keys that clients may use. Empty: clients need no key."""
        return tuple(key.resolve(env) for key in self.server.keys)
