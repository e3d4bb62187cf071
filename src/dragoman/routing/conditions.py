"""Do the conditions of a route (`when`) hold for a request? Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from ..config.route_types import WhenConfig
from ..config.values import glob_matches
from ..model.messages import Media, Part, Request, ToolResult
from ..profiles import Profile, in_background
from .token_estimate import prompt_tokens


class RequestTraits:
    """The traits of a request that routes with conditions check. Each trait is computed on first use."""

    def __init__(self, request: Request, profile: Profile) -> None:
        self._request = request
        self._profile = profile

    @property
    def client(self) -> str:
        """The name of the client's profile."""
        return self._profile.name

    @cached_property
    def background(self) -> bool:
        return in_background(self._profile, self._request)

    @property
    def thinking(self) -> bool:
        """Does the client turn reasoning on, or set its effort? Otherwise it leaves that to the model."""
        reasoning = self._request.settings.reasoning
        if reasoning is None or reasoning.enabled is False:
            return False
        return reasoning.enabled is True or reasoning.effort is not None

    @cached_property
    def images(self) -> bool:
        return any(_has_image(part) for message in self._request.messages for part in message.parts)

    @cached_property
    def tools(self) -> frozenset[str]:
        """The names of the tools. A provider's own search is `web_search` in every protocol."""
        tools = self._request.tools
        return frozenset(name for tool in tools for name in (tool.name, tool.hosted) if name)

    @cached_property
    def tokens(self) -> int:
        return prompt_tokens(self._request)


Traits = Callable[[], RequestTraits]
"""Called only if a route has conditions."""

_FLAGS = ("background", "thinking", "images")
"""Conditions that are true or false: members of `WhenConfig`, and traits of the same name."""


def why_met(when: WhenConfig, traits: RequestTraits) -> str | None:
    """Why the conditions hold, for the receipt; None if one of them does not."""
    reasons: list[str] = []
    for reason in _checked(when, traits):
        if reason is None:
            return None
        reasons.append(reason)
    return ", ".join(reasons)


def described(when: WhenConfig) -> str:
    """The conditions in the words of `why_met`."""
    parts = [f"client {when.client}"] if when.client is not None else []
    parts += [_flag(name, wanted) for name in _FLAGS if (wanted := getattr(when, name)) is not None]
    parts += [f"tool {' or '.join(when.tools)}"] if when.tools else []
    parts += [f"over {when.tokens_over:,} tokens"] if when.tokens_over is not None else []
    return ", ".join(parts)


def _checked(when: WhenConfig, traits: RequestTraits) -> Iterator[str | None]:
    """For each condition, why it holds, or None. The cheapest comes first."""
    if when.client is not None:
        yield f"client {when.client}" if when.client == traits.client else None
    for name in _FLAGS:
        wanted = getattr(when, name)
        if wanted is not None:
            yield _flag(name, wanted) if wanted is getattr(traits, name) else None
    if when.tools:
        yield _offered(when.tools, traits.tools)
    if when.tokens_over is not None:
        tokens = traits.tokens
        yield f"about {tokens:,} tokens" if tokens > when.tokens_over else None


def _flag(name: str, wanted: bool) -> str:
    return name if wanted else f"no {name}"


def _offered(globs: tuple[str, ...], names: frozenset[str]) -> str | None:
    found = next((name for name in sorted(names) if any(glob_matches(glob, name) for glob in globs)), None)
    return None if found is None else f"tool {found}"


def _has_image(part: Part) -> bool:
    if isinstance(part, ToolResult):
        return any(map(_has_image, part.parts))
    return isinstance(part, Media) and part.kind == "image"
