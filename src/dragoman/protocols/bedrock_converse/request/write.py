"""A neutral request as the body of `POST /model/{model}/converse-stream` or `/converse`."""

from __future__ import annotations

from urllib.parse import quote

from ....model.messages import Request, ToolCall
from ...base import Outgoing, Target
from ...common import unsupported
from ...common.cache_breakpoints import marks_nothing
from ...common.fields import Obj, reject
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames
from .supported import ContentFilter
from .write_content import IDS, ContentWriter
from .write_settings import (
    inference,
    instruction,
    output_config,
    reasoning,
    response_fields,
    service_tier,
)
from .write_tools import ToolWriter

__all__ = ["IDS", "NAMES", "write_request"]

# The pattern of `toolSpec.name`.
NAMES = NameRule(r"[a-zA-Z0-9_-]+", 64)
# `inferenceConfig` has four members: maxTokens, temperature, topP and stopSequences.
_NO_COUNTERPART = (
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "seed",
    "verbosity",
)


def write_request(request: Request, target: Target) -> Outgoing:
    """The body, the path, and what the answer's translation must know of them."""
    address = path(target.model, request.stream)
    unsupported.refuse_untranslatable(request)
    notices = Notices(target.strict)
    names = ToolNames(request.tools, NAMES)
    members = _members(request, target, names, notices)
    unsupported.warn_dropped(request.settings, _NO_COUNTERPART, notices)
    unsupported.note_unsupported_fields(request, notices)
    # Claude refuses a sequence of nothing but white space.
    blank = tuple(stop for stop in request.settings.stop if stop and not stop.strip())
    return Outgoing(members=members, path=address, names=names, notices=notices.all(), stop=blank)


def path(model: str, stream: bool) -> str:
    """The path for a model's id, inference profile or ARN. boto3 escapes them in the same way.

    The client may choose the name, and the request carries the upstream's key: no name may lead elsewhere.
    """
    if model in ("", ".", ".."):
        reject(f"{model!r} cannot stand in a path", "model")
    return f"/model/{quote(model, safe='')}/{'converse-stream' if stream else 'converse'}"


def _members(request: Request, target: Target, names: ToolNames, notices: Notices) -> Obj:
    system, conversation = ContentFilter(target, notices).split(request.messages)
    writer = ContentWriter(target, names, notices)
    words = instruction(request.settings, target, notices)
    tools = ToolWriter(request, names, notices, writer.mark_tool)
    thinking = reasoning(request.settings, target, notices)
    has_calls = any(isinstance(part, ToolCall) for message in conversation for part in message.parts)
    body: Obj = {
        "messages": writer.turns(conversation),
        "system": writer.system(system, words),
        "inferenceConfig": inference(request.settings, target, notices, thinks=bool(thinking)),
        "toolConfig": tools.config(has_calls=has_calls, thinks=bool(thinking)),
        "additionalModelRequestFields": thinking,
        "additionalModelResponseFieldPaths": response_fields(request.settings, target),
        "outputConfig": output_config(request.settings, target, notices),
        "serviceTier": service_tier(request.settings),
    }
    if marks_nothing(request):
        writer.mark_prompt(body)
    return {key: value for key, value in body.items() if value}
