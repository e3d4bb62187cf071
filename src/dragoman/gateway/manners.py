"""How a client is answered: as its profile says, unless the config says otherwise."""

from __future__ import annotations

import msgspec

from ..config.types import Config
from ..profiles import Arguments, Profile
from ..protocols.base import ClientProtocol


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """What is particular about answers to one client."""

    arguments: Arguments = "live"
    keepalive: bytes = b""
    """What fills a silence; nothing, where the client survives nothing."""
    patience: bytes = b""
    """The same before the answer's own beginning."""
    interval: float = 0.0
    """The seconds of silence after which it is sent; 0: never."""


def manner(config: Config, profile: Profile, client: ClientProtocol) -> Manner:
    """How answers go to a client with this profile that speaks this protocol."""
    told = config.clients.get(profile.name)
    arguments = told.arguments if told else None
    interval = told.keepalive if told else None
    own = profile.keepalives.get(client.name)
    return Manner(
        arguments=arguments or ("whole" if client.whole else profile.arguments),
        keepalive=own or client.keepalive,
        patience=own or client.patience,
        interval=config.server.keepalive if interval is None else interval,
    )
