"""Giving an Anthropic upstream a client's messages as they are, but for what Dragoman put there.

Call ids that were escaped for the client become the upstream's own again. Seals that were wrapped
are unwrapped for their issuer and taken out for everybody else, and so are the empty signatures and
indexes that stand where another protocol's answer had none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....messages import Seal
from ... import ids, seals
from ...base import Target
from ...fields import Obj, is_array, is_object
from ...history import Values
from ..decoder import NAME
from .models import is_claude

_NOTE = "nothing of ours"
"""So much of a conversation was found to be as an upstream may get it."""


def goes_back(seal: Seal | None, target: Target) -> bool:
    """May this upstream see the seal?"""
    return seals.goes_back(seal, NAME, target.issuer)


def thinking_block(text: str, seal: Seal) -> Obj:
    if seal.redacted:
        return {"type": "redacted_thinking", "data": seal.data}
    return {"type": "thinking", "thinking": text, "signature": seal.data}


def restored_messages(messages: Sequence[Obj], target: Target) -> list[Obj] | None:
    """The messages without what is ours; None if there is nothing of that kind in them."""
    if isinstance(messages, Values) and _has_nothing_of_ours(messages, target):
        return None
    result = [restored(message, target) for message in messages]
    if all(new is old for new, old in zip(result, messages, strict=True)):
        return None
    return [message for message in result if message is not None]


def _has_nothing_of_ours(messages: Values, target: Target) -> bool:
    # In plain messages there may be empty signatures, but no more.
    if is_claude(target.model) and not all(messages.history.thoughts.values()):
        return False
    key = (target.issuer, target.model)
    return messages.untouched(_NOTE, key, lambda message, _: restored(message, target) is message)


def restored(message: Obj, target: Target) -> Obj | None:
    """One message: the same object if nothing in it is ours, None if nothing else is left."""
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
    upstream = ids.from_client(block[key])
    return block if upstream == block[key] else block | {key: upstream}


def _restored_thinking(block: Obj, slot: str | None, target: Target) -> Obj | None:
    if not slot:
        # A Claude refuses an empty signature; models that sign nothing want their thoughts back.
        return None if is_claude(target.model) else block
    seal = seals.from_slot(slot, NAME).seal
    if seal.data == slot:
        return block
    return thinking_block(block.get("thinking", ""), seal) if goes_back(seal, target) else None


def _restored_text(block: Obj) -> Obj:
    citations = block.get("citations")
    if not is_array(citations) or not any(_is_borrowed(c) for c in citations):
        return block
    own = [citation for citation in citations if not _is_borrowed(citation)]
    rest = {key: value for key, value in block.items() if key != "citations"}
    return rest | {"citations": own} if own else rest


def _is_borrowed(citation: Any) -> bool:
    """A web source of another protocol: Anthropic's own have an encrypted index."""
    return is_object(citation) and citation.get("encrypted_index") == ""
