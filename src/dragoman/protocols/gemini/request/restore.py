"""Giving a Gemini upstream a client's contents as they are, but for what Dragoman put there.

Call ids that were escaped for the client become the upstream's own again. Signatures that were wrapped are
unwrapped for their issuer and taken out for everybody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import Message, Raw, Seal
from ...base import Target
from ...common import call_ids, sealed_reasoning
from ...common.fields import Obj, is_array, is_object
from .keys import GEMINI, Fields
from .read_parts import BYPASS

_SIGNATURES = frozenset({"thoughtSignature", "thought_signature"})
_CALLS = frozenset({"functionCall", "function_call"})


def is_own(seal: Seal | None, target: Target) -> bool:
    """May this seal go to `target`?"""
    return sealed_reasoning.goes_back(seal, GEMINI, target.issuer)


def restored_contents(messages: Sequence[Message], target: Target) -> list[Any] | None:
    """The client's contents without what is ours; None if they can go out as they are."""
    own = [message.raw for message in messages if message.raw is not None and message.role != "system"]
    if not any(raw.wrapped for raw in own):
        return None
    kept = [restored(raw, target) for raw in own]
    return [content for content in kept if content is not None]


def restored(raw: Raw, target: Target) -> Any:
    """One content, not decoded if nothing in it is ours; None if nothing else is left."""
    return _restored(raw.parsed, target) if raw.wrapped else raw.value


def _restored(content: Obj, target: Target) -> Obj | None:
    parts = content.get("parts")
    given = parts if is_array(parts) else [parts]
    clean = [_restored_part(p, target) if is_object(p) else p for p in given]
    if all(new is old for new, old in zip(clean, given, strict=True)):
        return content
    left = [part for part in clean if part]
    sign_first_call(left, target.takes.signs_calls)
    return content | {"parts": left} if left else None


def _restored_part(part: Obj, target: Target) -> Obj:
    """The part itself if it is clean; empty if nothing of it may stay."""
    fields = Fields(part, "")
    result = part
    for name in ("functionCall", "functionResponse"):
        inner = fields.get(name)
        id = inner.get("id") if is_object(inner) else None
        if is_object(inner) and isinstance(id, str) and (own := call_ids.from_client(id)) != id:
            result = result | {fields.key(name): inner | {"id": own}}
    slot = fields.key("thoughtSignature")
    data = part.get(slot)
    if not isinstance(data, str) or (seal := sealed_reasoning.from_slot(data, GEMINI).seal).data == data:
        return result
    if is_own(seal, target):
        return result | {slot: seal.data}
    if fields.get("thought") or fields.get("text") == "":
        return {}
    return {k: v for k, v in result.items() if k != slot}


def sign_first_call(parts: list[Obj], wanted: bool) -> None:
    """Puts a signature on the first call of a model's turn, in place.

    Gemini 3 refuses a turn whose first call has no signature (`wanted`); its siblings need none.
    It is done for every turn, not just for the current one where it must: a part that lost its
    signature as the conversation goes on would spoil the prompt cache from there on.
    """
    call = next((part for part in parts if not _CALLS.isdisjoint(part)), None)
    if call is None or not _SIGNATURES.isdisjoint(call):
        return
    # A late signature comes on a part of its own, with empty text, but belongs to the call.
    late = next((part for part in parts if part.get("text") == "" and "thoughtSignature" in part), None)
    if late is not None:
        call["thoughtSignature"] = late["thoughtSignature"]
        parts.remove(late)
    elif wanted:
        call["thoughtSignature"] = BYPASS
