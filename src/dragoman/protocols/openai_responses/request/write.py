"""Write a request for a Responses upstream."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ....model.messages import Format, Message, Raw, Reasoning, Request, Settings, Text, Tool, plain_text
from ...base import Outgoing, Target
from ...common import reasoning_effort, unsupported
from ...common.fields import Obj, is_array, is_object
from ...common.json_words import RULE, has_object_root, in_words, instructed, says_json
from ...common.notices import Notices
from ...common.sampling import left_out, within_model
from ...common.tool_names import NameRule, ToolNames
from ..own import NAME, is_own
from .restore import IDS, restored_input, without_reasoning
from .write_items import ItemWriter
from .write_parts import PartWriter
from .write_tools import ToolWriter, sendable

__all__ = ["IDS", "NAMES", "write_request"]

NAMES = NameRule(r"[a-zA-Z0-9_-]+", 64, custom=True, namespaces=True)
# A Responses client's definitions are sent unchanged: the upstream judges its names.
_UNCHANGED = NameRule(r"(?s).*", 1 << 16, custom=True, namespaces=True)

_PATH = "/v1/responses"
_ENCRYPTED = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"
# The neutral names of settings whose members have others.
_SETTING = {"top_logprobs": "logprobs"}
# OpenAI refuses a lower `max_output_tokens`.
_MIN_OUTPUT_TOKENS = 16
_MAX_USER_LENGTH = 64
_TIERS = {
    "standard_only": "default",
    "standard": "default",
    **{t: t for t in ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")},
}
_NO_COUNTERPART = ("top_k", "presence_penalty", "frequency_penalty", "logit_bias", "seed")


def write_request(request: Request, target: Target) -> Outgoing:
    """Write the body for `POST /v1/responses`."""
    notices = Notices(target.strict)
    own = _is_own(request)
    names = ToolNames(request.tools, _UNCHANGED if own else NAMES)
    if own and request.raw is not None:
        body = _unchanged(request.raw, request.settings, target, notices)
    elif own:
        body = _rebuilt(request, target, names, notices)
    else:
        body = _translated(request, target, names, notices)
    if request.settings.stop:
        message = "Responses has no stop sequences: Dragoman looks for them in the answer"
        notices.note("stop-emulated", "settings.stop", message)
    return Outgoing(
        members=body,
        path=_PATH,
        names=names,
        notices=notices.all(),
        stop=request.settings.stop,
    )


def _is_own(request: Request) -> bool:
    # Only Responses clients continue an earlier response.
    continues = request.raw is None and request.settings.previous_response_id is not None
    return continues or unsupported.was_sent_in(request, NAME)


def _unchanged(raw: Raw, settings: Settings, target: Target, notices: Notices) -> Obj:
    body: Obj = {**raw.value, "model": target.model}
    if raw.wrapped:
        body["input"] = restored_input(body["input"], target)
    return _for_model(_without_chat_options(body), settings, target, notices)


def _for_model(body: Obj, settings: Settings, target: Target, notices: Notices) -> Obj:
    """A Responses client's body without settings that the model refuses."""
    refused = left_out(settings, target.takes, target.model, notices)
    body = {key: value for key, value in body.items() if _SETTING.get(key, key) not in refused}
    if "verbosity" in refused:
        body["text"] = {key: value for key, value in body["text"].items() if key != "verbosity"}
    if "logprobs" in refused:
        body = _without_include(body, _LOGPROBS)
    reasoning = body.get("reasoning")
    if is_object(reasoning) and target.takes.reasons is not False and "effort" in reasoning:
        effort = reasoning_effort.fitting(reasoning["effort"], target.takes, target.model, notices)
        body["reasoning"] = {**reasoning, "effort": effort}
    return _without_reasoning(body, target, notices)


def _without_include(body: Obj, name: str) -> Obj:
    included = body.get("include")
    if not is_array(included) or name not in included:
        return body
    kept = [each for each in included if each != name]
    rest = {key: value for key, value in body.items() if key != "include"}
    return {**rest, "include": kept} if kept else rest


