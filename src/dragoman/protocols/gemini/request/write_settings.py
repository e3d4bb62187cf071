"""Write settings as Gemini's `generationConfig`."""

from __future__ import annotations

from ....model.messages import Effort, Format, Reasoning, Request, Settings
from ...base import Target
from ...common import reasoning_effort, schemas, unsupported
from ...common.fields import Obj
from ...common.notices import Notices
from ..own import is_own
from .keys import Fields

# Google documents at most five.
_STOPS = 5
_SEEDS = range(-(1 << 31), 1 << 31)

_LEVELS: dict[Effort, str] = {
    # Gemini 3 cannot switch thinking off.
    "none": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
# Google's value for a budget that the model chooses.
_DYNAMIC = -1

_TIERS = {
    "flex": "flex",
    "priority": "priority",
    "fast": "priority",
    "ultrafast": "priority",
    "default": "standard",
    "standard": "standard",
    "standard_only": "standard",
}


def generation_config(request: Request, target: Target, notices: Notices) -> Obj:
    """All settings that Gemini supports, in a fixed order. The others get a notice."""
    settings = request.settings
    unsupported.warn_dropped(settings, ("logit_bias", "verbosity"), notices)
    if settings.parallel_tool_calls is False:
        # Dropping all calls but the first would be the only way, and the model would not know about it.
        path = "settings.parallel_tool_calls"
        notices.warn("parallel-dropped", path, "Gemini cannot switch parallel calls off")
    config = {
        "maxOutputTokens": _max_tokens(settings.max_tokens, target, notices),
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "topK": settings.top_k,
        "presencePenalty": settings.presence_penalty,
        "frequencyPenalty": settings.frequency_penalty,
        "seed": _seed(settings.seed, notices),
        "candidateCount": settings.n,
        "stopSequences": list(stops(settings, notices)[0]) or None,
        "responseLogprobs": True if settings.logprobs is not None else None,
        # `responseLogprobs` alone returns the logprobs of the chosen tokens, without alternatives.
        "logprobs": settings.logprobs or None,
        **_format(settings.format, emulates_format(request, target), notices),
        "thinkingConfig": thinking_config(settings.reasoning, target, notices),
    }
    return {key: value for key, value in config.items() if value is not None}


def stops(settings: Settings, notices: Notices) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split stop sequences: those for Gemini, and those that Dragoman emulates."""
    wanted = tuple(s for s in settings.stop if s)
    if len(wanted) > _STOPS:
        message = f"Gemini takes {_STOPS} stop sequences: the others are looked for in its answer"
        notices.warn("stop-truncated", "settings.stop", message)
    return wanted[:_STOPS], wanted[_STOPS:]


def service_tier(settings: Settings) -> str | None:
    return _TIERS.get(settings.service_tier or "")


def _max_tokens(wanted: int | None, target: Target, notices: Notices) -> int | None:
    most = target.takes.longest_answer
    if wanted is None or most is None or wanted <= most:
        return wanted
    message = f"Gemini answers with at most {most} tokens"
    notices.warn("max-tokens-lowered", "settings.max_tokens", message)
    return most


def _seed(seed: int | None, notices: Notices) -> int | None:
    if seed is None or seed in _SEEDS:
        return seed
    notices.warn("seed-dropped", "settings.seed", "Gemini accepts only seeds of 32 bits")
    return None


def emulates_format(request: Request, target: Target) -> bool:
    """Is structured output emulated? Before Gemini 3, a request with functions cannot ask for JSON."""
    if request.settings.format is None or target.takes.schema_with_tools is not False:
        return False
    return any(tool.kind != "hosted" and not is_own(tool.raw) for tool in request.tools)


def _format(wanted: Format | None, emulated: bool, notices: Notices) -> Obj:
    if wanted is None:
        return {}
    if emulated:
        message = "Gemini 2 accepts functions or JSON mode, not both: the prompt asks for JSON"
        notices.warn("json-mode-emulated", "settings.format", message)
        return {}
    config: Obj = {"responseMimeType": "application/json"}
    if wanted.kind == "schema":
        dropped: list[str] = []
        schema = schemas.output_schema(wanted.schema, schemas.GEMINI, dropped.append)
        schemas.warn_dropped(dropped, "settings.format.schema", notices)
        config["responseJsonSchema"] = schema
    return config


def thinking_config(wanted: Reasoning | None, target: Target, notices: Notices) -> Obj | None:
    """The reasoning effort as a level, or as a budget for Gemini 2.5."""
    if wanted is None:
        return None
    if target.takes.reasons is False:
        if wanted.enabled is not False and wanted.effort != "none":
            message = f"{target.model} does not think"
            notices.warn("reasoning-dropped", "settings.reasoning", message)
        return None
    effort = reasoning_effort.effort(wanted)
    if effort in ("xhigh", "max"):
        notices.warn("effort-lowered", "settings.reasoning", f"{effort} becomes high on Gemini")
    config: Obj = {}
    if target.takes.thinking_effort is False:
        config["thinkingBudget"] = _budget(wanted, effort, target, notices)
    elif effort is not None:
        config["thinkingLevel"] = _level(effort, target, notices)
    if wanted.show is not None:
        config["includeThoughts"] = wanted.show and effort != "none"
    return {key: value for key, value in config.items() if value is not None} or None


def refuses(given: Obj, target: Target) -> bool:
    """Does the model refuse a Gemini client's `thinkingConfig`? It may have been meant for another model."""
    takes = target.takes
    if takes.reasons is False:
        return True
    fields = Fields(given, "")
    level, budget = fields.get("thinkingLevel"), fields.get("thinkingBudget")
    if level is not None:
        too_low = str(level).lower() == "minimal" and takes.least_effort not in ("", "minimal")
        return takes.thinking_effort is False or too_low
    if not isinstance(budget, int) or budget == _DYNAMIC:
        return False
    return not (takes.least_budget or 0) <= budget <= (takes.most_budget or budget)


def _level(effort: Effort, target: Target, notices: Notices) -> str:
    least = target.takes.least_effort.upper() or _LEVELS["minimal"]
    if effort == "none":
        message = f"{target.model} cannot stop thinking: {least} is the least"
        notices.warn("effort-raised", "settings.reasoning", message)
        return least
    return least if effort == "minimal" else _LEVELS[effort]


def _budget(wanted: Reasoning, effort: Effort | None, target: Target, notices: Notices) -> int | None:
    takes = target.takes
    if effort == "none" and takes.least_budget:
        message = f"{target.model} cannot stop thinking: {takes.least_budget} tokens are the least"
        notices.warn("effort-raised", "settings.reasoning", message)
        return takes.least_budget
    if effort != "none" and wanted.budget is not None:
        return _bounded(wanted.budget, target, notices)
    if effort is not None:
        budget = reasoning_effort.BUDGETS[effort]
        return budget if takes.most_budget is None else min(budget, takes.most_budget)
    return _DYNAMIC if wanted.adaptive or wanted.enabled else None


def _bounded(budget: int, target: Target, notices: Notices) -> int:
    takes, rule = target.takes, ""
    if takes.most_budget is not None and budget > takes.most_budget:
        rule, budget = "effort-lowered", takes.most_budget
    elif budget > 0 and takes.least_budget and budget < takes.least_budget:
        rule, budget = "effort-raised", takes.least_budget
    if rule:
        notices.warn(
            rule, "settings.reasoning", f"the thinking budget of {target.model} can only be {budget}"
        )
    return budget
