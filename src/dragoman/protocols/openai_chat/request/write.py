"""The neutral request as an OpenAI Chat upstream wants it."""

from __future__ import annotations

import msgspec

from ....messages import Notice, Request
from ... import pieces, wishes
from ...base import Outgoing, Target
from ...fields import Obj
from ...history import History
from ...memory import MEMORY
from ...names import NameRule, ToolNames, tool_names
from ...notices import Notices
from .shared import IDS, NAME, NAMES, PATH, Writing, is_own
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
    """How a request was written, but for its messages."""

    members: Obj
    json: pieces.Around
    """The same, written."""
    names: ToolNames
    stop: tuple[str, ...]
    before: tuple[Notice, ...]
    """What has to be said about it, before what there is to say about the messages."""
    behind: tuple[Notice, ...]


def write_request(request: Request, target: Target) -> Outgoing:
    """The body for `target`, and what the way back must know of it."""
    history = request.messages
    if type(history) is not History or request.raw is None:
        return _outgoing(request, target)[0]
    said = (target, request.tools, request.settings, request.extras, request.stream, request.raw.protocol)
    count, around = history.noted(_AROUND, said)
    if count:
        return _gone_on(history, target, around)
    outgoing, about = _outgoing(request, target)
    before, behind = outgoing.notices[: about.start], outgoing.notices[about.stop :]
    json, members = pieces.around(outgoing.members, "messages"), {**outgoing.members, "messages": None}
    history.note(_AROUND, said, _Around(members, json, outgoing.names, outgoing.stop, before, behind))
    return msgspec.structs.replace(outgoing, around=json)


def _gone_on(history: History, target: Target, around: _Around) -> Outgoing:
    """A request that says the same around its messages as one that was written before."""
    notices = Notices(target.strict)
    writing = Writing(target, around.names, notices, own=False)
    if around.before:
        notices.again(around.before)
    members = {**around.members, "messages": write_history(history, writing)}
    if around.behind:
        notices.again(around.behind)
    return Outgoing(
        members=members,
        path=PATH,
        names=around.names,
        notices=notices.all(),
        stop=around.stop,
        around=around.json,
    )


def _outgoing(request: Request, target: Target) -> tuple[Outgoing, range]:
    """The request, and which of its notices are about messages."""
    notices = Notices(target.strict)
    own = wishes.came_over(request, NAME)
    names = tool_names(request, _rule(own, target))
    if request.raw is not None and is_own(request.raw):
        body = _own_body(request.raw.value, target, notices)
        stop: tuple[str, ...] = ()
        about = range(len(notices))
    else:
        body, about = _written(request, Writing(target, names, notices, own))
        stop = split_stops(request.settings, notices)[1]
    return Outgoing(members=body, path=PATH, names=names, notices=notices.all(), stop=stop), about


def _rule(own: bool, target: Target) -> NameRule:
    if own:
        return _OWN_NAMES
    return _COMPATIBLE_NAMES if target.chat_compatible else NAMES


def _own_body(raw: Obj, target: Target, notices: Notices) -> Obj:
    """The client's body, key for key."""
    body = {**raw, "model": target.model}
    body["messages"] = own_messages(raw["messages"], target, notices)
    if raw.get("stream"):
        # Usage is always wanted here; the client gets it only if it asked.
        body["stream_options"] = {**(raw.get("stream_options") or {}), "include_usage": True}
    return body


def _tools(request: Request, writing: Writing) -> Obj:
    known = MEMORY.known(request.raw.value.get("tools")) if request.raw is not None else None
    settings = request.settings
    key = (writing.key, request.tools, settings.tool_choice, settings.parallel_tool_calls)
    return writing.noted(known, "tools", key, lambda: write_tools(request, writing))


def _written(request: Request, writing: Writing) -> tuple[Obj, range]:
    if not writing.own:
        wishes.refuse_untranslatable(request)
        wishes.say_foreign(request, writing.notices)
    messages, said = request.messages, len(writing.notices)
    body: Obj = {
        "model": writing.target.model,
        "messages": write_history(messages, writing)
        if type(messages) is History
        else write_messages(messages, writing),
    }
    about = range(said, len(writing.notices))
    body |= {
        **_tools(request, writing),
        **write_settings(request.settings, writing),
    }
    extras = dict(request.extras or {})
    options: Obj = extras.pop("stream_options", None) or {}
    if writing.own:
        body |= extras
    if request.stream:
        body["stream"] = True
        body["stream_options"] = {**(options if writing.own else {}), "include_usage": True}
    return body, about
