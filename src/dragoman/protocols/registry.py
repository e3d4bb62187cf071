"""The protocols there are. To add one, list its record in `RECORDS`: every other layer looks it up here.

Most are spoken by clients and by upstreams. A reply protocol is only ever answered in: no upstream has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from ..model.errors import DragomanError
from . import anthropic, cursor, gemini, openai_chat, openai_responses
from .base import ClientProtocol, WireProtocol

RECORDS: tuple[ClientProtocol, ...] = (
    anthropic.PROTOCOL,
    openai_chat.PROTOCOL,
    openai_responses.PROTOCOL,
    gemini.PROTOCOL,
    cursor.PROTOCOL,
)
DIALECTS: tuple[ClientProtocol, ...] = (cursor.CHAT,)
"""Protocols as some clients speak them, at paths of their own. A dialect has its protocol's name."""
USUAL = openai_chat.PROTOCOL
"""What most servers and clients speak: assumed where nothing tells."""

PROTOCOLS: dict[str, WireProtocol] = {p.name: p for p in RECORDS if isinstance(p, WireProtocol)}
CLIENTS: dict[str, ClientProtocol] = {p.name: p for p in RECORDS}


def protocol(name: str) -> WireProtocol:
    """The protocol called `name`, as upstreams speak it too."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    known = ", ".join(PROTOCOLS)
    if name in CLIENTS:
        raise DragomanError(f"{name!r} is a reply protocol: no upstream speaks it. Those that do are {known}")
    raise DragomanError(f"there is no protocol {name!r}; there are {known}")


def client_protocol(name: str, path: str = "") -> ClientProtocol:
    """The protocol called `name`, as a client wants to be answered in that asked at `path`."""
    for dialect in DIALECTS:
        if dialect.name == name and path.startswith(dialect.endpoints.own):
            return dialect
    try:
        return CLIENTS[name]
    except KeyError:
        known = ", ".join(CLIENTS)
        raise DragomanError(f"there is no protocol {name!r}; there are {known}") from None


def detect_protocol(path: str, headers: Mapping[str, str]) -> ClientProtocol:
    """The protocol of a client that asks at `path` with these headers, where no route tells."""
    for record in (*CLIENTS.values(), *DIALECTS):
        if path.startswith(record.endpoints.own):
            return record
    claims = (record for record in CLIENTS.values() if record.endpoints.claims(path, headers))
    return next(claims, USUAL)


def served_protocols() -> tuple[ClientProtocol, ...]:
    """Every protocol and dialect that the gateway answers, each at its endpoints."""
    return (*CLIENTS.values(), *DIALECTS)


class Headers(msgspec.Struct, frozen=True):
    """What the records of all protocols say about headers."""

    keys: tuple[str, ...]
    open: frozenset[str]
    betas: tuple[str, ...]


@lru_cache(maxsize=4)
def _headers(names: tuple[str, ...]) -> Headers:
    records = [CLIENTS[name] for name in names]
    keys = dict.fromkeys(record.auth.header for record in records if record.auth.header != "authorization")
    return Headers(
        keys=tuple(keys),
        open=frozenset(header for record in records for header in record.open_headers),
        betas=tuple(record.beta_header for record in records if record.beta_header),
    )


def key_headers() -> tuple[str, ...]:
    """The headers, beside `Authorization`, in which some protocol's clients send a key."""
    return _headers(tuple(CLIENTS)).keys


def open_headers() -> frozenset[str]:
    """The headers of all protocols that hold no secret."""
    return _headers(tuple(CLIENTS)).open


def beta_headers() -> tuple[str, ...]:
    """The headers in which some protocol's clients opt into features."""
    return _headers(tuple(CLIENTS)).betas
