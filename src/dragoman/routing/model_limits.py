"""Context windows and output limits of models, and clamping of `max_tokens` to them.

Limits come from the config first, then from `providers.toml` (maximum output) and from the table of `prices/`
(context window). Without known limits, requests stay as they are.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable

import msgspec

from ..config.providers import longest_answers
from ..config.types import UpstreamConfig
from ..model.messages import Notice, Request
from ..prices import context_window
from ..protocols.common.fields import is_object
from ..protocols.registry import protocol
from .token_estimate import prompt_length, prompt_tokens

# Anthropic refuses a smaller thinking budget, and a budget that is not below `max_tokens`.
_MIN_BUDGET = 1024
# Nearly every prompt has more characters per token than this. So a prompt whose length divided by it fits
# into the window needs no token estimate.
_MIN_CHARACTERS_PER_TOKEN = 2
# The estimate is off by 15 percent and more, so a small rest of the window says nothing.
_MIN_REMAINING = 1024
# Clients may invent model names. This bounds the memory that they can use.
_MAX_CACHED = 1024

Lookup = Callable[[str, str | None], int | None]


class ModelLimits(msgspec.Struct, frozen=True):
    """The limits of one model, in tokens. None: unknown."""

    context: int | None = None
    max_output: int | None = None


class LimitsCache:
    """Finds the limits of models. `lookup` finds a context window by model and provider; tests replace it."""

    def __init__(self, lookup: Lookup = context_window) -> None:
        self._lookup = lookup
        self._cache: dict[tuple[str, str], tuple[UpstreamConfig, ModelLimits]] = {}
        """Limits by upstream and model. An entry is valid for one version of the upstream's config."""

    def of(self, upstream: UpstreamConfig, model: str) -> ModelLimits:
        """The limits of `model` at `upstream`."""
        known = self._cache.get((upstream.name, model))
        if known is not None and known[0] is upstream:
            return known[1]
        found = self._find(upstream, model)
        if len(self._cache) >= _MAX_CACHED:
            self._cache.clear()
        self._cache[upstream.name, model] = (upstream, found)
        return found

    def _find(self, upstream: UpstreamConfig, model: str) -> ModelLimits:
        configured = next((m for m in upstream.models if m.name == model), None) if upstream.models else None
        max_output, context = longest_answer(model), None
        if configured is not None:
            max_output, context = configured.max_output or max_output, configured.context
        if context is None:
            context = self._lookup(model, upstream.provider)
        return ModelLimits(context, max_output)


@functools.lru_cache(maxsize=1024)
def longest_answer(model: str) -> int | None:
    """The maximum output tokens of a well-known model, also for names such as `anthropic/claude-3-haiku`."""
    name = model.rpartition("/")[2].lower()
    names = (name, name.replace(".", "-"))  # OpenRouter writes claude-opus-4.5 for claude-opus-4-5
    groups = [found.lastindex or 0 for found in map(_well_known().match, names) if found]
    return longest_answers()[min(groups) - 1][1] if groups else None


@functools.cache
def _well_known() -> re.Pattern[str]:
    """The globs of `longest_answers` as one expression with a group per glob: one match instead of many."""
    return re.compile("|".join(f"({fnmatch.translate(glob.lower())})" for glob, _ in longest_answers()))


def clamp(request: Request, limits: ModelLimits) -> tuple[Request, tuple[Notice, ...]]:
    """Lower `max_tokens` to what the model allows, with a notice if it changed.

    The prompt and the answer share the context window. A request without `max_tokens` stays as it is.
    """
    asked = request.settings.max_tokens
    if asked is None or (limits.max_output is None and limits.context is None):
        return request, ()
    bounds = (limits.max_output, limits.context, _remaining(request, asked, limits.context))
    allowed = min(asked, *(bound for bound in bounds if bound is not None))
    if allowed == asked:
        return request, ()
    text = f"max_tokens is {allowed} instead of {asked}: the model does not allow more"
    return _with_max_tokens(request, allowed), (Notice("max-tokens-clamped", "max_tokens", text),)


def _remaining(request: Request, asked: int, context: int | None) -> int | None:
    """The part of the context window that the prompt leaves; None if `asked` certainly fits."""
    if context is None:
        return None
    fitting_length = (context - asked) * _MIN_CHARACTERS_PER_TOKEN
    if prompt_length(request) <= fitting_length:
        return None
    remaining = context - prompt_tokens(request)
    # Our estimate is too rough to judge a prompt that nearly fills the window. The upstream counts exactly.
    return remaining if remaining >= _MIN_REMAINING else None


def _with_max_tokens(request: Request, allowed: int) -> Request:
    settings = msgspec.structs.replace(request.settings, max_tokens=allowed)
    reasoning = settings.reasoning
    raw = request.raw
    budget: int | None = None
    if reasoning is not None and reasoning.budget is not None and reasoning.budget >= allowed:
        budget = max(_MIN_BUDGET, allowed // 2)
        settings = msgspec.structs.replace(
            settings, reasoning=msgspec.structs.replace(reasoning, budget=budget)
        )
    if raw is not None and is_object(raw.value):
        # Change only the limit in the raw body: an upstream of the same protocol gets all else untouched.
        raw = msgspec.structs.replace(
            raw, held=protocol(raw.protocol).limit_output(raw.value, allowed, budget)
        )
    return msgspec.structs.replace(request, settings=settings, raw=raw)
