"""Read the request of a Responses client."""

from __future__ import annotations

from typing import Any, cast, get_args

import msgspec

from ....model.messages import Effort, Format, Message, Raw, Reasoning, Request, Settings, Text
from ...common.fields import (
    Body,
    Obj,
    boolean,
    choice,
    integer,
    is_object,
    mapping,
    need_string,
    number,
    reject,
    string,
    strings,
    word,
)
from ...common.typed_json import (
    LazyArray,
    body_members,
    decode_members,
    opens_array,
    opens_string,
    reads_body,
    value,
)
from ..own import NAME
from .read_items import ItemReader, is_reference, is_trigger
from .read_tools import read_tool_choice, read_tools
from .wire import OtherItem, decode_items

_EFFORTS: tuple[str, ...] = get_args(Effort)
_UNDECODED = frozenset({"input", "tools"})
_NO_ITEMS = msgspec.Raw(b"[]")
_LOGPROBS = "message.output_text.logprobs"

# Fields that the neutral request covers completely. All others go into `extras`.
NEUTRAL = frozenset(
    {
        *(
            "model",
            "input",
            "instructions",
            "stream",
            "store",
            "background",
            "previous_response_id",
        ),
        *(
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "max_output_tokens",
            "temperature",
            "top_p",
        ),
        *("top_logprobs", "prompt_cache_key", "service_tier", "safety_identifier", "metadata"),
    }
)
# Of these objects, the neutral request covers only the named members.
_PARTLY_NEUTRAL = {"reasoning": ("effort",), "text": ("format", "verbosity")}
_FORMAT = frozenset({"type", "name", "description", "schema", "strict"})


@reads_body
def read_request(body: Body, path: str = "") -> Request:
    """Read the body of `POST /v1/responses`."""
    fields = decode_members(body_members(body), _UNDECODED)
    previous = _previous(fields)
    given = _input_items(fields)
    decoded = decode_items(given)
    others = [item for item in decoded if type(item) is OtherItem]
    elsewhere = previous is not None or any(map(is_reference, others))
    reader = ItemReader(history_elsewhere=elsewhere)
    messages = reader.read(decoded, given)
    tools = read_tools(fields, reader.tool_items)
    return Request(
        model=need_string(fields, "model", ""),
        messages=(*_instructions(fields), *_text_input(fields), *messages),
        tools=tools,
        settings=msgspec.structs.replace(
            read_settings(fields),
            tool_choice=read_tool_choice(fields, tools, elsewhere),
            previous_response_id=previous,
            compact=any(map(is_trigger, others)),
        ),
        stream=boolean(fields, "stream", "") or False,
        extras=_extras(fields),
        raw=Raw(NAME, fields),
    )


def _previous(body: Obj) -> str | None:
    """The response or conversation (`{id}` or an id) that this request continues."""
    previous = string(body, "previous_response_id", "")
    conversation = body.get("conversation")
    if conversation is None:
        return previous
    if previous is not None:
        reject("cannot be combined with previous_response_id", "conversation")
    if is_object(conversation):
        return need_string(conversation, "id", "conversation")
    return string(body, "conversation", "")


def _instructions(body: Obj) -> tuple[Message, ...]:
    text = string(body, "instructions", "")
    return (Message("system", (Text(text),)),) if text else ()


def _text_input(body: Obj) -> tuple[Message, ...]:
    """Read an `input` that is a string."""
    given = body.get("input")
    if given is None or not opens_string(given):
        return ()
    text: str = value(given, "input")
    return (Message("user", (Text(text),) if text else (), raw=Raw(NAME, given)),)


def _input_items(body: Obj) -> LazyArray:
    given = body.get("input")
    if given is None:
        if not any(body.get(key) for key in ("prompt", "previous_response_id", "conversation")):
            reject("is required", "", "input")
        return LazyArray(_NO_ITEMS, "input")
    if opens_string(given):
        return LazyArray(_NO_ITEMS, "input")
    if not opens_array(given):
        reject(f"expected a string or an array, got {word(value(given, 'input'))}", "input")
    return LazyArray(given, "input")


def read_settings(body: Obj) -> Settings:
    """Read all settings except the tool choice."""
    text = mapping(body, "text", "") or {}
    return Settings(
        max_tokens=integer(body, "max_output_tokens", ""),
        temperature=number(body, "temperature", ""),
        top_p=number(body, "top_p", ""),
        logprobs=_logprobs(body),
        reasoning=_reasoning(mapping(body, "reasoning", "")),
        format=_format(mapping(text, "format", "text")),
        verbosity=string(text, "verbosity", "text"),
        parallel_tool_calls=boolean(body, "parallel_tool_calls", ""),
        service_tier=string(body, "service_tier", ""),
        # `safety_identifier` replaced `user`.
        user=string(body, "safety_identifier", "") or string(body, "user", ""),
        metadata=mapping(body, "metadata", ""),
        cache_key=string(body, "prompt_cache_key", ""),
        store=boolean(body, "store", ""),
        background=boolean(body, "background", "") or False,
    )


def _logprobs(body: Obj) -> int | None:
    count = integer(body, "top_logprobs", "")
    if count is None and _LOGPROBS in strings(body, "include", ""):
        return 0
    return count


def _reasoning(value: Obj | None) -> Reasoning | None:
    if value is None:
        return None
    effort = cast("Effort | None", choice(value, "effort", "reasoning", _EFFORTS))
    shown = any(string(value, key, "reasoning") for key in ("summary", "generate_summary"))
    return Reasoning(
        enabled=False if effort == "none" else None,
        effort=effort,
        show=True if shown else None,
    )


def _format(value: Obj | None) -> Format | None:
    if value is None:
        return None
    where = "text.format"
    kind = need_string(value, "type", where)
    if kind == "text":
        return None
    if kind == "json_object":
        return Format("json")
    if kind != "json_schema":
        reject(f"{kind!r} is not one of text, json_object, json_schema", where, "type")
    schema = mapping(value, "schema", where)
    if schema is None:
        reject("is required", where, "schema")
    return Format(
        "schema",
        schema=schema,
        name=string(value, "name", where),
        strict=boolean(value, "strict", where),
        description=string(value, "description", where),
    )


def _extras(body: Obj) -> Obj | None:
    """Fields without neutral meaning, and the rest of fields that are covered in part."""
    extras = {key: value for key, value in body.items() if key not in NEUTRAL}
    if not body.get("safety_identifier"):
        extras.pop("user", None)
    for key, understood in _PARTLY_NEUTRAL.items():
        given = extras.pop(key, None)
        rest = {k: v for k, v in given.items() if k not in understood} if is_object(given) else {}
        if rest:
            extras[key] = rest
    if unknown := _unknown_of_format(body.get("text")):
        extras["text"] = {**extras.get("text", {}), "format": unknown}
    return extras or None


def _unknown_of_format(text: Any) -> Obj:
    """The unknown members of `text.format`. The neutral request has no plain text format: it stays whole."""
    given = text.get("format") if is_object(text) else None
    if not is_object(given):
        return {}
    unknown = {key: value for key, value in given.items() if key not in _FORMAT}
    return given if unknown and given.get("type") == "text" else unknown
