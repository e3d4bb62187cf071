"""Write a conversation as Gemini's `contents`. The signature of a call is on the same part as the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.messages import (
    Extras,
    Media,
    Message,
    Opaque,
    Part,
    Raw,
    Refusal,
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    members_for,
    plain_text,
)
from ...base import Target
from ...common import call_ids
from ...common.fields import Obj, is_array, is_object
from ...common.freeform import arguments_object
from ...common.notices import Notices
from ...common.tool_names import ToolNames
from ...common.turns import FAILED_SILENTLY, PLACEHOLDER, note_placeholder, turns
from ...common.typed_json import opens_array, unchanged_array
from ..own import NAME, is_own
from .keys import SIGNATURES, SplitArray, merged, snake
from .read_parts import BYPASS

IDS = call_ids.IdRule(call_ids.ANY.pattern, call_ids.ANY.max_length, optional=True)
_CALLS = frozenset({"functionCall", "function_call"})
_EMPTY = ("", msgspec.Raw(b'""'))


class ContentWriter:
    """Writes messages as `contents`. Remembers calls, because their responses need the function's name."""

    def __init__(self, target: Target, names: ToolNames, notices: Notices) -> None:
        self._names = names
        self._notices = notices
        self._ids = target.ids or IDS
        self._target = target
        self._signs = target.takes.signs_calls
        self._called: dict[str, tuple[str, str]] = {}
        """For each call so far: its id for the upstream, and the name of its function."""

    def turns(self, messages: Sequence[Message]) -> list[Obj]:
        """Write alternating contents. All responses follow their calls in one content, in the same order.

        Gemini refuses a content with fewer responses than the content before it has calls (eino-ext#571).
        """
        found = turns(messages, self._notices)
        contents = [self._content(turn.role, turn.parts) for turn in found]
        if found[0].role != "assistant":
            return contents
        # Gemini refuses a call that follows neither a user's turn nor a response.
        note_placeholder(self._notices)
        return [{"role": "user", "parts": [{"text": PLACEHOLDER}]}, *contents]

    def one_by_one(self, messages: Sequence[Message]) -> list[Any] | msgspec.Raw:
        """Write one content per message, for the conversation of a Gemini client."""
        raws = [message.raw for message in messages]
        given = unchanged_array(raws) if is_own(raws[0]) else None
        return _joined(raws, [self._one(message) for message in messages]) if given is None else given

    def _one(self, message: Message) -> Any:
        if not is_own(message.raw):
            return self._content(message.role, message.parts, message.extras)
        for part in message.parts:
            if isinstance(part, ToolCall):
                self._remember(part)
        return message.raw.value

    def _content(self, role: str, parts: Sequence[Part], extras: Extras | None = None) -> Obj:
        written: list[Obj] = []
        shown: list[Obj] = []
        """Media of results that the model does not take inside a response. It follows after all responses:
        between them, it would separate the responses of parallel calls."""
        for part in parts:
            if isinstance(part, ToolResult):
                written.append(self._response(part, shown))
                continue
            written += shown
            shown = []
            if isinstance(part, Text):
                written.append({"text": part.text, **members_for(NAME, part.extras)})
            elif isinstance(part, ToolCall):
                written.append(self._call(part))
            elif isinstance(part, Thinking):
                _put_thought(written, part)
            elif not isinstance(part, Search):  # readers turn a search into a call and its result
                written.append(_other(part))
        written += shown
        if role == "assistant":
            _sign_first_call(written, self._signs)
        if is_own(extras):
            return {**extras.members, "parts": [_without_place(part) for part in written]}
        return {"role": "model" if role == "assistant" else "user", "parts": written}

    def _remember(self, call: ToolCall) -> tuple[str, str]:
        """Remember id and name of a call: Gemini requires the function's name in the response, too."""
        id, name = call_ids.for_upstream(call.id, self._ids), self._names.out(call.name, call.namespace)
        self._called[call.id] = id, name
        return id, name

    def _call(self, call: ToolCall) -> Obj:
        id, name = self._remember(call)
        if is_own(call.raw):
            written = dict(call.raw.value)
        else:
            called: Obj = {"id": id, "name": name, "args": arguments_object(call, self._notices)}
            written = _with_extras("functionCall", called, call.extras)
        if call.seal is not None:
            _sign(written, call.seal.data)
        return written

    def _response(self, result: ToolResult, shown: list[Obj]) -> Obj:
        """Write a result. Media that the model does not take in a response is added to `shown`."""
        if is_own(result.raw):
            return dict(result.raw.value)
        id, name = self._called.get(result.call_id) or (
            call_ids.for_upstream(result.call_id, self._ids),
            self._names.out(result.name or result.call_id),
        )
        media = [part for part in result.parts if isinstance(part, Media)]
        apart = bool(media) and self._target.takes.media_results is False
        if apart:
            shown += [{"text": f"From the result of {name}:"}, *map(media_part, media)]
        text = plain_text(_pointing(result.parts) if apart else result.parts)
        if result.is_error and not text:
            text = FAILED_SILENTLY  # the model would read `{"error": ""}` as a success
        written: Obj = {
            "id": id,
            "name": name,
            # By Google's convention, `output` holds a result and `error` a failure.
            "response": {"error" if result.is_error else "output": text},
        }
        if media and not apart:
            written["parts"] = list(map(media_part, media))
        return _with_extras("functionResponse", written, result.extras)


