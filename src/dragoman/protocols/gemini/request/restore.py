"""Pass a Gemini client's contents to a Gemini upstream, without the values that Dragoman put there.

Escaped call ids become the upstream's own ids again. Wrapped signatures are unwrapped for their issuer, and
removed for all other upstreams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import Message, Raw
from ...base import Target
from ...common import call_ids, sealed_reasoning
from ...common.fields import Obj, is_array, is_object
from ..own import NAME, goes_back
from .keys import Fields
from .read_parts import BYPASS

_SIGNATURES = frozenset({"thoughtSignature", "thought_signature"})
_CALLS = frozenset({"functionCall", "function_call"})


def restored_contents(messages: Sequence[Message], target: Target) -> list[Any] | None:
    """The client's contents without Dragoman's values; None if they need no change."""
    own = [message.raw for message in messages if message.raw is not None and message.role != "system"]
    if not any(raw.wrapped for raw in own):
        return None
    kept = [restored(raw, target) for raw in own]
    return [content for content in kept if content is not None]


def restored(raw: Raw, target: Target) -> Any:
    """One content, undecoded if it needs no change; None if nothing of it remains."""
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
    """The part without Dragoman's values; the same part if it has none, empty if nothing remains."""
    fields = Fields(part, "")
    result = part
    for name in ("functionCall", "functionResponse"):
        inner = fields.get(name)
        id = inner.get("id") if is_object(inner) else None
        if is_object(inner) and isinstance(id, str) and (own := call_ids.from_client(id)) != id:
            result = result | {fields.key(name): inner | {"id": own}}
    slot = fields.key("thoughtSignature")
    data = part.get(slot)
    if not isinstance(data, str) or (seal := sealed_reasoning.from_slot(data, NAME).seal).data == data:
        return result
    if goes_back(seal, target):
        return result | {slot: seal.data}
    # Another model thought this. Its text is no use to this model, and Gemini refuses a foreign signature.
    if fields.get("thought") or fields.get("text") == "":
        return {}
    return {k: v for k, v in result.items() if k != slot}


def sign_first_call(parts: list[Obj], wanted: bool) -> None:
    """Put a signature on the first call of a model turn, in place.

    Gemini 3 refuses a turn whose first call has no signature (`wanted`); parallel calls need none.
    Only the current turn must have it, but all turns get it: otherwise a part would change when its turn is
    no longer the current one, and the prompt cache would be invalid from there on.
    """
    call = next((part for part in parts if not _CALLS.isdisjoint(part)), None)
    if call is None or not _SIGNATURES.isdisjoint(call):
        return
    # A late signature is on a separate part with empty text, but belongs to the call.
    late = next((part for part in parts if part.get("text") == "" and "thoughtSignature" in part), None)
    if late is not None:
        call["thoughtSignature"] = late["thoughtSignature"]
        parts.remove(late)
    elif wanted:
        call["thoughtSignature"] = BYPASS
