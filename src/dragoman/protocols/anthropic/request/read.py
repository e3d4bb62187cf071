"""An Anthropic client's request as a neutral one. Bodies of both API versions are understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

import msgspec

from ....messages import (
    Effort,
    Format,
    Message,
    Raw,
    Reasoning,
    Request,
    Settings,
    Tool,
)
from ...fields import (
    Obj,
    array,
    as_object,
    boolean,
    choice,
    integer,
    is_object,
    mapping,
    need_string,
    number,
    parse_object,
    reject,
    string,
    strings,
)
from ...history import History, Values
from ...memory import read_member, remembered
from ...pieces import Body
from ...recall import FieldByField, Way, recalled
from ...turns import Pairing
from ..decoder import NAME
from .plain_shapes import read_list
from .read_blocks import read_message, read_system
from .read_plain import check_pairs, read_history
from .read_tools import read_cache, read_tool_choice, read_tools
from .spelling import Spelling

# `temperature`, `top_p` and `top_k` are gone from the newer API version, `output_format` is the
# older name of `output_config.format`: clients send all of them.
KNOWN = frozenset(
    {
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "stream",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "thinking",
        "output_config",
        "output_format",
        "metadata",
        "service_tier",
        "speed",
        "cache_control",
    }
)
_ALL_SAID = KNOWN - {"output_config", "thinking"}
"""Those of them of which nothing is ever left."""
_SETTINGS = KNOWN - {"model", "max_tokens", "messages", "system", "tools", "stream"}
_EFFORTS = frozenset(get_args(Effort))


def read_request(body: Body, path: str = "") -> Request:
    """The client's body. `max_tokens` must be said, but not to count tokens, which `path` tells."""
    known = recalled(body, path, _WAY)
    if known is not None:
        return known
    value = parse_object(body)
    return _request(value, _read_messages(value, Spelling(body)), path)


def _gone_on(before: Request, value: Obj, history: History, path: str) -> Request:
    """A request that says the same as another one around its messages."""
    known = before.messages
    if type(known) is not History or known.told != history.told or before.settings.max_tokens is None:
        return _request(value, history, path)  # a system's message may change the effort
    # Nothing else in it can say anything new.
    return msgspec.structs.replace(before, messages=history, raw=Raw(NAME, value))


def _known_tools(data: memoryview) -> Any:
    """The list of tools that `data` is."""
    given = read_member("tools", data)
    _read_tools(given)
    return given


def _read_tools(given: Any) -> tuple[Tool, ...]:
    return remembered(given, NAME, lambda: read_tools({"tools": given}))


def _request(value: Obj, messages: Sequence[Message], path: str) -> Request:
    tools = _read_tools(value.get("tools"))
    settings = read_settings(value, tools)
    if settings.max_tokens is None and "count_tokens" not in path:
        reject("is required", "max_tokens")
    return Request(
        model=need_string(value, "model", ""),
        messages=messages,
        tools=tools,
        settings=settings,
        stream=boolean(value, "stream", "") or False,
        extras=_extras(value),
        raw=Raw(NAME, value),
    )


def _read_messages(body: Obj, spelling: Spelling) -> tuple[Message, ...]:
    values = array(body, "messages", "")
    if not values:
        reject("at least one message is required", "messages")
    # A thread's earlier turns are kept by the server.
    pairing = Pairing(history_elsewhere=body.get("thread") is not None)
    messages: list[Message] = []
    for index, given in enumerate(values):
        where = f"messages[{index}]"
        message = read_message(as_object(given, where), where, spelling.inputs(index))
        check_pairs(message, index, pairing)
        messages.append(message)
    return (*_leading(body), *messages)


def _known_leading(body: Obj) -> tuple[Message, ...]:
    if "thread" in body:
        raise FieldByField
    return _leading(body)


def _leading(body: Obj) -> tuple[Message, ...]:
    said = body.get("system")
    system = remembered(said, f"{NAME} system", lambda: read_system(said)) if said is not None else None
    return (system,) if system else ()


_WAY = Way(
    name="messages",
    read_list=read_list,
    read_tools=_known_tools,
    leading=_known_leading,
    history=read_history,
    request=_request,
    gone_on=_gone_on,
)


def read_settings(body: Obj, tools: tuple[Any, ...]) -> Settings:
    """Everything that is neither conversation nor tool."""
    if body.keys().isdisjoint(_SETTINGS):
        return Settings(max_tokens=integer(body, "max_tokens", ""), reasoning=_reasoning(body))
    tool_choice, parallel = read_tool_choice(body, tools)
    metadata = mapping(body, "metadata", "") or {}
    return Settings(
        max_tokens=integer(body, "max_tokens", ""),
        temperature=number(body, "temperature", ""),
        top_p=number(body, "top_p", ""),
        top_k=integer(body, "top_k", ""),
        stop=strings(body, "stop_sequences", ""),
        reasoning=_reasoning(body),
        format=_format(body),
        tool_choice=tool_choice,
        parallel_tool_calls=parallel,
        service_tier=_service_tier(body),
        user=string(metadata, "user_id", "metadata"),
        metadata={k: v for k, v in metadata.items() if k != "user_id"} or None,
        cache=read_cache(body, ""),
    )


def _service_tier(body: Obj) -> str | None:
    if string(body, "speed", "") == "fast":
        return "fast"
    tier = string(body, "service_tier", "")
    return "default" if tier == "standard_only" else tier


def _reasoning(body: Obj) -> Reasoning | None:
    effort = _effort(body)
    config = mapping(body, "thinking", "")
    if config is None:
        return Reasoning(effort=effort) if effort else None
    type = need_string(config, "type", "thinking")
    if type == "disabled":
        return Reasoning(enabled=False, effort=effort)
    display = string(config, "display", "thinking")
    show = None if display is None else display != "omitted"
    if type != "enabled":
        # `adaptive`, `between_tools`, and what may come: the model decides how much.
        return Reasoning(enabled=True, effort=effort, adaptive=True, show=show)
    budget = integer(config, "budget_tokens", "thinking")
    if budget is None:
        reject("is required", "thinking", "budget_tokens")
    return Reasoning(enabled=True, effort=effort, budget=budget, show=show)


def _effort(body: Obj) -> Effort | None:
    """The effort of this turn: the request's, or what the last system message changed it to."""
    config = mapping(body, "output_config", "") or {}
    effort = string(config, "effort", "output_config")
    for index, message in _unusual(body["messages"]):
        own = message.get("output_config")
        if message["role"] == "system" and is_object(own):
            effort = string(own, "effort", f"messages[{index}].output_config") or effort
    return cast("Effort", effort) if effort in _EFFORTS else None


def _unusual(messages: list[Any] | Values) -> Iterable[tuple[int, Any]]:
    """The messages that may be a system's, with their places."""
    return messages.unusual() if isinstance(messages, Values) else enumerate(messages)


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
    """What has no neutral meaning, whole fields and rests of fields alike."""
    if body.keys() <= _ALL_SAID:
        return None
    extras = {key: value for key, value in body.items() if key not in KNOWN}
    config = mapping(body, "output_config", "") or {}
    beyond = {k: v for k, v in config.items() if k not in ("effort", "format")}
    if beyond:
        extras["output_config"] = beyond
    thinking = mapping(body, "thinking", "") or {}
    if thinking.get("type", "disabled") not in ("enabled", "adaptive", "disabled"):
        extras["thinking"] = thinking
    return extras or None
