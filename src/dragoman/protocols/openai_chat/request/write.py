"""The neutral request as an OpenAI Chat upstream wants it."""

from __future__ import annotations

from typing import Any

import msgspec

from ....messages import Notice, Request
from ... import pieces, wishes
from ...base import Outgoing, Target
from ...fields import Obj
from ...history import History
from ...later import as_it_came
from ...memory import MEMORY
from ...names import NameRule, ToolNames, tool_names
from ...notices import Notices
from .shared import IDS, NAME, NAMES, PATH, Writing
from .write_history import write_history
from .write_messages import write_messages
from .write_own import own_messages
from .write_settings import split_stops, write_settings
from .write_tools import write_tools

__all__ = ["IDS", "NAMES", "write_request"]

# A Chat client's names are its upstream's business: servers differ in what they allow.
_OWN_NAMES = NameRule(r"(?s).+", 1 << 16, custom=True, namespaces=True)
_COMPATIBLE_NAMES = msgspec.structs.replace(NAMES, custom=False)


_AROUND = f"around the messages for {NAME}"


class _Around(msgspec.Struct, frozen=True):
    """How a request is written, but for its messages."""

    members: Obj
    """With nothing in the place of the messages."""
    names: ToolNames
    stop: tuple[str, ...]
    notices: tuple[Notice, ...]
    """What has to be said of it is said every time."""
    json: pieces.Around | None = None
    """The members, written, for a conversation that may go on."""


def write_request(request: Request, target: Target) -> Outgoing:
    """The body for `target`, and what the way back must know of it."""
    messages, raw = request.messages, request.raw
    if raw is not None and raw.protocol == NAME:
        return _as_it_came(request, raw.value, target)
    notices, own = Notices(target.strict), wishes.came_over(request, NAME)
    if type(messages) is History:
        around = _noted_around(request, messages, target, own=own)
        written: Any = write_history(messages, Writing(target, around.names, notices, own))
    else:
        around = _around(request, target, own=own)
        written = write_messages(messages, Writing(target, around.names, notices, own))
    return Outgoing(
        members={**around.members, "messages": written},
        path=PATH,
        names=around.names,
        notices=(*around.notices, *notices.all()),
        stop=around.stop,
        around=around.json,
    )


def _as_it_came(request: Request, raw: Obj, target: Target) -> Outgoing:
    """The client's body, key for key."""
    notices = Notices(target.strict)
    body = {**raw, "model": target.model}
    body["messages"] = own_messages(raw["messages"], target, notices)
    if "tools" in raw:
        body["tools"] = as_it_came(raw["tools"])
    if raw.get("stream"):
        # Usage is always wanted here; the client gets it only if it asked.
        body["stream_options"] = {**(raw.get("stream_options") or {}), "include_usage": True}
    return Outgoing(members=body, path=PATH, names=tool_names(request, _OWN_NAMES), notices=notices.all())


def _noted_around(request: Request, history: History, target: Target, *, own: bool) -> _Around:
    """What was written around the messages before, if that is said again."""
    protocol = request.raw.protocol if request.raw is not None else ""
    said = (target, request.tools, request.settings, request.extras, request.stream, protocol)
    count, around = history.noted(_AROUND, said)
    if not count:
        around = _around(request, target, own=own)
        json = pieces.around(around.members, "messages")
        around = msgspec.structs.replace(around, json=json)
        history.note(_AROUND, said, around)
    return around


def _rule(own: bool, target: Target) -> NameRule:
    if own:
        return _OWN_NAMES
    return _COMPATIBLE_NAMES if target.chat_compatible else NAMES


def _around(request: Request, target: Target, *, own: bool) -> _Around:
    notices = Notices(target.strict)
    writing = Writing(target, tool_names(request, _rule(own, target)), notices, own)
    if not own:
        wishes.refuse_untranslatable(request)
        wishes.say_foreign(request, notices)
    members: Obj = {"model": target.model, "messages": None, **_tools(request, writing)}
    members |= write_settings(request.settings, writing)
    extras = dict(request.extras or {})
    options: Obj = extras.pop("stream_options", None) or {}
    if own:
        members |= extras
    if request.stream:
        members["stream"] = True
        members["stream_options"] = {**(options if own else {}), "include_usage": True}
    stop = split_stops(request.settings, notices)[1]
    return _Around(members, writing.names, stop, notices.all())


def _tools(request: Request, writing: Writing) -> Obj:
    known = MEMORY.known(request.raw.value.get("tools")) if request.raw is not None else None
    if known is None:
        return write_tools(request, writing)
    notices, settings = writing.notices, request.settings

    def written() -> tuple[tuple[Obj, tuple[Notice, ...]], bool]:
        said = len(notices)
        return (write_tools(request, writing), notices.since(said)), True

    key = (writing.key, request.tools, settings.tool_choice, settings.parallel_tool_calls)
    tools, said = known.note(f"{NAME} tools", key, written)
    notices.again(said)
    return tools
