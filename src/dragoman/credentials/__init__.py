"""Where the keys of upstreams come from, kept fresh at the cost of a `stat` per request.

One file for each place, each a `Reader` of a few lines: `env`, `file`, `command`, `sqlite`, `oauth`; and
`client` and `none`, which have nothing to read. `cache` stands before the readers and makes them behave
alike; `binding` puts a token on a request.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import assert_never

from ..transport.client import DEFAULT_NETWORK, Network
from .base import CredentialError, CredentialSource, Token
from .binding import BoundCredential, Origin, key_headers
from .cache import CachedCredential
from .client import ClientCredential, for_caller
from .command import CommandReader
from .env import EnvReader
from .file import FileReader
from .none import NoCredential
from .oauth import OAuthReader
from .refresh import Post, over_http
from .spec import CredentialSpec, parse
from .sqlite import SqliteReader

__all__ = [
    "BoundCredential",
    "CachedCredential",
    "ClientCredential",
    "CredentialError",
    "CredentialSource",
    "CredentialSpec",
    "NoCredential",
    "Origin",
    "Token",
    "for_caller",
    "key_headers",
    "open_credential",
    "parse",
]


def open_credential(
    spec: CredentialSpec,
    *,
    name: str = "",
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    post: Post | None = None,
    network: Network = DEFAULT_NETWORK,
) -> CredentialSource:
    """The source that `spec` describes. Opened once per upstream; reads nothing until it is asked.

    `name` is the upstream's, for log lines and errors; `network` is how its token endpoint is reached; the
    others are for tests.
    """
    name = name or spec.place
    match spec.kind:
        case "none":
            return NoCredential()
        case "client":
            return ClientCredential(name)
        case "env":
            reader = EnvReader(spec.name, environment)
        case "file":
            reader = FileReader(spec.path, spec.field, clock)
        case "command":
            reader = CommandReader(spec, environment=environment, clock=clock)
        case "sqlite":
            reader = SqliteReader(spec.path, spec.key, spec.field, clock)
        case "oauth":
            post = post or over_http(network)
            reader = OAuthReader(spec, environment=environment, clock=clock, monotonic=monotonic, post=post)
        case _:
            assert_never(spec.kind)
    return CachedCredential(reader, name=name, clock=clock, monotonic=monotonic)
