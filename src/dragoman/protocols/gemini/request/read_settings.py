"""Read the settings of a Gemini request."""

from __future__ import annotations

from ....model.messages import Effort, Format, Reasoning, Settings, Tool, ToolChoice
from ...common.fields import Obj, is_array, reject
from .keys import Fields
from .schemas import json_schema

_LEVELS: dict[str, Effort] = {
    "MINIMAL": "minimal",
    "LOW": "low",
    "MEDIUM": "medium",
    "HIGH": "high",
}
_UNSPECIFIED_LEVEL = "THINKING_LEVEL_UNSPECIFIED"
_MODES = ("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
_JSON = "application/json"

_NEUTRAL = frozenset(
    {
        "temperature",
        "topP",
        "topK",
        "candidateCount",
        "maxOutputTokens",
        "stopSequences",
        "responseLogprobs",
        "logprobs",
        "presencePenalty",
        "frequencyPenalty",
        "seed",
        "thinkingConfig",
    }
)
_FORMAT = frozenset({"responseMimeType", "responseSchema", "responseJsonSchema", "responseFormat"})
_TOP = frozenset(
    {
        "model",
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "serviceTier",
        "labels",
        "store",
    }
)


def read_settings(top: Fields, tools: tuple[Tool, ...]) -> tuple[Settings, Obj]:
    """Read the settings, and the members without neutral meaning."""
    config = top.child("generationConfig") or Fields({}, "generationConfig")
    output = _format(config)
    modalities = {m.upper() for m in config.strings("responseModalities")}
    tier = top.string("serviceTier")
    settings = Settings(
        max_tokens=config.integer("maxOutputTokens"),
        temperature=config.number("temperature"),
        top_p=config.number("topP"),
        top_k=_top_k(config),
        presence_penalty=config.number("presencePenalty"),
        frequency_penalty=config.number("frequencyPenalty"),
        logprobs=_logprobs(config),
        seed=config.integer("seed"),
        n=config.integer("candidateCount"),
        stop=config.strings("stopSequences"),
        reasoning=_reasoning(config.child("thinkingConfig")),
        format=output,
        tool_choice=_tool_choice(top, tools),
        service_tier=None if tier == "unspecified" else tier,
        metadata=top.mapping("labels"),
        audio_out="AUDIO" in modalities,
        store=top.boolean("store"),
    )
    extras = top.rest(_TOP)
    known = _NEUTRAL | _FORMAT if output else _NEUTRAL
    for name, rest in (
        ("generationConfig", config.rest(known)),
        ("toolConfig", _tool_config_rest(top)),
    ):
        if rest:
            extras[name] = rest
    return settings, extras


def _top_k(config: Fields) -> int | None:
    # `topK` is a float in Google's SDK, and an integer everywhere else.
    value = config.number("topK")
    if value is None or value == int(value):
        return None if value is None else int(value)
    return reject(f"expected a whole number, got {value}", config.path("topK"))


def _logprobs(config: Fields) -> int | None:
    count = config.integer("logprobs")
    return (count or 0) if config.boolean("responseLogprobs") else None


def _reasoning(config: Fields | None) -> Reasoning | None:
    if config is None:
        return None
    # Gemini CLI sends THINKING_LEVEL_UNSPECIFIED.
    level = (config.string("thinkingLevel") or _UNSPECIFIED_LEVEL).upper()
    if level != _UNSPECIFIED_LEVEL and level not in _LEVELS:
        reject(f"{level!r} is not one of {', '.join(_LEVELS)}", config.path("thinkingLevel"))
    effort = _LEVELS.get(level)
    budget = config.integer("thinkingBudget")
    show = config.boolean("includeThoughts")
    # Google's values: 0 switches thinking off, -1 lets the model decide.
    if budget == 0:
        return Reasoning(enabled=False, show=show)
    adaptive = budget == -1
    enabled = True if effort or budget is not None else None
    if enabled is None and show is None:
        return None
    return Reasoning(enabled, effort, None if adaptive else budget, adaptive, show)


def _format(config: Fields) -> Format | None:
    mime = config.string("responseMimeType")
    # Gemini CLI sends upper-case types in `responseJsonSchema`, so `json_schema` reads both forms.
    schema = config.mapping("responseJsonSchema") or config.mapping("responseSchema")
    for entry in config.children("responseFormat"):
        if (text := entry.child("text")) is not None:
            mime = text.string("mimeType") or mime
            schema = text.mapping("schema") or schema
    if mime not in (None, _JSON):
        return None
    if schema:
        return Format("schema", json_schema(schema))
    return Format("json") if mime else None


def _tool_choice(top: Fields, tools: tuple[Tool, ...]) -> ToolChoice | None:
    calling = _calling(top)
    if calling is None:
        return None
    mode = (calling.string("mode") or "MODE_UNSPECIFIED").upper()
    if mode not in _MODES:
        reject(f"{mode!r} is not one of {', '.join(_MODES)}", calling.path("mode"))
    allowed = calling.strings("allowedFunctionNames")
    # Cached content may hold tools that the request does not repeat.
    if top.get("cachedContent") is None:
        _check_declared(calling, allowed, tools)
    if mode == "ANY":
        if len(allowed) == 1:
            return ToolChoice("named", allowed[0])
        return ToolChoice("required", allowed=allowed or None)
    if mode == "NONE":
        return ToolChoice("none")
    if mode == "MODE_UNSPECIFIED" and not allowed:
        return None
    return ToolChoice("auto", allowed=allowed or None)


def _calling(top: Fields) -> Fields | None:
    config = top.child("toolConfig")
    return config and config.child("functionCallingConfig")


def _check_declared(calling: Fields, allowed: tuple[str, ...], tools: tuple[Tool, ...]) -> None:
    declared = {tool.name for tool in tools if tool.kind == "function"}
    for index, name in enumerate(allowed):
        if name not in declared:
            path = calling.path("allowedFunctionNames")
            alone = not is_array(calling.get("allowedFunctionNames"))
            reject(f"no tool {name!r} is declared", path if alone else f"{path}[{index}]")


def _tool_config_rest(top: Fields) -> Obj:
    config = top.child("toolConfig")
    calling = _calling(top)
    if config is None:
        return {}
    rest = config.rest(frozenset({"functionCallingConfig"}))
    if calling is not None:
        # Other protocols have no `VALIDATED`. The closest is `AUTO`.
        neutral = frozenset({"allowedFunctionNames"})
        if str(calling.get("mode")).upper() != "VALIDATED":
            neutral |= {"mode"}
        kept = calling.rest(neutral)
        if kept:
            rest["functionCallingConfig"] = kept
    return rest
