"""Write a request for a Gemini upstream."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ....model.messages import Message, Request, Text
from ...base import Outgoing, Target
from ...common import unsupported
from ...common.fields import Obj, reject
from ...common.json_words import in_words
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames
from ..own import NAME, is_own
from .keys import Fields, camel, merged
from .read import read_system
from .read_tools import read_tools
from .supported import ContentFilter
from .write_contents import IDS, ContentWriter, system_instruction
from .write_settings import emulates_format, generation_config, refuses, service_tier, stops, thinking_config
from .write_tools import ToolWriter

__all__ = ["IDS", "NAMES", "write_request"]

# The SDK allows 128 characters, but the API's own error message says 64.
NAMES = NameRule(r"[A-Za-z_][A-Za-z0-9_.:-]*", 64)
# A Gemini client's declarations are sent unchanged, so its names must stay, too.
_UNCHANGED = NameRule(r"(?s).*", 1 << 16)
_EMPTY: tuple[Any, ...] = (None, [], "", {})


def write_request(request: Request, target: Target) -> Outgoing:
    """Write the body and the path of a `generateContent` request."""
    address = path(target.model, request.stream)
    notices = Notices(target.strict)
    own = unsupported.was_sent_in(request, NAME)
    if not own:
        unsupported.refuse_untranslatable(request)
        unsupported.note_unsupported_fields(request, notices)
    names = ToolNames(request.tools, _UNCHANGED if _keeps_names(request, own=own) else NAMES)
    tool_writer = ToolWriter(request, names, target, notices, own=own)
    tools = tool_writer.tools()
    system, conversation = ContentFilter(target, notices).split(request.messages)
    # The members of a Gemini client's own body say all settings, and stay as they came.
    given: Obj | None = request.raw.value if is_own(request.raw) else None
    remaining: tuple[str, ...] = ()
    settings: Obj = {}
    if given is None:
        if request.settings.format is not None and emulates_format(request, target):
            system.append(Message("system", (Text(in_words(request.settings.format)),)))
        settings = {
            "toolConfig": tool_writer.config(tools),
            "generationConfig": generation_config(request, target, notices),
            "serviceTier": service_tier(request.settings),
        }
        remaining = stops(request.settings, notices)[1]
    writer = ContentWriter(target, names, notices)
    body: Obj = {
        "contents": writer.one_by_one(conversation) if own else writer.turns(conversation),
        "systemInstruction": system_instruction(system, notices),
        "tools": tools,
        **settings,
    }
    body = {key: value for key, value in body.items() if value not in _EMPTY}
    if given is not None:
        body = _in_place(body, given, target)
    elif own:
        body = merged(body, _own_fields(request))
    if own:
        body = _thinkable(body, request, target, notices)
    return Outgoing(members=body, path=address, names=names, notices=notices.all(), stop=remaining)


def _keeps_names(request: Request, *, own: bool) -> bool:
    if is_own(request.raw) or not request.tools:
        return own
    return all(is_own(tool.raw) for tool in request.tools)


def _own_fields(request: Request) -> Obj:
    """Gemini's own fields of a Gemini client's request that was changed since."""
    own = {"labels": request.settings.metadata, "store": request.settings.store}
    return {key: value for key, value in own.items() if value is not None} | (request.extras or {})


def _in_place(prompt: Obj, given: Obj, target: Target) -> Obj:
    """The client's own body, with this prompt in the place and the spelling of the client's."""
    left, body = dict(prompt), Obj()
    for key, value in given.items():
        name = camel(key)
        if name in left:
            body[key] = left.pop(name)
        elif _is_no_prompt(name, value):
            body[key] = value
    if isinstance(body.get("model"), str):
        prefix = "models/" if body["model"].startswith("models/") else ""
        # The body may repeat the model's name. It must agree with the path.
        body["model"] = prefix + target.model.removeprefix("models/")
    return body | left


def _is_no_prompt(name: str, value: Any) -> bool:
    """Does this member of a body declare no tool and no instruction? Also an empty list stays as it came."""
    if name == "tools":
        return value is None or not read_tools(value)
    return name != "contents" and not (name == "systemInstruction" and read_system(Fields({name: value}, "")))


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


def path(model: str, stream: bool) -> str:
    """The path that a request for `model` is posted to.

    The client chooses the name, and the request carries the upstream's key: no name may lead elsewhere.
    """
    name = model.removeprefix("models/")
    if name and not {"", ".", ".."}.isdisjoint(name.split("/")):
        reject(
            f"{model[:80]!r} cannot stand in a path: a part between slashes is empty, '.' or '..'", "model"
        )
    folder = "" if name.startswith("tunedModels/") else "models/"
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/{folder}{quote(name, safe='/:@')}:{verb}"
