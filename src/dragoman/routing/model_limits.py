"""How much a model takes and gives, and requests held to it.

The figures come from the config first, then from `providers.toml` (longest answers) and `genai-prices`
(context windows), where that extra is installed. It takes half a second and 75 MB to import, so it is never
imported on the way of a request, but in a thread, when a window is first asked for. Where nothing is known,
nothing is held.
"""

from __future__ import annotations

import fnmatch
import functools
import gc
import importlib.util
import re
import threading
from collections.abc import Callable

import msgspec

from ..config.providers import longest_answers, providers
from ..config.types import UpstreamConfig
from ..model.messages import Notice, Request
from ..protocols.common.fields import is_object
from ..protocols.registry import protocol
from .token_estimate import prompt_length, prompt_tokens

# Anthropic refuses a thinking budget below this, or one that leaves nothing for the answer.
_LEAST_BUDGET = 1024
# Fewer characters a token has only in data that hardly anybody sends: most prompts need no closer look.
_LEAST_CHARACTERS = 2
_LEAST_LEFT = 1024
# Clients may name models themselves: what is kept must not grow with their inventions.
_MOST_KNOWN = 1024

Lookup = Callable[[str, str | None], int | None]


class ModelLimits(msgspec.Struct, frozen=True):
    """In tokens; None is not known."""

    context: int | None = None
    max_output: int | None = None


class Limits:
    """The figures of models. `lookup` finds a context window by model and provider; for tests."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        self._lookup: Lookup | None = lookup
        self._looking = lookup is not None
        """Is the package sought, or found, or not there?"""
        self._known: dict[tuple[str, str], tuple[UpstreamConfig, ModelLimits]] = {}
        """What was found, by upstream and model, as long as its config is the same."""

    def load(self) -> None:
        """Get `genai-prices` ready. Takes about half a second: not for the event loop."""
        _window("gpt-5-mini", None)  # its data are read with the first question
        gc.freeze()  # they stay, and are forty thousand objects for the collector to look through
        self._lookup = _window

    def of(self, upstream: UpstreamConfig, model: str) -> ModelLimits:
        """The limits of `model` at `upstream`."""
        known = self._known.get((upstream.name, model))
        if known is not None and known[0] is upstream:
            return known[1]
        settled = self._lookup is not None  # else more may be known soon
        found = self._found(upstream, model)
        if settled:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[upstream.name, model] = (upstream, found)
        return found

    def _found(self, upstream: UpstreamConfig, model: str) -> ModelLimits:
        said = next((m for m in upstream.models if m.name == model), None) if upstream.models else None
        most, context = longest_answer(model), None
        if said is not None:
            most, context = said.max_output or most, said.context
        if context is None:
            context = self._looked_up(model, upstream.provider)
        return ModelLimits(context, most)

    def _looked_up(self, model: str, provider: str | None) -> int | None:
        """What the package says, as soon as it is there; the first who ask do without."""
        if self._lookup is not None:
            return self._lookup(model, provider)
        if not self._looking:
            self._looking = True
            if importlib.util.find_spec("genai_prices"):
                threading.Thread(target=self.load, daemon=True).start()
            else:
                self._lookup = _nowhere
        return None


@functools.lru_cache(maxsize=1024)
def longest_answer(model: str) -> int | None:
    """The most output tokens of a well-known model, also under a name such as `anthropic/claude-3-haiku`."""
    name = model.rpartition("/")[2].lower()
    names = (name, name.replace(".", "-"))  # claude-opus-4.5 is what OpenRouter calls claude-opus-4-5
    fitting = [found.lastindex or 0 for found in map(_well_known().match, names) if found]
    return longest_answers()[min(fitting) - 1][1] if fitting else None


@functools.cache
def _well_known() -> re.Pattern[str]:
    """The globs of `longest_answers`, each a group of its own."""
    return re.compile("|".join(f"({fnmatch.translate(glob.lower())})" for glob, _ in longest_answers()))


def prices_name(provider: str | None) -> str | None:
    """What genai-prices calls `provider`."""
    known = providers().get(provider) if provider else None
    return known.prices_name or provider if known else provider or None


def _nowhere(model: str, provider: str | None) -> int | None:
    """What is known without the package."""
    return None


@functools.lru_cache(maxsize=1024)
def _window(model: str, provider: str | None) -> int | None:
    from genai_prices.data_snapshot import get_snapshot  # half a second: see above

    snapshot = get_snapshot()
    for name, at in ((model, prices_name(provider)), (model.rpartition("/")[2], None)):
        try:
            return snapshot.find_provider_model(name, None, at, None)[1].context_window
        except LookupError:
            continue
    return None


def clamp(request: Request, limits: ModelLimits) -> tuple[Request, tuple[Notice, ...]]:
    """`request` asking for no more than the model gives, and a notice if it had to be changed.

    Prompt and answer share the window. A request that says nothing of its answer's length is left alone.
    """
    asked = request.settings.max_tokens
    if asked is None or (limits.max_output is None and limits.context is None):
        return request, ()
    most = asked
    for bound in (limits.max_output, limits.context, _left(request, asked, limits.context)):
        if bound is not None and bound < most:
            most = bound
    if most == asked:
        return request, ()
    text = f"the answer may have {most} tokens, not {asked}: more than that the model does not give"
    return _held(request, most), (Notice("max-tokens-clamped", "max_tokens", text),)


def _left(request: Request, asked: int, context: int | None) -> int | None:
    """What the prompt leaves of the window, where that may be less than what is asked for."""
    if context is None:
        return None
    room = (context - asked) * _LEAST_CHARACTERS
    if prompt_length(request) <= room:
        return None
    left = context - prompt_tokens(request)
    # A prompt that is itself too long, or nearly, is the upstream's to judge: it counts better.
    return left if left >= _LEAST_LEFT else None


def _held(request: Request, most: int) -> Request:
    settings = msgspec.structs.replace(request.settings, max_tokens=most)
    reasoning = settings.reasoning
    raw = request.raw
    budget: int | None = None
    if reasoning is not None and reasoning.budget is not None and reasoning.budget >= most:
        budget = max(_LEAST_BUDGET, most // 2)
        settings = msgspec.structs.replace(
            settings, reasoning=msgspec.structs.replace(reasoning, budget=budget)
        )
    if raw is not None and is_object(raw.value):
        # The body as it came but for the bound: the same protocol still gets everything else untouched.
        held = protocol(raw.protocol).bounded(raw.value, most, budget)
        raw = msgspec.structs.replace(raw, held=held)
    return msgspec.structs.replace(request, settings=settings, raw=raw)
