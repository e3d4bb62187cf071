"""What there is to use: provider keys in the environment, and models that servers list."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...config.environment import upstream_of
from ...config.providers import Provider, providers

# No agent can talk to these.
_NOT_FOR_TALKING = ("embed", "rerank", "whisper", "tts")


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream that the config could name."""

    name: str
    table: dict[str, str] = {}
    """What `[upstreams.NAME]` is to say."""
    why: str
    """How it was found, or what is known of it."""
    models: tuple[str, ...] = ()
    """What it lists, where it was asked."""
    usual: bool = True
    """Taken unless refused; others are there, but perhaps for something else."""

    @property
    def variable(self) -> str | None:
        """The environment variable its key is in."""
        given = self.table.get("credential")
        if given is None and self.name in providers():
            given = providers()[self.name].upstream["credential"]
        return given.removeprefix("env:") if given and given.startswith("env:") else None

    @property
    def families(self) -> tuple[str, ...]:
        """Globs on the names of the models it makes."""
        provider = providers().get(self.table.get("provider", self.name))
        return provider.families if provider and "protocol" not in self.table else ()

    @property
    def talking_model(self) -> str | None:
        """The first it lists that an agent can use."""
        return next((model for model in self.models if not _is_mute(model)), None)


def keys(env: Mapping[str, str]) -> list[Candidate]:
    """Providers whose key is set, in the order of `providers.toml`."""
    found = [
        (provider, upstream_of(provider, env)) for provider in providers().values() if _has_key(provider)
    ]
    return [_candidate(provider, table) for provider, table in found if table is not None]


def _has_key(provider: Provider) -> bool:
    return provider.upstream["credential"] != "none"


def _candidate(provider: Provider, table: dict[str, str]) -> Candidate:
    said = {key: value for key, value in table.items() if value != provider.name or key != "provider"}
    variable = said["credential"].removeprefix("env:")
    why = f"{provider.base_url_env} is set" if variable == "none" else f"{variable} is set"
    return Candidate(name=provider.name, table=said, why=why, usual=not provider.only_named)


def _is_mute(model: str) -> bool:
    return any(word in model.lower() for word in _NOT_FOR_TALKING)