def _without_reasoning(body: Obj, target: Target, notices: Notices) -> Obj:
    """A model that does not reason refuses settings for reasoning, and reasoning in its input."""
    if target.takes.reasons is not False:
        return body
    if "input" in body:
        body = {**body, "input": without_reasoning(body["input"])}
    if body.get("reasoning"):
        notices.warn("reasoning-dropped", "settings.reasoning", f"{target.model} does not reason")
    body = {key: value for key, value in body.items() if key != "reasoning"}
    return _without_include(body, _ENCRYPTED)


def _without_chat_options(body: Obj) -> Obj:
    """Remove Chat's `stream_options.include_usage`: Cursor adds it, and Responses refuses it."""
    options = body.get("stream_options")
    if not is_object(options) or "include_usage" not in options:
        return body
    rest = {key: value for key, value in options.items() if key != "include_usage"}
    if rest:
        return {**body, "stream_options": rest}
    return {key: value for key, value in body.items() if key != "stream_options"}


def _rebuilt(request: Request, target: Target, names: ToolNames, notices: Notices) -> Obj:
    """Write a Responses client's request that was changed. Unchanged members stay as they are."""
    settings = request.settings
    extras = request.extras or {}
    messages = request.messages
    leading = _leading_instructions(messages, own=True)
    items = ItemWriter(messages, target, names, PartWriter(notices)).own_items(leading)
    tools = ToolWriter(names, notices)
    top, additional = _by_place(request.tools)
    if additional:
        definitions = tools.tools(additional)
        items.insert(0, {"type": "additional_tools", "role": "developer", "tools": definitions})
    body: Obj = {
        "model": target.model,
        **_instructions(messages[:leading]),
        "input": items,
        **_tools(top, request, tools),
        **_settings(settings, tools),
    }
    if settings.previous_response_id and "conversation" not in extras:
        body["previous_response_id"] = settings.previous_response_id
    if settings.background:
        body["background"] = True
    if settings.store is not None:
        body["store"] = settings.store
    if request.stream:
        body["stream"] = True
    return _for_model(_without_chat_options(_with_extras(body, extras)), settings, target, notices)


def _by_place(tools: tuple[Tool, ...]) -> tuple[list[Tool], list[Tool]]:
    """Split the tools: top-level ones, and those of an item. The item of a search has its own."""
    top = [tool for tool in tools if _item_of(tool) is None]
    return top, [tool for tool in tools if _item_of(tool) == "additional_tools"]


def _item_of(tool: Tool) -> str | None:
    return (tool.extras or {}).get("item")


def _with_extras(body: Obj, extras: Obj) -> Obj:
    for key, value in extras.items():
        given = body.get(key)
        body[key] = {**given, **value} if is_object(given) and is_object(value) else value
    return body


def _translated(request: Request, target: Target, names: ToolNames, notices: Notices) -> Obj:
    """Write another protocol's request. It holds the whole history, so the upstream need not store it."""
    request = _without_odd_schema(request, notices)
    settings, messages = request.settings, request.messages
    unsupported.refuse_untranslatable(request)
    unsupported.note_unsupported_fields(request, notices)
    unsupported.warn_dropped(settings, _NO_COUNTERPART, notices)
    leading = _leading_instructions(messages, own=False)
    tools = ToolWriter(names, notices)
    include = [_ENCRYPTED]
    fitted = _fitted(settings, target, notices)
    if fitted.logprobs is not None:
        include.append(_LOGPROBS)
    body: Obj = {
        "model": target.model,
        **_instructions(messages[:leading]),
        "input": _input(request, target, names, notices, leading),
        **_tools(request.tools, request, tools),
        **_settings(fitted, tools),
        # Encrypted reasoning makes a conversation work without a store at OpenAI: the next request sends it
        # back.
        "include": include,
        "store": False,
    }
    if request.stream:
        body["stream"] = True
    return _without_reasoning(body, target, notices)


def _input(request: Request, target: Target, names: ToolNames, notices: Notices, leading: int) -> list[Obj]:
    """Write another protocol's messages after the first `leading` ones."""
    items = ItemWriter(request.messages, target, names, PartWriter(notices)).translated_items(leading)
    wanted = request.settings.format
    if wanted is None or wanted.kind != "json" or says_json(request.messages[leading:]):
        return items
    # OpenAI looks for the word in the input, and not in the instructions.
    notices.note(RULE, "settings.format", "JSON mode needs the word in the input: an instruction was added")
    words = {"type": "input_text", "text": in_words(wanted)}
    return [{"type": "message", "role": "developer", "content": [words]}, *items]


