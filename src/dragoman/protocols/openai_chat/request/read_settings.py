"""Read the settings of a Chat request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, get_args

from ....model.messages import Effort, Format, Reasoning, Settings, Tool
from ...common.fields import Obj, as_object, boolean, integer, mapping, need_string, number, string, strings
from .read_tools import read_choice

EFFORTS: tuple[str, ...] = get_args(Effort)
_FORMATS = ("text", "json_object", "json_schema")

READ = frozenset(
    {
        *("model", "messages", "tools", "functions", "tool_choice", "function_call", "web_search_options"),
        *("max_completion_tokens", "max_tokens", "temperature", "top_p", "top_k", "presence_penalty"),
        *("frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "seed", "n", "stop"),
        *("reasoning_effort", "response_format", "verbosity", "parallel_tool_calls", "service_tier", "user"),
        *("safety_identifier", "metadata", "prompt_cache_key", "store", "stream", "stream_options"),
    }
)


_FULLY_NEUTRAL = READ - {"reasoning_effort", "safety_identifier", "response_format", "stream_options"}
"""The members of `READ` whose values are always fully understood."""

# Most requests set few members, so only those that are present are read.
_SAME_NAME: dict[str, Callable[[Obj, str, str], Any]] = {
    "temperature": number,
    "top_p": number,
    "top_k": integer,
    "presence_penalty": number,
    "frequency_penalty": number,
    "logit_bias": mapping,
    "seed": integer,
    "n": integer,
    "stop": strings,
    "verbosity": string,
    "parallel_tool_calls": boolean,
    "service_tier": string,
    "metadata": mapping,
    "store": boolean,
}


_OTHER_NAME = frozenset(
    {
        *("logprobs", "top_logprobs", "reasoning_effort", "response_format", "tool_choice", "function_call"),
        *("user", "safety_identifier", "prompt_cache_key", "modalities"),
    }
)


def read_settings(body: Obj, tools: tuple[Tool, ...]) -> Settings:
    settings = {key: _SAME_NAME[key](body, key, "") for key in body if key in _SAME_NAME}
    bound = integer(body, "max_completion_tokens", "")
    deprecated_bound = integer(body, "max_tokens", "")
    if not body.keys().isdisjoint(_OTHER_NAME):
        settings |= _renamed(body, tools)
    return Settings(**settings, max_tokens=deprecated_bound if bound is None else bound)


def _renamed(body: Obj, tools: tuple[Tool, ...]) -> dict[str, Any]:
    """The settings whose neutral name or form differs."""
    return {
        "logprobs": _logprobs(body),
        "reasoning": _reasoning(body),
        "format": _format(body),
        "tool_choice": read_choice(body, tools),
        "user": string(body, "user", "") or string(body, "safety_identifier", ""),
        "cache_key": string(body, "prompt_cache_key", ""),
        "audio_out": "audio" in strings(body, "modalities", ""),
    }


def _logprobs(body: Obj) -> int | None:
    alternatives = integer(body, "top_logprobs", "")
    return (alternatives or 0) if boolean(body, "logprobs", "") else None


def _reasoning(body: Obj) -> Reasoning | None:
    effort = string(body, "reasoning_effort", "")
    if effort not in EFFORTS:
        return None
    return Reasoning(enabled=effort != "none", effort=cast("Effort", effort))


def _format(body: Obj) -> Format | None:
    wanted = mapping(body, "response_format", "")
    if wanted is None:
        return None
    kind = need_string(wanted, "type", "response_format")
    if kind != "json_schema":
        return Format("json") if kind == "json_object" else None
    where = "response_format.json_schema"
    described = as_object(wanted.get("json_schema"), where)
    return Format(
        "schema",
        schema=mapping(described, "schema", where),
        name=string(described, "name", where),  # OpenAI requires it, Perplexity does not
        strict=boolean(described, "strict", where),
        description=string(described, "description", where),
    )


def read_extras(body: Obj) -> dict[str, Any] | None:
    """Fields without neutral meaning, and known fields with values that only this server may know."""
    if body.keys() <= _FULLY_NEUTRAL:
        return None
    extras = {key: value for key, value in body.items() if key not in READ}
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in EFFORTS:
        extras["reasoning_effort"] = effort  # Groq has `default`
    if body.get("user") and body.get("safety_identifier"):
        extras["safety_identifier"] = body["safety_identifier"]
    wanted = body.get("response_format")
    if wanted and wanted.get("type") not in _FORMATS:
        extras["response_format"] = wanted  # Fireworks has `grammar`
    further = {key: value for key, value in _stream_options(body).items() if key != "include_usage"}
    if further:
        extras["stream_options"] = further
    return extras or None


def wants_usage(body: Obj, stream: bool) -> bool:
    """Does the client get usage? A stream has it only if the client asks, a whole answer always."""
    asked = boolean(_stream_options(body), "include_usage", "stream_options")
    return bool(asked) or not stream


def _stream_options(body: Obj) -> Obj:
    return mapping(body, "stream_options", "") or {}
