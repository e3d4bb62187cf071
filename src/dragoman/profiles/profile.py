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
    notes: tuple[str, ...] = ()
    """Remarks for the documentation."""
