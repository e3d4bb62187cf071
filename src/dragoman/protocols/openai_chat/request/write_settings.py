"""Write the settings of a Chat request."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from ....model.messages import Format, Request, Settings
from ...common import reasoning_effort, unsupported
from ...common.fields import Obj, is_object
from ...common.json_words import RULE, has_object_root, in_words, instructed, says_json
from ...common.reasoning_effort import fitting
from ...common.sampling import left_out, within_model
from ...common.schemas import EVERYTHING, OPENAI, no_loss, output_schema, strict_ready
from ...common.typed_json import value
from .read_tools import typed_choice
from .shared import Writing

_BOUND = "max_tokens"
_MODERN_BOUND = "max_completion_tokens"
_CHANGEABLE = frozenset({_BOUND, _MODERN_BOUND, "reasoning_effort", "tool_choice", "stream_options"})
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


def given_settings(members: Obj) -> Obj:
    """The members of a Chat client's body as they came. Those that the writer may change are decoded."""
    body = {**members}
    for key in _CHANGEABLE:
        given = members.get(key)
        if isinstance(given, msgspec.Raw):
            body[key] = value(given, key)
    if is_object(body.get("tool_choice")):
        body["tool_choice"] = typed_choice(body["tool_choice"])
    return body


def write_settings(request: Request, writing: Writing) -> Obj:
    """The body of a request that is not in its client's form any more, without its messages and tools."""
    settings = request.settings
    bound = settings.max_tokens
    # Not every server knows `max_completion_tokens`.
    fields: Obj = {} if bound is None else {writing.target.max_tokens_field: bound}
    if settings != _only(bound):
        fields |= _further(settings, writing)
    extras = request.extras if writing.own else None
    return {"model": request.model, "messages": None, **fields, **(extras or {})}


def fit_settings(body: Obj, settings: Settings, writing: Writing) -> tuple[str, ...]:
    """Change the settings in `body` that the model refuses. Return the stop sequences to emulate."""
    takes, model, notices = writing.target.takes, writing.target.model, writing.notices
    for name in left_out(settings, takes, model, notices):
        body.pop(name, None)
        if name == "logprobs":
            body.pop("top_logprobs", None)
    effort = body.get("reasoning_effort")
    if effort is not None and not writing.reasons():
        del body["reasoning_effort"]
    elif effort is not None:
        body["reasoning_effort"] = fitting(effort, takes, model, notices)
    # OpenAI's reasoning models refuse `max_tokens`.
    if takes.max_tokens is False and body.get(_BOUND) is not None:
        body.setdefault(_MODERN_BOUND, body.pop(_BOUND))
    if "stop" not in body or (writing.own and takes.stop is not False):
        return ()
    known, emulated = _split_stops(settings, writing)
    if known:
        body["stop"] = list(known)
    else:
        del body["stop"]
    return emulated


@lru_cache(maxsize=64)
def _only(max_tokens: int | None) -> Settings:
    """Settings with only an output limit, cached for comparison: most requests set nothing else."""
    return Settings(max_tokens=max_tokens)


def _further(settings: Settings, writing: Writing) -> Obj:
    target = writing.target
    settings = within_model(settings, target.takes, target.model, writing.notices)
    fields: Obj = {}
    for name in _SAME:
        given = getattr(settings, name)
        if given is not None:
            fields[name] = given
    # The neutral answer has one choice, so `n` is only for Chat on both sides.
    if settings.n is not None and writing.own:
        fields["n"] = settings.n
    if settings.stop:
        fields["stop"] = list(settings.stop)
    if settings.logprobs is not None:
        fields["logprobs"] = True
        if settings.logprobs:
            fields["top_logprobs"] = settings.logprobs
    effort = reasoning_effort.effort(settings.reasoning)
    if effort is not None:
        fields["reasoning_effort"] = effort
    if settings.format is not None:
        fields["response_format"] = _format(settings.format, writing)
    return fields | _top_k(settings, writing) | _account(settings, writing) | _openai_only(settings, writing)


def _split_stops(settings: Settings, writing: Writing) -> tuple[tuple[str, ...], tuple[str, ...]]:
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
