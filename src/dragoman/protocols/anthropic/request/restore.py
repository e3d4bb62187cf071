"""Pass an Anthropic client's messages to an Anthropic upstream, without the values that Dragoman put there.

Escaped call ids become the upstream's own ids again. Wrapped seals are unwrapped for their issuer, and
removed for all other upstreams. Empty signatures and citation indexes are removed, too: Dragoman writes them
if another protocol's answer had none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import Message, Raw, Seal
from ...base import Target
from ...common import call_ids, sealed_reasoning
from ...common.fields import Obj, is_array, is_object
from ..own import NAME, goes_back


def thinking_block(text: str, seal: Seal) -> Obj:
    if seal.redacted:
        return {"type": "redacted_thinking", "data": seal.data}
    return {"type": "thinking", "thinking": text, "signature": seal.data}


def restored_messages(messages: Sequence[Message], target: Target) -> list[Any] | None:
    """The client's messages without Dragoman's values; None if they need no change."""
    own = [
        message.raw for message in messages if message.raw is not None and not is_top_level_system(message)
    ]
    if not any(raw.wrapped for raw in own):
        return None
    kept = [restored(raw, target) for raw in own]
    return [message for message in kept if message is not None]


def is_top_level_system(message: Message) -> bool:
    """Is this the top-level system prompt? Its `raw` is `{"system": …}`."""
    return message.raw is not None and isinstance(message.raw.value, dict)


def restored(raw: Raw, target: Target) -> Any:
    """One message, undecoded if it needs no change; None if nothing of it remains."""
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
        # Claude refuses an empty signature. Other models do not sign, and need their thoughts back.
        return None if target.takes.signs_thinking else block
    seal = sealed_reasoning.from_slot(slot, NAME).seal
    if seal.data == slot:
        return block
    return thinking_block(block.get("thinking", ""), seal) if goes_back(seal, target) else None


def _restored_text(block: Obj) -> Obj:
    citations = block.get("citations")
    if not is_array(citations) or not any(is_foreign_citation(c) for c in citations):
        return block
    own = [citation for citation in citations if not is_foreign_citation(citation)]
    rest = {key: value for key, value in block.items() if key != "citations"}
    # Anthropic does not know the pages of another provider's search.
    return rest | {"citations": own} if own else rest


def is_foreign_citation(citation: Any) -> bool:
    """Is this a web citation of another protocol? Anthropic's own have an encrypted index."""
    return is_object(citation) and citation.get("encrypted_index") == ""
