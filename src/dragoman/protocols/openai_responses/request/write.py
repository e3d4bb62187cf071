"""Write a request for a Responses upstream."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ....model.messages import Format, Message, Reasoning, Request, Settings, Text, plain_text
from ...base import Outgoing, Target
from ...common import reasoning_effort, unsupported
from ...common.fields import Obj, is_array, is_object
from ...common.json_words import RULE, has_object_root, in_words, instructed, says_json
from ...common.notices import Notices
from ...common.sampling import left_out, within_model
from ...common.tool_names import NameRule, ToolNames
from ...common.typed_json import items as items_of
from ..own import IDS, NAME, is_own
from .wire import declared
from .write_items import ItemWriter
from .write_tools import Placed, ToolWriter, every_definition, sendable

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
    if not own:
        request = _translatable(request, notices)
    names = ToolNames(request.tools, _UNCHANGED if own else NAMES)
    tools = ToolWriter(names, notices)
    items = ItemWriter(request.messages, target, names, notices, own=own)
    # A Responses client's other members stay as they came, in their order.
    given: Obj = request.raw.value if own and request.raw is not None else {}
    body: Obj = {**given, "model": target.model}
    _put_conversation(body, request, items, tools, notices, own=own)
    if not own:
        body |= _translated_settings(request, target, tools, notices)
    elif not given:
        body |= _own_settings(request, tools)
    if own:
        body = _for_model(_without_chat_options(body), request.settings, target, notices)
    body = _without_reasoning(body, target, notices)
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


def _translatable(request: Request, notices: Notices) -> Request:
    """Another protocol's request, without what Responses cannot express."""
    request = _without_odd_schema(request, notices)
    unsupported.refuse_untranslatable(request)
    unsupported.note_unsupported_fields(request, notices)
    unsupported.warn_dropped(request.settings, _NO_COUNTERPART, notices)
    return request


def _put_conversation(
    body: Obj, request: Request, items: ItemWriter, tools: ToolWriter, notices: Notices, *, own: bool
) -> None:
    """Put the messages and the tools into `body`, each in the place that the client uses."""
    as_sent = len(body) > 1
    leading = _leading_instructions(request.messages, own=own)
    instructions = plain_text(part for message in request.messages[:leading] for part in message.parts)
    if instructions:
        body["instructions"] = instructions
    elif body.get("instructions"):
        del body["instructions"]
    definitions = every_definition(request.tools)
    between = tools.items(definitions) if own else _json_word(request, leading, notices)
    written = items.items(leading, between)
    if written or not as_sent:
        body["input"] = written
    listed = tools.tools([tool for tool in definitions if declared(tool).item is None])
    if listed:
        body["tools"] = listed
    elif body.get("tools") is not None and items_of(body["tools"], "tools"):
        # Dragoman took all of them out. OpenAI refuses a tool choice without tools.
        for key in ("tools",) if request.tools else ("tools", "tool_choice", "parallel_tool_calls"):
            body.pop(key, None)


def _json_word(request: Request, leading: int, notices: Notices) -> list[Placed]:
    """The instruction that JSON mode needs. OpenAI does not look for the word in `instructions`."""
    wanted = request.settings.format
    if wanted is None or wanted.kind != "json" or says_json(request.messages[leading:]):
        return []
    notices.note(RULE, "settings.format", "JSON mode needs the word in the input: an instruction was added")
    words = {"type": "input_text", "text": in_words(wanted)}
    return [Placed(0, None, {"type": "message", "role": "developer", "content": [words]})]


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
    return body


def _without_include(body: Obj, name: str) -> Obj:
    included = body.get("include")
    if not is_array(included) or name not in included:
        return body
    kept = [each for each in included if each != name]
    rest = {key: value for key, value in body.items() if key != "include"}
    return {**rest, "include": kept} if kept else rest


def _without_reasoning(body: Obj, target: Target, notices: Notices) -> Obj:
    """A model that does not reason refuses settings for it. `ItemWriter` leaves out reasoning itself."""
    if target.takes.reasons is not False:
        return body
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


def _own_settings(request: Request, tools: ToolWriter) -> Obj:
    """The settings of a Responses client that were changed, and its members without neutral meaning."""
    settings, extras = request.settings, request.extras or {}
    body = {**_tool_settings(request, tools), **_settings(settings, tools)}
    if settings.previous_response_id and "conversation" not in extras:
        body["previous_response_id"] = settings.previous_response_id
    if settings.background:
        body["background"] = True
    if settings.store is not None:
        body["store"] = settings.store
    if request.stream:
        body["stream"] = True
    return _with_extras(body, extras)


def _with_extras(body: Obj, extras: Obj) -> Obj:
    for key, value in extras.items():
        given = body.get(key)
        body[key] = _with_extras(given, value) if is_object(given) and is_object(value) else value
    return body


def _translated_settings(request: Request, target: Target, tools: ToolWriter, notices: Notices) -> Obj:
    """The settings of another protocol's request, which holds the whole history: nothing need be stored."""
    include = [_ENCRYPTED]
    fitted = _fitted(request.settings, target, notices)
    if fitted.logprobs is not None:
        include.append(_LOGPROBS)
    body: Obj = {
        **_tool_settings(request, tools),
        **_settings(fitted, tools),
        # Encrypted reasoning makes a conversation work without a store at OpenAI: the next request sends it
        # back.
        "include": include,
        "store": False,
    }
    if request.stream:
        body["stream"] = True
    return body


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


def _tool_settings(request: Request, writer: ToolWriter) -> Obj:
    settings = request.settings
    fields: Obj = {}
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
