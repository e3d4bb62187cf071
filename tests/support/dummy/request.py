"""Reads and writes requests of the dummy protocol."""

from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.model.messages import (
    Message,
    Raw,
    Request,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    plain_text,
)
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.common import fields
from dragoman.protocols.common.tool_names import NameRule, ToolNames
from dragoman.protocols.facts import Obj, ToolForm

NAME = "dummy"
NAMES = NameRule(r"[A-Za-z0-9_-]+", 64)
_ROLES = {"system": "system", "user": "user", "model": "assistant"}
_WHO = {"system": "system", "developer": "system", "user": "user", "assistant": "model"}


def read_request(body: Any, path: str) -> Request:
    value = fields.parse_object(body)
    return Request(
        model=fields.need_string(value, "model", ""),
        messages=tuple(_message(turn, where) for where, turn in fields.objects(value, "talk", "")),
        tools=tuple(tool for where, it in fields.objects(value, "tools", "") for tool in _tool(it, where)),
        settings=Settings(max_tokens=fields.integer(value, "limit", "")),
        stream=bool(fields.boolean(value, "live", "")),
        raw=Raw(NAME, value),
    )


def _message(turn: Obj, where: str) -> Message:
    who, said = fields.need_string(turn, "who", where), fields.string(turn, "say", where) or ""
    if who == "tool":
        id = fields.need_string(turn, "of", where)
        failed = bool(fields.boolean(turn, "failed", where))
        return Message("user", (ToolResult(call_id=id, parts=(Text(said),), is_error=failed),))
    calls = [
        ToolCall(
            id=fields.need_string(call, "id", at),
            name=fields.need_string(call, "tool", at),
            arguments=fields.need_string(call, "with", at),
        )
        for at, call in fields.objects(turn, "calls", where)
    ]
    return Message(_ROLES[who], (*((Text(said),) if said else ()), *calls))


def _tool(tool: Obj, where: str) -> list[Tool]:
    name, about = fields.need_string(tool, "tool", where), fields.string(tool, "about", where)
    takes = fields.mapping(tool, "takes", where)
    return [Tool(name=name, description=about, parameters=takes, raw=Raw(NAME, tool))]


TOOLS = ToolForm(
    fits=lambda tool: "tool" in tool and "takes" in tool,
    read=lambda raw, where: _tool(msgspec.json.decode(raw), where),
)


def write_request(request: Request, target: Target) -> Outgoing:
    names = ToolNames(request.tools, NAMES)
    if request.raw is not None and request.raw.protocol == NAME:
        members = {**request.raw.value, "model": target.model}
    else:
        members = _written(request, target, names)
    return Outgoing(members=members, path="/v1/ask", names=names)


def _written(request: Request, target: Target, names: ToolNames) -> Obj:
    talk = [turn for message in request.messages for turn in _turns(message, names)]
    tools = [
        {"tool": names.out(t.name, t.namespace), "about": t.description, "takes": t.parameters or {}}
        for t in request.tools
        if t.kind != "hosted"
    ]
    limit = request.settings.max_tokens
    members: Obj = {"model": target.model, "live": request.stream, "talk": talk, "tools": tools}
    return members if limit is None else {**members, "limit": limit}


def _turns(message: Message, names: ToolNames) -> Iterator[Obj]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            said = plain_text(part.parts)
            yield {"who": "tool", "of": part.call_id, "say": said, "failed": part.is_error}
    calls = [
        {"id": part.id, "tool": names.out(part.name, part.namespace), "with": part.arguments}
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    said = plain_text(message.parts)
    if said or calls:
        yield {"who": _WHO[message.role], "say": said, "calls": calls}


def body_of(request: Request, model: str) -> bytes:
    """A request as a client of the protocol posts it."""
    return msgspec.json.encode(write_request(request, Target(model=model)).body)
