"""How answers are sent to a client: the facts of its profile and protocol, overridden by the config."""

from __future__ import annotations

import msgspec

from ..config.types import Config
from ..profiles import Arguments, Profile
from ..protocols.base import ClientProtocol, Freeform


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of answers to one kind of client."""

    arguments: Arguments = "live"
    freeform: Freeform = "custom"
    keepalive: bytes = b""
    """The bytes of a keepalive. Empty: the client's parser fails on every kind of keepalive."""
    early_keepalive: bytes = b""
    """The bytes of a keepalive before the answer starts."""
    interval: float = 0.0
    """Seconds of silence before a keepalive. 0: never."""


class ClientSettingsCache:
    """The settings under one config, computed once for each profile and protocol."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._cache: dict[tuple[str, str], ClientSettings] = {}

    def of(self, profile: Profile, client: ClientProtocol) -> ClientSettings:
        key = (profile.name, client.name)
        settings = self._cache.get(key)
        if settings is None:
            settings = self._cache[key] = self._settings(profile, client)
        return settings

    def _settings(self, profile: Profile, client: ClientProtocol) -> ClientSettings:
        configured = self._config.clients.get(profile.name)
        arguments = configured.arguments if configured else None
        interval = configured.keepalive if configured else None
        freeform = configured.freeform if configured else None
        # A client's parser may need other keepalives than its protocol allows.
        of_profile = profile.keepalives.get(client.name)
        return ClientSettings(
            arguments=arguments or ("whole" if client.whole else profile.arguments),
            freeform=freeform or client.freeform,
            keepalive=of_profile or client.keepalive,
            early_keepalive=of_profile or client.early_keepalive,
            interval=self._config.server.keepalive if interval is None else interval,
        )
