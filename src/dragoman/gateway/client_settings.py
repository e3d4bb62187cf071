"""How a client is answered: as its profile says, unless the config says otherwise."""

from __future__ import annotations

import msgspec

from ..config.types import Config
from ..profiles import Arguments, Profile
from ..protocols.base import ClientProtocol, Freeform


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """What is particular about answers to one client."""

    arguments: Arguments = "live"
    freeform: Freeform = "custom"
    keepalive: bytes = b""
    """What fills a silence; nothing, where the client survives nothing."""
    patience: bytes = b""
    """The same before the answer's own beginning."""
    interval: float = 0.0
    """The seconds of silence after which it is sent; 0: never."""


class Manners:
    """How everybody is answered by one config: worked out once for each kind of client."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._known: dict[tuple[str, str], Manner] = {}

    def of(self, profile: Profile, client: ClientProtocol) -> Manner:
        """How answers go to a client with this profile that speaks this protocol."""
        key = (profile.name, client.name)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._made(profile, client)
        return known

    def _made(self, profile: Profile, client: ClientProtocol) -> Manner:
        told = self._config.clients.get(profile.name)
        arguments = told.arguments if told else None
        interval = told.keepalive if told else None
        freeform = told.freeform if told else None
        own = profile.keepalives.get(client.name)
        return Manner(
            arguments=arguments or ("whole" if client.whole else profile.arguments),
            freeform=freeform or client.freeform,
            keepalive=own or client.keepalive,
            patience=own or client.early_keepalive,
            interval=self._config.server.keepalive if interval is None else interval,
        )
