"""Credentials of upstreams. A change shows with the next request, at the cost of one `stat` per request.

One module per source. `env`, `file`, `command`, `sqlite`, `oauth` and the clouds (`aws`, `google`, `entra`)
each have a `SecretReader`; `client` and `none` have nothing to read. `cache` decides for all readers when to
read again; `binding` puts a token on a request, or lets it sign the request.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from typing import assert_never

from ..transport.client import DEFAULT_NETWORK, Network
from .aws import AwsReader
from .base import CredentialError, CredentialSource, FinishedRequest, Token
from .binding import BoundCredential, Origin, key_headers
from .cache import CachedCredential
from .client import ClientCredential, for_caller
from .command import CommandReader
from .entra import EntraReader
from .env import EnvReader
from .file import FileReader
from .google import GoogleReader
from .none import NoCredential
from .oauth import OAuthReader
from .process_lock import Lock, process_lock
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
    "FinishedRequest",
    "Lock",
    "NoCredential",
    "Origin",
    "Token",
    "for_caller",
    "key_headers",
    "missing",
    "open_credential",
    "parse",
    "process_lock",
]


_CLOUDS = {"aws": AwsReader, "google": GoogleReader, "entra": EntraReader}


def open_credential(
    spec: CredentialSpec,
    *,
    name: str = "",
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
    post: Post | None = None,
    network: Network = DEFAULT_NETWORK,
    lock: Lock = process_lock,
) -> CredentialSource:
    """Open the source that `spec` describes. Call this once per upstream. It reads nothing yet.

    `name` is the upstream's name, for logs and errors. `network` is how to reach a token endpoint. `lock`
    keeps processes that share a token file from refreshing it at the same time. Tests set the other
    parameters.
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
            reader = OAuthReader(
                spec, environment=environment, clock=clock, monotonic=monotonic, post=post, lock=lock
            )
        case "aws" | "google" | "entra" as cloud:
            reader = _CLOUDS[cloud](spec, environment)
        case _:
            assert_never(spec.kind)
    return CachedCredential(reader, name=name, clock=clock, monotonic=monotonic)


def missing(spec: CredentialSpec, environment: Mapping[str, str]) -> str | None:
    """Why the credential is not there, as far as that shows without reading it; else None.

    It looks for the variable or the file, and starts no program.
    """
    if any(missing(other, environment) is None for other in spec.otherwise):
        return None
    if spec.name and not environment.get(spec.name, "").strip():
        return f"the environment variable {spec.name} is not set"
    if spec.path and not os.path.exists(os.path.expanduser(spec.path)):
        return f"the file {spec.path} does not exist"
    if spec.command and shutil.which(spec.command[0], path=environment.get("PATH")) is None:
        return f"the program {spec.command[0]} is not on the PATH"
    return None
