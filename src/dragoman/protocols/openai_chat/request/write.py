"""Write a request for an OpenAI Chat upstream."""

from __future__ import annotations

import msgspec

from ....model.messages import Request
from ...base import Outgoing, Target
from ...common import unsupported
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames
from ..own import NAME, is_own
from .shared import IDS, NAMES, PATH, Writing
from .write_messages import write_messages
from .write_settings import asking_for_json, fit_settings, given_settings, write_settings
from .write_tools import keeps_functions, write_tools

__all__ = ["IDS", "NAMES", "write_request"]

# The names of a Chat client stay as they are: Chat servers differ in the names they allow.
_OWN_NAMES = NameRule(r"(?s).+", 1 << 16, custom=True, namespaces=True)
_COMPATIBLE_NAMES = msgspec.structs.replace(NAMES, custom=False)


def write_request(request: Request, target: Target) -> Outgoing:
    """Write the request for `target`, with the facts that the translation of its answer needs."""
    own = unsupported.was_sent_in(request, NAME)
    notices = Notices(target.strict)
    names = ToolNames(request.tools, _rule(own, target))
    writing = Writing(target, names, notices, own, keeps_legacy=keeps_functions(request))
    if not own:
        request = asking_for_json(request, writing)
        unsupported.refuse_untranslatable(request)
        unsupported.note_unsupported_fields(request, notices)
    raw = request.raw
    body = given_settings(raw.value) if is_own(raw) else write_settings(request, writing)
    body["model"] = target.model
    stop = fit_settings(body, request.settings, writing)
    write_tools(body, request, writing)
    if request.stream:
        # The receipt needs the usage, and aider, LangChain and openai-agents do not ask for it. The client
        # gets the extra chunk only if it asked.
        body["stream"] = True
        body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
    body["messages"] = write_messages(request.messages, writing)
    return Outgoing(members=body, path=PATH, names=names, notices=notices.all(), stop=stop)


def _rule(own: bool, target: Target) -> NameRule:
    if own:
        return _OWN_NAMES
    return _COMPATIBLE_NAMES if target.chat_compatible else NAMES
