"""Credentials of upstreams. A change shows with the next request, at the cost of one `stat` per request.

One module per source. `env`, `file`, `command`, `sqlite` and `oauth` each have a `SecretReader`; `client` and
`none` have nothing to read. `cache` decides for all readers when to read again; `binding` puts a token on a
request.
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
from .refresh import Post, http_post
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
    """Open the source that `spec` describes. Call this once per upstream. It reads nothing yet.

    `name` is the upstream's name, for logs and errors. `network` is how to reach a token endpoint. Tests set
    the other parameters.
    """
    name = name or spec.description
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
            reader = SqliteReader(spec, environment=environment, clock=clock)
        case "oauth":
            post = post or http_post(network)
            reader = OAuthReader(spec, environment=environment, clock=clock, monotonic=monotonic, post=post)
        case _:
            assert_never(spec.kind)
    return CachedCredential(reader, name=name, clock=clock, monotonic=monotonic)
