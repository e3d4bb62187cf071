"""Pass a Chat client's own messages to a Chat upstream, with few changes.

Three things must not reach the upstream: ids that Dragoman escaped for the client, envelopes with the
reasoning of another issuer, and the fields `index` and `parsed_arguments` of calls. OpenAI's stream helper
adds these two, agents echo them, and upstreams refuse them. No message is changed in place.

Settings stay as they are, too, except those that the model is known to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ....model.messages import Message, Raw, Settings
from ...base import Target
from ...common.call_ids import for_upstream, from_client
from ...common.fields import Obj, is_array, is_object
from ...common.notices import Notices
from ...common.reasoning_effort import fitting
from ...common.sampling import left_out
from ...common.sealed_reasoning import Envelope
from ...common.typed_json import items
from ..own import goes_back
from .reasoning import WORDS, call_seal, details_of, envelope_in
from .shared import Writing, without
from .write_settings import MODERN_BOUND, split_stops


def may_pass(raw: Raw, target: Target) -> bool:
    """May the upstream get the original message?"""
    return not raw.wrapped and (target.ids is None or target.ids.free)


def own_messages(
    messages: Sequence[Message], given: msgspec.Raw, target: Target, notices: Notices
) -> list[Any] | msgspec.Raw:
    """All messages of a request, which was read from `given`."""
    if all(message.raw is None or may_pass(message.raw, target) for message in messages):
        return given
    pairs = zip(messages, items(given, "messages"), strict=True)
    return [
        item if message.raw is None else own_message(message.raw, target, notices, f"messages[{index}]")
        for index, (message, item) in enumerate(pairs)
    ]


def fit_own_settings(body: Obj, settings: Settings, writing: Writing) -> tuple[str, ...]:
    """Change the settings in `body` that the model refuses. Return the stop sequences to emulate."""
    takes, model, notices = writing.target.takes, writing.target.model, writing.notices
    for name in left_out(settings, takes, model, notices):
        body.pop(name)
        if name == "logprobs":
            body.pop("top_logprobs", None)
    effort = body.get("reasoning_effort")
    if effort is not None and not writing.reasons():
        del body["reasoning_effort"]
    elif effort is not None:
        body["reasoning_effort"] = fitting(effort, takes, model, notices)
    if takes.max_tokens is False and body.get("max_tokens") is not None:
        body.setdefault(MODERN_BOUND, body.pop("max_tokens"))
    if takes.stop is not False or "stop" not in body:
        return ()
    del body["stop"]
    return split_stops(settings, writing)[1]


def own_message(raw: Raw, target: Target, notices: Notices, where: str) -> Any:
    """One message for the upstream. It stays undecoded if it needs no change."""
    return raw.value if may_pass(raw, target) else _undone(raw.parsed, target, notices, where)


def _undone(message: Obj, target: Target, notices: Notices, where: str) -> Obj:
    if isinstance(message.get("tool_call_id"), str):
        return _with_id(message, "tool_call_id", target)

    def warn_echo() -> None:
        text = "index and parsed_arguments in tool_calls are the SDK's own and were left out"
        notices.warn("echoed-fields-dropped", f"{where}.tool_calls", text)

    message = _reasoning(message, target)
    calls = message.get("tool_calls")
    if not is_array(calls):
        return message
    restored = [_call(call, target, warn_echo) for call in calls]
    if all(new is old for new, old in zip(restored, calls, strict=True)):
        return message
    return {**message, "tool_calls": restored}


def _with_id(fields: Obj, key: str, target: Target) -> Obj:
    id = from_client(fields[key])
    # No length limit here: the upstream or the client chose this id.
    id = for_upstream(id, target.ids) if target.ids else id
    return fields if id == fields[key] else {**fields, key: id}


def _call(call: Obj, target: Target, warn_echo: Callable[[], None]) -> Obj:
    result = without(call, "index") if "index" in call else call
    function = call.get("function")
    if is_object(function) and "parsed_arguments" in function:
        result = {**result, "function": without(function, "parsed_arguments")}
    if result is not call:
        warn_echo()
    return _signature(_with_id(result, "id", target), target)


def _signature(call: Obj, target: Target) -> Obj:
    """Open an envelope in the place of Google's signature for its issuer, or remove it."""
    seal = call_seal(call.get("extra_content"))
    if seal is None:
        return call
    extra: Obj = call["extra_content"]
    google: Obj = extra["google"]
    if seal.data == google["thought_signature"]:
        return call
    if goes_back(seal, target):
        google = {**google, "thought_signature": seal.data}
    else:
        google = without(google, "thought_signature")
    extra = {**extra, "google": google} if google else without(extra, "google")
    return {**call, "extra_content": extra} if extra else without(call, "extra_content")


def _reasoning(message: Obj, target: Target) -> Obj:
    """Open envelopes in `reasoning_details` for their issuer, or remove them."""
    details = message.get("reasoning_details")
    if not is_array(details) or not any(_envelope(detail) for detail in details):
        return message
    kept: list[Any] = []
    for detail in details:
        envelope = _envelope(detail)
        if envelope is None:
            kept.append(detail)
        elif goes_back(envelope.seal, target):
            kept.extend(details_of(envelope.seal))
    if kept:
        return {**message, "reasoning_details": kept}
    # The text belongs to another issuer, too, and an upstream may refuse reasoning fields.
    foreign = (key for key in WORDS if key != target.reasoning_field)
    return without(message, "reasoning_details", *foreign)


def _envelope(detail: Any) -> Envelope | None:
    data = detail.get("data") if is_object(detail) else None
    return envelope_in(data) if isinstance(data, str) else None
