"""The facts about one client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Arguments = Literal["live", "whole"]


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """Signs of a client in its requests. No sign is a proof: any client can send any user agent."""

    paths: tuple[str, ...] = ()
    """Prefixes of paths that only this client uses."""
    headers: Mapping[str, tuple[str, ...]] = {}
    """Header names, and texts of which the value must contain one. `("",)` matches any value."""
    fields: frozenset[str] = frozenset()
    """Members of the request body."""
    prompts: tuple[str, ...] = ()
    """Words near the start of the system prompt."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that the client offers."""


class Background(msgspec.Struct, frozen=True, kw_only=True):
    """Signs of the requests that a client sends for itself: titles, routing, quota checks.

    Such a request offers no tools and shows one of these signs.
    """

    models: tuple[str, ...] = ()
    """Words in the model's name."""
    prompts: tuple[str, ...] = ()
    """Words in the system prompt."""
    has_schema: bool = False
    """The answer must fit a JSON schema."""
    max_tokens: int = 0
    """The answer may have so many tokens at most."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One client: how to detect it, and how to answer it."""

    name: str
    title: str
    protocols: tuple[str, ...]
    """The protocols that it speaks."""
    signs: Signs = Signs()
    arguments: Arguments = "live"
    """Send tool arguments as they arrive (`live`), or in one piece when a call is complete (`whole`)."""
    keepalives: Mapping[str, bytes] = {}
    """By protocol: the keepalive for this client, if the protocol's default does not work."""
    background: Background | None = None
    """How its background requests differ from the others; None: it sends none, or they are not known."""
    notes: tuple[str, ...] = ()
    """Remarks for the documentation."""
