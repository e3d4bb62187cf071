"""Routes as frozen values: targets, conditions, tiers."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class TargetConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A model of an upstream. `*` in `model` is replaced by the client's model name."""

    upstream: str
    model: str
    weight: float | None = None
    params: dict[str, Any] = {}


class WhenConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on a request. All that are set must hold."""

    client: str | None = None
    """The name of a profile."""
    background: bool | None = None
    thinking: bool | None = None
    images: bool | None = None
    tools: tuple[str, ...] = ()
    """Globs on the names of tools. One of them must match one tool."""
    tokens_over: int | None = None


class RouteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A glob on the client's model name, conditions, and the targets to try in order."""

    match: str
    when: WhenConfig | None = None
    to: tuple[TargetConfig, ...]
    prefer: Literal["listed", "reliable"] = "listed"
    """Which targets come first: those listed first, or those that were more reliable."""
    number: int = 0
    """Its place among the `[[routes]]` of the file. Several globs in one entry are several routes."""


class TiersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Targets by size of model, for names such as `claude-haiku-4-5` or `gpt-5-mini`."""

    small: tuple[TargetConfig, ...] = ()
    middle: tuple[TargetConfig, ...] = ()
    big: tuple[TargetConfig, ...] = ()
