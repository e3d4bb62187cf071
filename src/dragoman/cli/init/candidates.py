"""Upstreams that the new config could use: providers whose key is in the environment, and model servers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...config.environment import upstream_of
from ...config.providers import Provider, providers

# Parts of the names of models that do not chat: embeddings, rerankers, speech.
_NOT_CHAT = ("embed", "rerank", "whisper", "tts")


class UpstreamCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream that the config could use."""

    name: str
    table: dict[str, str] = {}
    """The members of `[upstreams.NAME]`."""
    why: str
    """How it was found, or its address. Shown to the user."""
    models: tuple[str, ...] = ()
    """The models that it lists, if it was asked."""
    usual: bool = True
    """Used by default. False for a key that is often set for other programs, such as a cloud account."""

    @property
    def variable(self) -> str | None:
        """The environment variable that holds its key."""
        given = self.table.get("credential")
        if given is None and self.name in providers():
            given = providers()[self.name].upstream["credential"]
        return given.removeprefix("env:") if given and given.startswith("env:") else None

    @property
    def families(self) -> tuple[str, ...]:
        """Globs that match the names of the provider's own models."""
        provider = providers().get(self.table.get("provider", self.name))
        return provider.families if provider and "protocol" not in self.table else ()

    @property
    def chat_model(self) -> str | None:
        """The first listed model that an agent can use."""
        return next((model for model in self.models if not _is_not_chat(model)), None)


def keys(env: Mapping[str, str]) -> list[UpstreamCandidate]:
    """Providers whose key is set, in the order of `providers.toml`."""
    found = [
        (provider, upstream_of(provider, env)) for provider in providers().values() if _has_key(provider)
    ]
    return [_candidate(provider, table) for provider, table in found if table is not None]


def _has_key(provider: Provider) -> bool:
    return provider.upstream["credential"] != "none"


def _candidate(provider: Provider, table: dict[str, str]) -> UpstreamCandidate:
    # An upstream with the provider's own name needs no `provider` member.
    members = {key: value for key, value in table.items() if value != provider.name or key != "provider"}
    variable = members["credential"].removeprefix("env:")
    why = f"{provider.base_url_env} is set" if variable == "none" else f"{variable} is set"
    return UpstreamCandidate(name=provider.name, table=members, why=why, usual=not provider.only_named)


def _is_not_chat(model: str) -> bool:
    return any(word in model.lower() for word in _NOT_CHAT)
