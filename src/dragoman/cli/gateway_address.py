"""The address and a key of the gateway of a config, for commands that talk to a running gateway."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ..config.types import ConfigError
from ..credentials.secret import Secret
from ..gateway.process.listener import address_of
from .serve.service import load_config

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class GatewayAddress(msgspec.Struct, frozen=True):
    """Where a gateway listens, and a key that it accepts."""

    url: str
    key: Secret | None = None


def reachable(host: str) -> str:
    """The host at which this machine reaches a server that listens on `host`, which may be a wildcard."""
    return _WILDCARDS.get(host, host)


def configured_address(file: Path | None) -> GatewayAddress:
    """The address in the config, else the default one. Raises `ConfigError` for a file that is not valid."""
    config = load_config(file, needs_upstream=False)
    server = config.server
    url = address_of(reachable(server.host), server.port, secure=server.tls is not None)
    try:
        key = config.local_key(os.environ)
    except ConfigError:  # a variable is set only where the gateway runs
        key = None
    return GatewayAddress(url, key)
