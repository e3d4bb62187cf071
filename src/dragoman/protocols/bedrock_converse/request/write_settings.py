"""Write the settings of a request for Converse."""

from __future__ import annotations

import msgspec

from ....model.messages import Settings
from ...base import Target
from ...common import reasoning_effort
from ...common.fields import Obj
from ...common.notices import Notices

# Claude refuses a smaller thinking budget, at Bedrock as at Anthropic.
_MIN_BUDGET = 1024
# Other tiers are OpenAI's or Anthropic's, and Converse refuses them.
_TIERS = frozenset({"priority", "default", "flex"})
_REASONING = "settings.reasoning"


def inference(settings: Settings, target: Target, notices: Notices, *, thinks: bool) -> Obj:
    most = settings.max_tokens
    if most is None and thinks:
        most = target.default_max_tokens  # the budget counts toward it, and the default is small
    temperature, top_p = settings.temperature, settings.top_p
    # While Claude thinks, it refuses nearly all sampling settings.
    if thinks or target.takes.sampling is False:
        why = f"{target.model} does not take it" + (
            "" if target.takes.sampling is False else " while it thinks"
        )
        temperature = _dropped("temperature", temperature, why, notices)
        top_p = _dropped("top_p", top_p, why, notices)
    elif target.takes.one_sampling and temperature is not None:
        top_p = _dropped("top_p", top_p, "temperature and top_p exclude each other", notices)
    if temperature is not None and temperature > 1:
        notices.warn("temperature-clamped", "settings.temperature", "Converse's highest temperature is 1")
        temperature = 1
    config: Obj = {
        "maxTokens": most,
        "temperature": temperature,
        "topP": top_p,
        "stopSequences": [stop for stop in settings.stop if stop.strip()] or None,
    }
    return {key: value for key, value in config.items() if value is not None}


def _dropped(key: str, value: float | None, why: str, notices: Notices) -> None:
    if value is not None:
        notices.warn(f"{key.replace('_', '-')}-dropped", f"settings.{key}", why)


def reasoning(settings: Settings, target: Target, notices: Notices) -> Obj:
    """Write the model's own fields that make it think. Converse has none for all models."""
    wanted = settings.reasoning
    if wanted is None:
        return {}
    effort, takes = reasoning_effort.effort(wanted), target.takes
    asked = bool(wanted.enabled or wanted.adaptive or wanted.budget or wanted.effort)
    if effort == "none" or not asked:
        return {}
    # Claude signs its thoughts, and these are its fields. Other models do not share one.
    if takes.reasons is False or not takes.signs_thinking:
        message = f"Converse has no setting that makes {target.model} think: set its own one in `params`"
        notices.warn("reasoning-dropped", _REASONING, message)
        return {}
    # From Opus 4.7 on, Claude refuses a budget (`protocols/models.toml`). `output_config` writes the effort.
    if takes.thinking_budget is False:
        return {"thinking": {"type": "adaptive"}}
    most = settings.max_tokens or target.default_max_tokens
    budget = wanted.budget or min(reasoning_effort.BUDGETS[effort or "medium"], most // 2)
    bounded = max(_MIN_BUDGET, min(budget, most - 1))
    if bounded >= most:
        message = f"thinking takes {_MIN_BUDGET} tokens or more, and max_tokens is {most}"
        notices.warn("reasoning-dropped", _REASONING, message)
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": bounded}}


def output_config(settings: Settings, target: Target, notices: Notices) -> Obj:
    """Write `outputConfig`: a schema and an effort, for models that are known to take them."""
    config: Obj = {}
    wanted, takes = settings.format, target.takes
    if wanted is not None and wanted.kind == "schema" and takes.schema_output:
        schema: Obj = {"schema": msgspec.json.encode(wanted.schema or {}).decode()}
        schema |= {"name": wanted.name} if wanted.name else {}
        config["textFormat"] = {"type": "json_schema", "structure": {"jsonSchema": schema}}
    effort = reasoning_effort.effort(settings.reasoning)
    if effort not in (None, "none") and takes.thinking_budget is False:
        config["effort"] = reasoning_effort.fitting(effort, takes, target.model, notices)
    return config


def instruction(settings: Settings, target: Target, notices: Notices) -> str | None:
    """The instruction about the form of the answer, if Converse has no setting for it."""
    wanted = settings.format
    if wanted is None or (wanted.kind == "schema" and target.takes.schema_output):
        return None
    message = "this upstream has no JSON mode: the prompt asks for JSON"
    notices.warn("json-mode-emulated", "settings.format", message)
    words = "Answer with one valid JSON object and nothing else: no prose, no code fence."
    if wanted.kind == "schema":
        words += f" It must follow this JSON Schema:\n{msgspec.json.encode(wanted.schema or {}).decode()}"
    return words


def response_fields(settings: Settings, target: Target) -> list[str]:
    """The model's own fields that Converse shall pass on: Claude says which stop sequence matched."""
    asked = target.takes.signs_thinking and any(stop.strip() for stop in settings.stop)
    return ["/stop_sequence"] if asked else []


def service_tier(settings: Settings) -> Obj | None:
    return {"type": settings.service_tier} if settings.service_tier in _TIERS else None