def _joined(raws: Sequence[Raw | None], contents: list[Any]) -> list[Any] | msgspec.Raw:
    """A list of contents. The first of them, which the client sent so, are copied with their white space.

    The bytes of a prompt stay the same if a later content is written anew.
    """
    array = raws[0].held if raws and raws[0] is not None else None
    if not isinstance(array, SplitArray) or not opens_array(array.json):
        return contents
    kept = 0
    while kept < len(raws) and (raw := raws[kept]) is not None and raw.held is array and raw.at == kept:
        kept += 1
    if not kept:
        return contents
    return msgspec.Raw(b",".join((array.up_to(kept), *map(msgspec.json.encode, contents[kept:]))) + b"]")


def _with_extras(key: str, value: Obj, extras: Extras | None) -> Obj:
    """The part with this call or response and its unknown members, in the spelling of the client."""
    members = members_for(NAME, extras)
    return merged({snake(key) if snake(key) in members else key: value}, members)


def _pointing(parts: Sequence[Text | Media]) -> list[Text]:
    """`parts` with a text that stands for each image or file."""
    return [p if isinstance(p, Text) else Text(f"[{p.kind}: after the results]") for p in parts]


def _put_thought(written: list[Obj], thought: Thinking) -> None:
    """Write a thought. A thought without text is the signature of the part before it.

    Gemini sends a late signature like that: on the last text, or on an extra part with empty text.
    """
    seal = thought.seal
    if is_own(thought.extras):
        text = {"text": thought.text} if thought.text else {}
        written.append(text | thought.extras.members)
    elif thought.text or seal is None:
        written.append({"text": thought.text, "thought": True})
    elif not written or _is_signed(written[-1]):
        written.append({"text": ""})
    if seal is not None:
        _sign(written[-1], seal.data)


def _sign(part: Obj, data: str) -> None:
    """Put a signature on a part, in the spelling of its client."""
    part[SIGNATURES[1] if SIGNATURES[1] in part else SIGNATURES[0]] = data


def _is_signed(part: Obj) -> bool:
    return any(part.get(name) is not None for name in SIGNATURES)


def _without_place(part: Obj) -> Obj:
    """The part without the place that `unwrap` kept for a signature, if it got none."""
    return {key: value for key, value in part.items() if value is not None}


def _sign_first_call(parts: list[Obj], wanted: bool) -> None:
    """Put a signature on the first call of a model turn, in place.

    Gemini 3 refuses a turn whose first call has no signature (`wanted`); parallel calls need none.
    Only the current turn must have it, but all turns get it: otherwise a part would change when its turn is
    no longer the current one, and the prompt cache would be invalid from there on.
    """
    call = next((part for part in parts if not _CALLS.isdisjoint(part)), None)
    if call is None or _is_signed(call):
        return
    # A late signature is on a separate part with empty text, but belongs to the call.
    late = next((part for part in parts if part.get("text") in _EMPTY and _is_signed(part)), None)
    if late is not None:
        _sign(call, next(data for name in SIGNATURES if (data := late.pop(name, None)) is not None))
        if late.keys() <= {"text", "thought"}:
            parts.remove(late)
    elif wanted:
        _sign(call, BYPASS)


def _other(part: Media | Opaque | Refusal) -> Obj:
    if isinstance(part, Media):
        return media_part(part)
    return dict(part.raw.value) if isinstance(part, Opaque) else {"text": part.text}


def media_part(media: Media) -> Obj:
    if is_own(media.raw):
        return dict(media.raw.value)
    if media.url is not None:
        kind = {"mimeType": media.media_type} if media.media_type else {}
        return {"fileData": {**kind, "fileUri": media.url}}
    return {"inlineData": {"mimeType": media.media_type, "data": media.data or ""}}


def system_instruction(messages: Sequence[Message], notices: Notices) -> Obj | str | None:
    """Write the leading system prompts as one content with a part for each block."""
    if len(messages) == 1 and is_own(raw := messages[0].raw):
        return raw.value
    members: Obj = {}
    parts: list[Any] = []
    for index, message in enumerate(messages):
        if is_own(message.raw) and is_object(given := message.raw.value) and "parts" in given:
            members |= given
            parts += given["parts"] if is_array(given["parts"]) else [given["parts"]]
            continue
        for part in message.parts:
            if isinstance(part, Text):
                parts += [{"text": part.text}] if part.text else []
            else:
                path = f"messages[{index}]"
                notices.warn("opaque-dropped", path, "Gemini accepts only text as system instruction")
    return {**members, "parts": parts} if parts else None