def _without_odd_schema(request: Request, notices: Notices) -> Request:
    """Ask in words for an answer that is no object: OpenAI takes no schema for it."""
    wanted = request.settings.format
    if wanted is None or wanted.kind != "schema" or has_object_root(wanted):
        return request
    notices.warn(RULE, "settings.format", "OpenAI takes only schemas of objects: asked for in words")
    return request.changed(
        messages=instructed(request.messages, in_words(wanted)),
        settings=msgspec.structs.replace(request.settings, format=None),
    )


def _leading_instructions(messages: Sequence[Message], *, own: bool) -> int:
    """The number of leading messages that become `instructions`. Items of a Responses client stay items."""
    for count, message in enumerate(messages):
        as_item = is_own(message.raw)
        system = message.role in ("system", "developer") and not as_item
        if not system or not all(isinstance(part, Text) for part in message.parts):
            return count
    # A Responses client's input may be stored at the server. For other clients, one message must remain.
    return len(messages) if own else 0


def _instructions(messages: Sequence[Message]) -> Obj:
    text = plain_text(part for message in messages for part in message.parts)
    return {"instructions": text} if text else {}


def _tools(tools: Sequence[Tool], request: Request, writer: ToolWriter) -> Obj:
    settings = request.settings
    definitions = writer.tools(tools)
    fields: Obj = {"tools": definitions} if definitions else {}
    # OpenAI refuses a tool choice without tools.
    sent = sendable(request.tools)
    if sent and settings.tool_choice is not None:
        fields["tool_choice"] = writer.choice(settings.tool_choice, sent)
    if sent and settings.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = settings.parallel_tool_calls
    return fields


def _fitted(settings: Settings, target: Target, notices: Notices) -> Settings:
    """Settings of another protocol, limited to values that Responses and the model accept."""
    settings = within_model(settings, target.takes, target.model, notices)
    return msgspec.structs.replace(
        settings,
        max_tokens=_max_tokens(settings.max_tokens, notices),
        service_tier=_TIERS.get(settings.service_tier or ""),
        user=unsupported.opaque_user(settings.user, _MAX_USER_LENGTH),
        metadata=unsupported.string_pairs(settings.metadata),
    )


def _settings(settings: Settings, tools: ToolWriter) -> Obj:
    fields: Obj = {
        "reasoning": _reasoning(settings.reasoning),
        "text": _text(settings, tools),
        "max_output_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_logprobs": settings.logprobs or None,
        "service_tier": settings.service_tier,
        "safety_identifier": settings.user,
        "metadata": settings.metadata,
        "prompt_cache_key": settings.cache_key,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _max_tokens(count: int | None, notices: Notices) -> int | None:
    if count is not None and count < _MIN_OUTPUT_TOKENS:
        message = f"openai-responses refuses fewer than {_MIN_OUTPUT_TOKENS} tokens"
        notices.warn("max-tokens-raised", "settings.max_tokens", message)
        return _MIN_OUTPUT_TOKENS
    return count


def _reasoning(reasoning: Reasoning | None) -> Obj | None:
    if reasoning is None:
        return None
    effort = reasoning_effort.effort(reasoning)
    fields: Obj = {"effort": effort} if effort else {}
    if reasoning.show:
        # Without it, OpenAI returns reasoning items with an empty summary.
        fields["summary"] = "auto"
    return fields or None


def _text(settings: Settings, tools: ToolWriter) -> Obj | None:
    fields: Obj = {}
    if settings.format is not None:
        fields["format"] = _format(settings.format, tools)
    if settings.verbosity is not None:
        fields["verbosity"] = settings.verbosity
    return fields or None


def _format(format: Format, tools: ToolWriter) -> Obj:
    if format.kind == "json":
        return {"type": "json_object"}
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", format.name or "")[:64] or "response"
    fields: Obj = {"type": "json_schema", "name": name}
    if format.description is not None:
        fields["description"] = format.description
    schema = tools.schema(format.schema, "settings.format.schema")
    # Always set: the server tries strict mode if `strict` is missing.
    return fields | {"schema": schema, "strict": format.strict or False}
