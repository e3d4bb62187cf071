"""Giving an Anthropic upstream a client's messages as they are, but for what Dragoman put there.

Call ids that were escaped for the client become the upstream's own again. Seals that were wrapped
are unwrapped for their issuer and taken out for everybody else, and so are the empty signatures and
indexes that stand where another protocol's answer had none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import Message, Raw, Seal
from ...base import Target
from ...common import call_ids, sealed_reasoning
from ...common.fields import Obj, is_array, is_object
from ..answer.decoder import NAME


def goes_back(seal: Seal | None, target: Target) -> bool:
    """May this upstream see the seal?"""
    return sealed_reasoning.goes_back(seal, NAME, target.issuer)


def thinking_block(text: str, seal: Seal) -> Obj:
    if seal.redacted:
        return {"type": "redacted_thinking", "data": seal.data}
    return {"type": "thinking", "thinking": text, "signature": seal.data}


def restored_messages(messages: Sequence[Message], target: Target) -> list[Any] | None:
    """The client's messages without what is ours; None if they can go out as they are."""
    own = [message.raw for message in messages if message.raw is not None and not stands_at_top(message)]
    if not any(raw.wrapped for raw in own):
        return None
    kept = [restored(raw, target) for raw in own]
    return [message for message in kept if message is not None]


def stands_at_top(message: Message) -> bool:
    """Is it the system prompt that stands beside the messages? Its `raw` is `{"system": …}`."""
    return message.raw is not None and isinstance(message.raw.value, dict)


def restored(raw: Raw, target: Target) -> Any:
    """One message, not decoded if nothing in it is ours; None if nothing else is left."""
    return _restored(raw.parsed, target) if raw.wrapped else raw.value


def _restored(message: Obj, target: Target) -> Obj | None:
    content = message.get("content")
    if not is_array(content):
        return message
    blocks = [_restored_block(b, target) if is_object(b) else b for b in content]
    if all(new is old for new, old in zip(blocks, content, strict=True)):
        return message
    kept = [block for block in blocks if block is not None]
    return message | {"content": kept} if kept else None


def _restored_block(block: Obj, target: Target) -> Obj | None:
    match block.get("type"):
        case "tool_use":
            return _with_upstream_id(block, "id")
        case "tool_result":
            return _with_upstream_id(block, "tool_use_id")
        case "thinking":
            return _restored_thinking(block, block.get("signature"), target)
        case "redacted_thinking":
            return _restored_thinking(block, block.get("data"), target)
        case "text":
            return _restored_text(block)
        case _:
            return block


def _with_upstream_id(block: Obj, key: str) -> Obj:
    upstream = call_ids.from_client(block[key])
    return block if upstream == block[key] else block | {key: upstream}


def _restored_thinking(block: Obj, slot: str | None, target: Target) -> Obj | None:
    if not slot:
        # A Claude refuses an empty signature; models that sign nothing want their thoughts back.
        return None if target.takes.signs_thinking else block
    seal = sealed_reasoning.from_slot(slot, NAME).seal
    if seal.data == slot:
        return block
    return thinking_block(block.get("thinking", ""), seal) if goes_back(seal, target) else None


def _restored_text(block: Obj) -> Obj:
    citations = block.get("citations")
    if not is_array(citations) or not any(is_borrowed(c) for c in citations):
        return block
    own = [citation for citation in citations if not is_borrowed(citation)]
    rest = {key: value for key, value in block.items() if key != "citations"}
    return rest | {"citations": own} if own else rest


def is_borrowed(citation: Any) -> bool:
    """Is it a web source of another protocol? Anthropic's own sources have an encrypted index."""
    return is_object(citation) and citation.get("encrypted_index") == ""
