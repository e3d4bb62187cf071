"""Write a request for a Gemini upstream."""

from __future__ import annotations

from ....model.messages import Message, Request, Text
from ...base import Outgoing, Target
from ...common import unsupported
from ...common.fields import Obj
from ...common.json_words import in_words
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames
from ..own import NAME, is_own
from .keys import Fields
from .paths import path
from .read_settings import merged
from .restore import restored_contents
from .supported import ContentFilter
from .write_contents import IDS, ContentWriter, system_instruction
from .write_settings import emulates_format, generation_config, refuses, service_tier, stops, thinking_config
from .write_tools import ToolWriter

__all__ = ["IDS", "NAMES", "write_request"]

# The SDK allows 128 characters, but the API's own error message says 64.
NAMES = NameRule(r"[A-Za-z_][A-Za-z0-9_.:-]*", 64)
# A Gemini client's declarations are sent unchanged, so its names must stay, too.
_UNCHANGED = NameRule(r"(?s).*", 1 << 16)


def write_request(request: Request, target: Target) -> Outgoing:
    """Write the body and the path of a `generateContent` request."""
    address = path(target.model, request.stream)
    notices = Notices(target.strict)
    if is_own(request.raw):
        names = ToolNames(request.tools, _UNCHANGED)
        body = _same(request, request.raw.value, target, notices)
        return Outgoing(members=body, path=address, names=names, notices=notices.all())
    names = ToolNames(request.tools, _UNCHANGED if _own_tools(request) else NAMES)
    body = _body(request, target, names, notices)
    remaining = stops(request.settings, notices)[1]
    return Outgoing(members=body, path=address, names=names, notices=notices.all(), stop=remaining)


def _same(request: Request, value: Obj, target: Target, notices: Notices) -> Obj:
    """The client's own body, without the model's name and the values that Dragoman put into it."""
    body = dict(value)
    if isinstance(body.get("model"), str):
        prefix = "models/" if body["model"].startswith("models/") else ""
        # The body may repeat the model's name. It must agree with the path.
        body["model"] = prefix + target.model.removeprefix("models/")
    contents = restored_contents(request.messages, target)
    if contents is not None:
        body["contents"] = contents
    return _thinkable(body, request, target, notices)


def _thinkable(body: Obj, request: Request, target: Target, notices: Notices) -> Obj:
    """A Gemini client's body, with a `thinkingConfig` that the model takes."""
    top = Fields(body, "")
    config = top.child("generationConfig")
    given = config and config.mapping("thinkingConfig")
    if config is None or given is None or not refuses(given, target):
        return body
    rest = {key: value for key, value in config.value.items() if key != config.key("thinkingConfig")}
    fitted = thinking_config(request.settings.reasoning, target, notices)
    changed = rest | ({config.key("thinkingConfig"): fitted} if fitted else {})
    return {**body, top.key("generationConfig"): changed}


def _own_tools(request: Request) -> bool:
    if not request.tools:
        return unsupported.was_sent_in(request, NAME)
    return all(is_own(tool.raw) for tool in request.tools)


def _body(request: Request, target: Target, names: ToolNames, notices: Notices) -> Obj:
    own = unsupported.was_sent_in(request, NAME)
    settings = request.settings
    if not own:
        unsupported.refuse_untranslatable(request)
        unsupported.note_unsupported_fields(request, notices)
    system, conversation = ContentFilter(target, notices).split(request.messages)
    if settings.format is not None and emulates_format(request, target):
        system.append(Message("system", (Text(in_words(settings.format)),)))
    tool_writer = ToolWriter(request, names, target, notices)
    tools = tool_writer.tools()
    writer = ContentWriter(target, names, notices)
    body: Obj = {
        "contents": writer.one_by_one(conversation) if own else writer.turns(conversation),
        "systemInstruction": system_instruction(system, notices),
        "tools": tools,
        "toolConfig": tool_writer.config(tools),
        "generationConfig": generation_config(request, target, notices),
        "serviceTier": service_tier(settings),
    }
    body = {key: value for key, value in body.items() if value}
    if own:
        body = _thinkable(merged(body, _own_fields(request)), request, target, notices)
    return body


def _own_fields(request: Request) -> Obj:
    """Gemini's own fields of a Gemini client's request that was changed since."""
    own = {"labels": request.settings.metadata, "store": request.settings.store}
    return {key: value for key, value in own.items() if value is not None} | (request.extras or {})
