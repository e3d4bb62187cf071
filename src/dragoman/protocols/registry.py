"""All protocols. To add one, list its record in `RECORDS`: every other package looks it up here.

Clients and upstreams speak most protocols. A reply protocol (`cursor`) has clients only: no upstream speaks
it. Bedrock's Converse has upstreams only: no client speaks it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

import msgspec

from ..model.errors import DragomanError
from . import anthropic, bedrock_converse, cursor, gemini, openai_chat, openai_responses
from .base import ClientProtocol, UpstreamProtocol, WireProtocol

AnyUpstream = WireProtocol | UpstreamProtocol
RECORDS: tuple[ClientProtocol | UpstreamProtocol, ...] = (
    anthropic.PROTOCOL,
    openai_chat.PROTOCOL,
    openai_responses.PROTOCOL,
    gemini.PROTOCOL,
    bedrock_converse.PROTOCOL,
    cursor.PROTOCOL,
)
DIALECTS: tuple[ClientProtocol, ...] = (cursor.CHAT, anthropic.BEDROCK, anthropic.VERTEX, gemini.VERTEX)
"""Variants of protocols for certain clients, served at separate paths. A dialect has its protocol's name."""
DEFAULT_PROTOCOL = openai_chat.PROTOCOL
"""The default if a request or a config does not show its protocol: most servers and clients speak it."""

PROTOCOLS: dict[str, WireProtocol] = {p.name: p for p in RECORDS if isinstance(p, WireProtocol)}
"""The protocols of both sides."""
ONE_SIDED: dict[str, UpstreamProtocol] = {p.name: p for p in RECORDS if isinstance(p, UpstreamProtocol)}
"""The protocols that only upstreams speak."""
CLIENTS: dict[str, ClientProtocol] = {p.name: p for p in RECORDS if isinstance(p, ClientProtocol)}


def upstreams() -> dict[str, AnyUpstream]:
    """The protocols that upstreams speak."""
    return {**PROTOCOLS, **ONE_SIDED}


def upstream_protocol(name: str) -> AnyUpstream:
    """The protocol called `name`, as an upstream speaks it. Raises an error if no upstream does."""
    return ONE_SIDED[name] if name in ONE_SIDED else protocol(name, ONE_SIDED)


def protocol(name: str, others: Collection[str] = ()) -> WireProtocol:
    """The protocol called `name`, if both sides speak it. An error lists the `others`, too."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    known = ", ".join([*PROTOCOLS, *others])
    if name in CLIENTS:
        raise DragomanError(f"no upstream speaks {name!r}: it is a reply protocol. Use one of {known}")
    raise DragomanError(f"unknown protocol {name!r}. Use one of {known}")


def client_protocol(name: str, path: str = "") -> ClientProtocol:
    """The protocol `name` for a client that sends its request to `path`: a dialect may be served there."""
    for dialect in DIALECTS:
        if dialect.name == name and path.startswith(dialect.endpoints.own):
            return dialect
    try:
        return CLIENTS[name]
    except KeyError:
        known = ", ".join(CLIENTS)
        raise DragomanError(f"unknown protocol {name!r}. Use one of {known}") from None


def detect_protocol(path: str, headers: Mapping[str, str]) -> ClientProtocol:
    """Guess a client's protocol from the path and headers of a request that matches no endpoint."""
    for record in (*CLIENTS.values(), *DIALECTS):
        if path.startswith(record.endpoints.own):
            return record
    claims = (record for record in CLIENTS.values() if record.endpoints.claims(path, headers))
    return next(claims, DEFAULT_PROTOCOL)


def served_protocols() -> tuple[ClientProtocol, ...]:
    """All protocols and dialects that the gateway serves, each at its endpoints."""
    return (*CLIENTS.values(), *DIALECTS)


class HeaderNames(msgspec.Struct, frozen=True):
    """The names of headers with a meaning, collected from all protocol records."""

    keys: tuple[str, ...]
    open: frozenset[str]
    betas: tuple[str, ...]


@lru_cache(maxsize=4)
def _headers(names: tuple[str, ...]) -> HeaderNames:
    records = [CLIENTS[name] for name in names]
    keys = dict.fromkeys(record.auth.header for record in records if record.auth.header != "authorization")
    return HeaderNames(
        keys=tuple(keys),
        open=frozenset(header for record in records for header in record.open_headers),
        betas=tuple(record.beta_header for record in records if record.beta_header),
    )


def key_headers() -> tuple[str, ...]:
    """The headers in which clients send a key, besides `Authorization`."""
    return _headers(tuple(CLIENTS)).keys


def open_headers() -> frozenset[str]:
    """The headers of all protocols that contain no secret."""
    return _headers(tuple(CLIENTS)).open


def beta_headers() -> tuple[str, ...]:
    """The headers in which clients opt into features."""
    return _headers(tuple(CLIENTS)).betas
