"""Write the settings of a Chat request."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from ....model.messages import Format, Request, Settings
from ...common import reasoning_effort, unsupported
from ...common.fields import Obj
from ...common.json_words import RULE, has_object_root, in_words, instructed, says_json
from ...common.sampling import within_model
from ...common.schemas import EVERYTHING, OPENAI, no_loss, output_schema, strict_ready
from .shared import Writing

MODERN_BOUND = "max_completion_tokens"
# OpenAI refuses a fifth.
_MAX_STOPS = 4
_MAX_USER_LENGTH = 64
_SAME = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "seed")
_TIERS = {
    "auto": "auto",
    "default": "default",
    "standard": "default",
    "standard_only": "default",
    "flex": "flex",
    "scale": "scale",
    "priority": "priority",
    "fast": "fast",
    "ultrafast": "fast",
}


def write_settings(settings: Settings, writing: Writing) -> Obj:
    bound = settings.max_tokens
    # OpenAI's reasoning models refuse `max_tokens`. Not every other server knows `max_completion_tokens`.
    modern = writing.target.takes.max_tokens is False
    fields: Obj = (
        {} if bound is None else {MODERN_BOUND if modern else writing.target.max_tokens_field: bound}
    )
    return fields if settings == _only(bound) else fields | _further(settings, writing)


@lru_cache(maxsize=64)
def _only(max_tokens: int | None) -> Settings:
    """Settings with only an output limit, cached for comparison: most requests set nothing else."""
    return Settings(max_tokens=max_tokens)


def _further(settings: Settings, writing: Writing) -> Obj:
    target = writing.target
    settings = within_model(settings, target.takes, target.model, writing.notices)
    fields: Obj = {}
    for name in _SAME:
        value = getattr(settings, name)
        if value is not None:
            fields[name] = value
    # The neutral answer has one choice, so `n` is only for Chat on both sides.
    if settings.n is not None and writing.own:
        fields["n"] = settings.n
    known, _ = split_stops(settings, writing)
    if known:
        fields["stop"] = list(known)
    if settings.logprobs is not None:
        fields["logprobs"] = True
        if settings.logprobs:
            fields["top_logprobs"] = settings.logprobs
    effort = reasoning_effort.effort(settings.reasoning)
    if effort is not None and writing.reasons():
        fields["reasoning_effort"] = effort
    if settings.format is not None:
        fields["response_format"] = _format(settings.format, writing)
    return fields | _top_k(settings, writing) | _account(settings, writing) | _openai_only(settings, writing)


def split_stops(settings: Settings, writing: Writing) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split stop sequences: those for the upstream, and those that Dragoman emulates (Chat allows four)."""
    wanted = tuple(filter(None, settings.stop))
    if wanted and writing.target.takes.stop is False:
        text = f"{writing.target.model} takes no stop sequences: Dragoman looks for them in the answer"
        writing.notices.note("stop-emulated", "settings.stop", text)
        return (), wanted
    if len(wanted) > _MAX_STOPS:
        text = f"openai-chat takes {_MAX_STOPS} stop sequences: the others are looked for here"
        writing.notices.warn("stop-truncated", "settings.stop", text)
    return wanted[:_MAX_STOPS], wanted[_MAX_STOPS:]


def _top_k(settings: Settings, writing: Writing) -> Obj:
    if settings.top_k is None:
        return {}
    if writing.own:
        return {"top_k": settings.top_k}  # OpenRouter and vLLM support it
    unsupported.warn_dropped(settings, ("top_k",), writing.notices)
    return {}


def asking_for_json(request: Request, writing: Writing) -> Request:
    """Put an instruction into the prompt where the setting alone is refused."""
    wanted, notices = request.settings.format, writing.notices
    if wanted is None:
        return request
    settings = request.settings
    if wanted.kind == "schema" and not writing.compatible and not has_object_root(wanted):
        notices.warn(RULE, "settings.format", "OpenAI takes only schemas of objects: asked for in words")
        settings = msgspec.structs.replace(settings, format=None)
    elif wanted.kind == "json" and not says_json(request.messages):
        notices.note(
            RULE, "settings.format", "JSON mode needs the word in the prompt: an instruction was added"
        )
    else:
        return request
    return request.changed(messages=instructed(request.messages, in_words(wanted)), settings=settings)


def _format(wanted: Format, writing: Writing) -> Obj:
    if wanted.kind == "json":
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", wanted.name or "response")[:64]
    described: Obj = {"name": name}
    if wanted.description is not None:
        described["description"] = wanted.description
    if wanted.schema is not None:
        dialect = EVERYTHING if writing.compatible else OPENAI
        described["schema"] = output_schema(wanted.schema, dialect, no_loss)
    strict = wanted.strict
    # Anthropic and Gemini always enforce the schema. Chat does so only with `strict`, which not all schemas
    # allow.
    if strict is None and not writing.own and strict_ready(described.get("schema")):
        strict = True
    if strict is not None:
        described["strict"] = strict
    return {"type": "json_schema", "json_schema": described}


def _account(settings: Settings, writing: Writing) -> Obj:
    fields: Obj = {}
    given = settings.service_tier
    tier = given if writing.own else _TIERS.get((given or "").lower())  # Groq has tiers of its own
    if tier is not None:
        fields["service_tier"] = tier
    user = unsupported.opaque_user(settings.user, _MAX_USER_LENGTH)
    if user is not None:
        fields["user"] = user
    return fields


def _openai_only(settings: Settings, writing: Writing) -> Obj:
    """Fields that other servers than OpenAI's own may refuse."""
    if writing.compatible:
        unsupported.warn_dropped(settings, ("verbosity",), writing.notices)
        return {}
    fields: Obj = {
        "verbosity": settings.verbosity,
        "prompt_cache_key": settings.cache_key,
        "store": settings.store,
        # OpenAI refuses `metadata` without `store`.
        "metadata": settings.metadata if settings.store or writing.own else None,
    }
    return {name: value for name, value in fields.items() if value is not None}
