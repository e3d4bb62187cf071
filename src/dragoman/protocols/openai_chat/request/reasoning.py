"""Reasoning in Chat messages: fields that are not in OpenAI's spec, but in common use.

The text is in `reasoning_content` (DeepSeek, Kimi, GLM, and our own encoder) or `reasoning` (OpenRouter,
Groq, newer vLLM). Opaque reasoning is in OpenRouter's `reasoning_details`: the upstream's own entries, which
become one seal with all of them as JSON, and our envelopes. The seal of a call is where Google's Chat
endpoint has the signature. A seal of the Gemini protocol is in an envelope there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ....model.messages import Seal, Thinking, thinking_text
from ...base import Target
from ...common import call_ids, sealed_reasoning
from ...common.fields import Obj, is_object, string
from ...common.typed_json import Members, items, members_of, opens_object
from ..own import NAME, goes_back
from .wire import Assistant, is_nothing

WORDS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
MEMBERS = frozenset({*WORDS, DETAILS})

_encode = msgspec.json.Encoder().encode


class MessageReasoning(msgspec.Struct, frozen=True):
    """The thoughts of one message, and the seals of its calls by call id."""

    thoughts: list[Thinking]
    of_calls: dict[str, Seal]
    wrapped: bool = False
    """Did the message contain an envelope of Dragoman?"""


def read(message: Assistant, where: str) -> MessageReasoning:
    """Read the reasoning of an assistant message."""
    text = message.reasoning_content or message.reasoning or ""
    if message.reasoning_details is None:
        return MessageReasoning([Thinking(text)], {}) if text else _NONE
    own: list[Obj] = []
    carried: list[Seal] = []
    of_calls: dict[str, Seal] = {}
    for at, detail in enumerate(message.reasoning_details):
        envelope = _envelope_of(detail, f"{where}.{DETAILS}[{at}]")
        if envelope is None:
            own.append(detail)
        elif envelope.call and envelope.seal.protocol != NAME:  # a seal of Chat is a list of details
            of_calls[call_ids.from_client(envelope.call)] = envelope.seal
        else:
            carried.append(envelope.seal)
    text = text or _words(own)
    if any(detail.get("data") or detail.get("signature") for detail in own):
        carried.append(_own_seal(own))
    wrapped = len(own) < len(message.reasoning_details)
    return MessageReasoning(_thoughts(text, carried), of_calls, wrapped)


_NONE = MessageReasoning([], {})


def spelled(members: Members) -> Obj:
    """The reasoning of a message as the client spelled it, without our envelopes."""
    kept: Obj = {key: members[key] for key in MEMBERS & members.keys()}
    if is_nothing(kept.get(DETAILS)):
        return kept
    given = items(kept.pop(DETAILS), DETAILS)
    own = [detail for detail in given if _envelope_of(msgspec.json.decode(detail), DETAILS) is None]
    return kept | ({DETAILS: own} if own else {})


def _own_seal(details: Iterable[Obj]) -> Seal:
    return Seal(NAME, _encode(list(details)).decode())


def _envelope_of(detail: Obj, where: str) -> sealed_reasoning.Envelope | None:
    """The envelope of Dragoman in a detail, if there is one."""
    data = string(detail, "data", where) or ""
    envelope = sealed_reasoning.from_slot(data, NAME)
    return envelope if envelope.seal.data != data else None


def _words(details: list[Obj]) -> str:
    texts = (detail.get("text") or detail.get("summary") for detail in details)
    return "".join(text for text in texts if isinstance(text, str))


def _thoughts(text: str, carried: list[Seal]) -> list[Thinking]:
    """Build the thoughts. A signature covers exactly its text: with two, the text of each is unknown."""
    signatures = [seal for seal in carried if not seal.redacted]
    if not text or len(signatures) != 1:
        visible = [Thinking(text)] if text else []
        return visible + [Thinking(seal=seal) for seal in carried]
    return [Thinking(text if seal is signatures[0] else "", seal) for seal in carried]


def call_seal(extra_content: Any) -> Seal | None:
    """The seal of a call, at the place of Google's Chat endpoint."""
    signature = _signature(extra_content)
    return sealed_reasoning.from_slot(signature, NAME).seal if signature else None


