"""The neutral request, written for a Gemini upstream."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from ....messages import Format, Message, Notice, Request, Text
from ... import wishes
from ...base import Outgoing, Target
from ...fields import Obj
from ...history import Values
from ...later import as_it_came
from ...memory import MEMORY
from ...names import NameRule, ToolNames, tool_names
from ...notices import Notices
from .keys import GEMINI, is_from_gemini
from .models import path
from .read_settings import merged
from .write_contents import IDS, cleaned_all, system_instruction
from .write_history import split
from .write_settings import (
    emulates_format,
    generation_config,
    service_tier,
    stops,
)
from .write_tools import ToolWriter

__all__ = ["IDS", "NAMES", "write_request"]

NAMES = NameRule(r"[A-Za-z_][A-Za-z0-9_.:-]*", 64)
# The client's declarations go out as they came, so its names are the upstream's.
_AS_THEY_CAME = NameRule(r"(?s).*", 1 << 16)

_encode = msgspec.json.Encoder().encode


def write_request(request: Request, target: Target) -> Outgoing:
    """The body and path of a `generateContent` call."""
    address = path(target.model, request.stream)
    if is_from_gemini(request.raw):
        names = tool_names(request, _AS_THEY_CAME)
        return Outgoing(members=_same(request.raw.value, target), path=address, names=names)
    notices = Notices(target.strict)
    names = tool_names(request, _AS_THEY_CAME if _own_tools(request) else NAMES)
    body = _body(request, target, names, notices)
    remaining = stops(request.settings, notices)[1]
    return Outgoing(members=body, path=address, names=names, notices=notices.all(), stop=remaining)


def _same(value: Obj, target: Target) -> Obj:
    """The client's own body, but for the model's name and what Dragoman once put into it."""
    body = dict(value)
    if isinstance(body.get("model"), str):
        prefix = "models/" if body["model"].startswith("models/") else ""
        body["model"] = prefix + target.model.removeprefix("models/")
    contents = value.get("contents")
    if isinstance(contents, (list, Values)):
        body["contents"] = cleaned_all(cast("list[Any] | Values", contents), target)
    if "tools" in value:
        body["tools"] = as_it_came(value["tools"])
    return body


def _own_tools(request: Request) -> bool:
    if not request.tools:
        return wishes.came_over(request, GEMINI)
    return all(is_from_gemini(tool.raw) for tool in request.tools)


def _body(request: Request, target: Target, names: ToolNames, notices: Notices) -> Obj:
    own = wishes.came_over(request, GEMINI)
    settings = request.settings
    if not own:
        wishes.refuse_untranslatable(request)
        wishes.say_foreign(request, notices)
    system, contents = split(request, target, names, notices, own=own)
    if settings.format is not None and emulates_format(request, target.model):
        system.append(_in_words(settings.format))
    tool_writer = ToolWriter(request, names, target.model, notices)
    tools, json = _noted_tools(request, target, names, notices)
    body: Obj = {
        "contents": contents(),
        "systemInstruction": system_instruction(system, notices),
        "tools": json or tools,
        "toolConfig": tool_writer.config(tools),
        "generationConfig": generation_config(request, target.model, notices),
        "serviceTier": service_tier(settings),
    }
    body = {key: value for key, value in body.items() if value}
    if own:
        body = merged(body, _own_fields(request))
    return body


def _noted_tools(
    request: Request, target: Target, names: ToolNames, notices: Notices
) -> tuple[list[Obj], msgspec.Raw | None]:
    """The tools, and the same as JSON, where they were written before."""
    known = MEMORY.known(request.raw.value.get("tools")) if request.raw is not None else None
    if known is None:
        return ToolWriter(request, names, target.model, notices).tools(), None

    def written() -> tuple[tuple[list[Obj], msgspec.Raw | None, tuple[Notice, ...]], bool]:
        said = Notices(target.strict)
        tools = ToolWriter(request, names, target.model, said).tools()
        return (tools, msgspec.Raw(_encode(tools)) if tools else None, said.all()), True

    key = (names.number, target.strict, target.model, request.tools)
    tools, json, said = known.note(f"tools for {GEMINI}", key, written)
    notices.again(said)
    return tools, json


def _in_words(wanted: Format) -> Message:
    """The wish for JSON as a system prompt."""
    words = "Answer with JSON only: no other text, no code fence."
    if wanted.kind == "schema":
        schema = msgspec.json.encode(wanted.schema or {}).decode()
        words += f" It must be valid against this JSON Schema:\n{schema}"
    return Message("system", (Text(words),))


def _own_fields(request: Request) -> Obj:
    """Fields only Gemini knows, of a request that came over its wire and was changed since."""
    own = {"labels": request.settings.metadata, "store": request.settings.store}
    return {key: value for key, value in own.items() if value is not None} | (request.extras or {})
