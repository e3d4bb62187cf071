"""Read the body of `POST /v1/messages`, of both API versions, as a neutral request."""

from __future__ import annotations

from typing import cast, get_args

from ....model.messages import Effort, Format, Message, Raw, Reasoning, Request, Settings, Tool
from ...common.fields import (
    Body,
    Obj,
    boolean,
    choice,
    integer,
    mapping,
    need_string,
    number,
    reject,
    string,
    strings,
)
from ...common.typed_json import LazyArray, body_members, decode_members, reads_body
from ..own import NAME
from .fields import FIELDS
from .read_blocks import MessageReader, read_system
from .read_tools import read_cache, read_tool_choice, read_tools, with_servers

# The API version 2026-10-21 refuses `temperature`, `top_p` and `top_k`, and Anthropic's SDK removed them in
# 1.0. `output_format` is the old name of `output_config.format`. Clients still send all four, so the reader
# knows them whatever `anthropic-version` the client names.
KNOWN = FIELDS.keys() - {"mcp_servers"}
# The large members. They are sent on as they came in most requests, so decoding them twice would cost most
# of the time of a long conversation.
_UNDECODED = frozenset({"messages", "system", "tools"})
_FULLY_NEUTRAL = KNOWN - {"output_config", "thinking"}
"""The members that `Settings` holds completely. The other two may contain values without neutral meaning."""
_EFFORTS = frozenset(get_args(Effort))


@reads_body
def read_request(body: Body, path: str = "") -> Request:
    """Read the client's body. `max_tokens` is required, except at the `count_tokens` endpoint (`path`)."""
    fields = decode_members(body_members(body), _UNDECODED)
    # With `thread` (a beta), Anthropic keeps the earlier turns: a result may answer a call that is not here.
    reader = MessageReader(history_elsewhere=fields.get("thread") is not None)
    messages = (*_leading(fields), *_read_messages(fields, reader))
    tools = with_servers(() if fields.get("tools") is None else read_tools(fields["tools"]), fields)
    settings = read_settings(fields, tools, reader.effort)
    if settings.max_tokens is None and "count_tokens" not in path:
        reject("is required", "max_tokens")
    return Request(
        model=need_string(fields, "model", ""),
        messages=messages,
        tools=tools,
        settings=settings,
        stream=boolean(fields, "stream", "") or False,
        extras=_extras(fields),
        raw=Raw(NAME, fields),
    )


def _leading(fields: Obj) -> tuple[Message, ...]:
    system = None if fields.get("system") is None else read_system(fields["system"])
    return () if system is None else (system,)


def _read_messages(fields: Obj, reader: MessageReader) -> list[Message]:
    given = fields.get("messages")
    messages = [] if given is None else reader.read(LazyArray(given, "messages"))
    return messages or reject("at least one message is required", "messages")


def read_settings(body: Obj, tools: tuple[Tool, ...], effort: str | None = None) -> Settings:
    """Read the settings. `effort` is the effort that a system message of the conversation asks for."""
    tool_choice, parallel = read_tool_choice(body, tools)
    metadata = mapping(body, "metadata", "") or {}
    return Settings(
        max_tokens=integer(body, "max_tokens", ""),
        temperature=number(body, "temperature", ""),
        top_p=number(body, "top_p", ""),
        top_k=integer(body, "top_k", ""),
        stop=strings(body, "stop_sequences", ""),
        reasoning=_reasoning(body, effort),
        format=_format(body),
        tool_choice=tool_choice,
        parallel_tool_calls=parallel,
        service_tier=_service_tier(body),
        user=string(metadata, "user_id", "metadata"),
        metadata={k: v for k, v in metadata.items() if k != "user_id"} or None,
        cache=read_cache(body, ""),
    )


def _service_tier(body: Obj) -> str | None:
    # Anthropic has two members for what OpenAI calls a service tier.
    if string(body, "speed", "") == "fast":
        return "fast"
    tier = string(body, "service_tier", "")
    return "default" if tier == "standard_only" else tier


def _reasoning(body: Obj, changed: str | None) -> Reasoning | None:
    effort = _effort(body, changed)
    config = mapping(body, "thinking", "")
    if config is None:
        return Reasoning(effort=effort) if effort else None
    type = need_string(config, "type", "thinking")
    if type == "disabled":
        return Reasoning(enabled=False, effort=effort)
    display = string(config, "display", "thinking")
    show = None if display is None else display != "omitted"
    if type != "enabled":
        # `adaptive`, `between_tools`, and types of the future: the model decides how much it thinks. An
        # unknown type must not be an error, because Anthropic adds types without a new API version.
        return Reasoning(enabled=True, effort=effort, adaptive=True, show=show)
    budget = integer(config, "budget_tokens", "thinking")
    if budget is None:
        reject("is required", "thinking", "budget_tokens")
    return Reasoning(enabled=True, effort=effort, budget=budget, show=show)


def _effort(body: Obj, changed: str | None) -> Effort | None:
    """The effort of this turn: that of the last system message, else that of the request."""
    # Newer Claude Code sends `output_config: {effort: …}` in system messages between the turns.
    config = mapping(body, "output_config", "") or {}
    effort = changed or string(config, "effort", "output_config")
    return cast("Effort", effort) if effort in _EFFORTS else None


def _format(body: Obj) -> Format | None:
    config = mapping(body, "output_config", "") or {}
    where, format = "output_config.format", mapping(config, "format", "output_config")
    if format is None:
        where, format = "output_format", mapping(body, "output_format", "")
    if format is None:
        return None
    if choice(format, "type", where, ("json_schema",)) is None:
        reject("is required", where, "type")
    schema = mapping(format, "schema", where)
    if schema is None:
        reject("is required", where, "schema")
    return Format("schema", schema)


def _extras(body: Obj) -> Obj | None:
    """The members without neutral meaning, and the rest of members with a partly neutral meaning."""
    if body.keys() <= _FULLY_NEUTRAL:
        return None
    extras = {key: value for key, value in body.items() if key not in KNOWN}
    config = mapping(body, "output_config", "") or {}
    unknown = {k: v for k, v in config.items() if k not in ("effort", "format")}
    if unknown:
        extras["output_config"] = unknown
    thinking = mapping(body, "thinking", "") or {}
    if thinking.get("type", "disabled") not in ("enabled", "adaptive", "disabled"):
        extras["thinking"] = thinking
    return extras or None
