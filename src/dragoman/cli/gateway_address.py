"""The address and a key of the gateway of a config, for commands that talk to a running gateway."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ..config import find
from ..config.types import Config, ConfigError, ServerConfig
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
    config = optional_config(file)
    if config is None:
        server = ServerConfig()
        return GatewayAddress(address_of(server.host, server.port))
    server = config.server
    url = address_of(reachable(server.host), server.port, secure=server.tls is not None)
    try:
        key = config.local_key(os.environ)
    except ConfigError:  # a variable is set only where the gateway runs
        key = None
    return GatewayAddress(url, key)


def optional_config(file: Path | None) -> Config | None:
    """None without a config and without provider keys: a gateway that is already running needs neither."""
    if find(file, os.environ, Path.cwd()) is not None:
        return load_config(file)
    try:
        return load_config(None)
    except ConfigError:
        return None