def is_wrapped(extra_content: Any) -> bool:
    """Is the seal of this call in an envelope of Dragoman?"""
    seal = call_seal(extra_content)
    return seal is not None and seal.data != _signature(extra_content)


def without_seal(extra_content: msgspec.Raw) -> Obj:
    """The field `extra_content` of a call without the seal; no field if nothing is left."""
    if call_seal(msgspec.json.decode(extra_content)) is None:
        return {"extra_content": extra_content}
    rest: Obj = {**members_of(extra_content, "extra_content")}
    google = {k: v for k, v in members_of(rest.pop("google"), "google").items() if k != "thought_signature"}
    rest |= {"google": google} if google else {}
    return {"extra_content": rest} if rest else {}


def with_seal(extra_content: Any, data: str) -> Obj:
    """The value of `extra_content` with the seal of a call."""
    rest = _members(extra_content)
    return {**rest, "google": {**_members(rest.get("google")), "thought_signature": data}}


def _members(value: Any) -> Obj:
    if isinstance(value, msgspec.Raw):
        return {**members_of(value, "extra_content")} if opens_object(value) else {}
    return value if is_object(value) else {}


def _signature(extra_content: Any) -> str:
    google = extra_content.get("google") if is_object(extra_content) else None
    signature = google.get("thought_signature") if is_object(google) else None
    return signature if isinstance(signature, str) else ""


def write(thoughts: Sequence[Thinking], target: Target, *, calls: bool) -> Obj:
    """The fields that return an upstream's own reasoning to it.

    Groq refuses reasoning in the history (gptel#774), DeepSeek requires it (pi#3636):
    `Target.reasoning_field` says which.
    """
    fields: Obj = {}
    own = [t.seal for t in thoughts if goes_back(t.seal, target)]
    if not (own or target.reasoning_field):
        return fields
    text = thinking_text(thoughts)
    # DeepSeek refuses a turn with calls and without the field, even if there was no reasoning.
    if target.reasoning_field and (text or calls):
        fields[target.reasoning_field] = text
    details = [detail for seal in own for detail in _details_of(seal)]
    if details:
        fields[DETAILS] = _with_words(details, text)
    return fields


def as_given(given: Obj, thoughts: Sequence[Thinking], target: Target) -> Obj:
    """The reasoning as a Chat client spelled it, and the details that this upstream had sealed."""
    fields = {key: value for key, value in given.items() if key in MEMBERS}
    seals = [thought.seal for thought in thoughts if thought.seal is not None]
    if not seals:
        return fields
    spelled: list[Any] = fields.get(DETAILS) or []
    there = _own_seal(map(msgspec.json.decode, spelled))
    opened = [d for seal in seals if seal != there and goes_back(seal, target) for d in _details_of(seal)]
    if opened or spelled:
        return fields | {DETAILS: opened + spelled}
    # The text belongs to another issuer, too, and an upstream may refuse reasoning fields.
    return {key: value for key, value in fields.items() if key == target.reasoning_field}


def _details_of(seal: Seal) -> list[Obj]:
    """The entries of `reasoning_details` in a seal of this protocol."""
    try:
        return msgspec.json.decode(seal.data, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return []  # the client sends the envelope and may have changed it


def _with_words(details: list[Obj], text: str) -> list[Obj]:
    """Add the text to the entry of a signature: in a stream, the text comes in earlier entries."""
    bare = [d for d in details if d.get("type") == "reasoning.text" and not d.get("text")]
    if len(bare) != 1 or not text:
        return details
    return [{**detail, "text": text} if detail is bare[0] else detail for detail in details]
