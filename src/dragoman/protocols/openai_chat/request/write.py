"""Write a request for an OpenAI Chat upstream."""

from __future__ import annotations

import msgspec

from ....model.messages import Request
from ...base import Outgoing, Target
from ...common import unsupported
from ...common.fields import Obj, is_object
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames
from ..own import NAME, is_own
from .read_tools import typed_choice
from .shared import IDS, NAMES, PATH, Writing
from .write_messages import write_messages
from .write_own import fit_own_settings, own_messages
from .write_settings import asking_for_json, split_stops, write_settings
from .write_tools import WEB_SEARCH, own_tools, searches, write_tools

__all__ = ["IDS", "NAMES", "write_request"]

# The names of a Chat client stay as they are: Chat servers differ in the names they allow.
_OWN_NAMES = NameRule(r"(?s).+", 1 << 16, custom=True, namespaces=True)
_COMPATIBLE_NAMES = msgspec.structs.replace(NAMES, custom=False)


def write_request(request: Request, target: Target) -> Outgoing:
    """Write the request for `target`, with the facts that the translation of its answer needs."""
    raw = request.raw
    if is_own(raw):
        return _unchanged(request, raw.value, target)
    own = unsupported.was_sent_in(request, NAME)
    notices = Notices(target.strict)
    writing = Writing(target, ToolNames(request.tools, _rule(own, target)), notices, own)
    if not own:
        request = asking_for_json(request, writing)
        unsupported.refuse_untranslatable(request)
        unsupported.note_unsupported_fields(request, notices)
    members: Obj = {"model": target.model, "messages": None, **write_tools(request, writing)}
    members |= write_settings(request.settings, writing)
    extras = dict(request.extras or {})
    options: Obj = extras.pop("stream_options", None) or {}
    if own:
        members |= extras
    if request.stream:
        members["stream"] = True
        members["stream_options"] = {**(options if own else {}), "include_usage": True}
    stop = split_stops(request.settings, writing)[1]
    members["messages"] = write_messages(request.messages, writing)
    return Outgoing(members=members, path=PATH, names=writing.names, notices=notices.all(), stop=stop)


def _unchanged(request: Request, raw: Obj, target: Target) -> Outgoing:
    """Send the members of a Chat client's body as they are, except what the upstream refuses."""
    notices = Notices(target.strict)
    writing = Writing(target, ToolNames(request.tools, _OWN_NAMES), notices, True)
    body = {**raw, "model": target.model}
    body["messages"] = own_messages(request.messages, raw["messages"], target, notices)
    if any(tool.raw is not None and tool.raw.wrapped for tool in request.tools):
        body["tools"] = own_tools(request.tools)
    if is_object(raw.get("tool_choice")):
        body["tool_choice"] = typed_choice(raw["tool_choice"])
    if raw.get(WEB_SEARCH) is not None and not searches(writing, WEB_SEARCH):
        del body[WEB_SEARCH]
    stop = fit_own_settings(body, request.settings, writing)
    if raw.get("stream"):
        # The receipt needs the usage, and aider, LangChain and openai-agents do not ask for it. The client
        # gets the extra chunk only if it asked.
        body["stream_options"] = {**(raw.get("stream_options") or {}), "include_usage": True}
    return Outgoing(members=body, path=PATH, names=writing.names, notices=notices.all(), stop=stop)


def _rule(own: bool, target: Target) -> NameRule:
    if own:
        return _OWN_NAMES
    return _COMPATIBLE_NAMES if target.chat_compatible else NAMES
