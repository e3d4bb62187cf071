"""What is known about one client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Arguments = Literal["live", "whole"]


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What gives a client away. None of it proves anything alone: anybody can send any user agent."""

    paths: tuple[str, ...] = ()
    """How a path begins that only this client is given."""
    headers: Mapping[str, tuple[str, ...]] = {}
    """A header's name, and what its value must hold one of. `("",)`: that it is there."""
    fields: frozenset[str] = frozenset()
    """Members of the body."""
    prompts: tuple[str, ...] = ()
    """Words near the beginning of the system prompt."""
    tools: frozenset[str] = frozenset()
    """Tools it offers, by the names it gives them."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One client: what it is told from, and how it wants to be answered."""

    name: str
    title: str
    protocols: tuple[str, ...]
    """What it speaks."""
    signs: Signs = Signs()
    arguments: Arguments = "live"
    """Are a call's arguments sent as they come, or in one piece when they are complete?"""
    keepalives: Mapping[str, bytes] = {}
    """By protocol: what fills a silence, where the protocol's own does not do."""
    notes: tuple[str, ...] = ()
    """What is peculiar about it, for people."""
