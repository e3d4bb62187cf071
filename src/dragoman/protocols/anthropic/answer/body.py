"""Write a whole message for an Anthropic client that did not ask for a stream."""

from __future__ import annotations

import msgspec

from ....model.messages import Opaque, Part, Refusal, Search, Text, Thinking, ToolCall
from ...base import AnswerContext
from ...common import sealed_reasoning
from ...common.collect import Answer
from ...common.extras import merged
from ...common.fields import Obj
from ..own import NAME, with_input
from ..searches import search_blocks
from .objects import (
    block_object,
    citation_object,
    members,
    message_object,
    stop_fields,
    usage_object,
    written,
)


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole message."""
    assert answer.end is not None
    ending = dict(members(answer.usage_extras))
    # The members of a `message_delta` are members of the message, and newer.
    kept = merged(ending.pop("delta", {}), members(answer.start.extras, "message"))
    sent = answer.usage if "usage" in ending else None
    searches = sum(type(part) is Search for part in answer.parts)
    usage = usage_object(answer.usage, searches, sent=sent, needed=("input_tokens", "output_tokens"))
    body = message_object(answer.start, context)
    body["content"] = [block for part in answer.parts for block in whole_blocks(part)]
    body |= stop_fields(answer.end, kept)
    body["usage"] = merged(usage, ending.pop("usage", {}))
    for more in (kept, ending, members(answer.end.extras)):
        body = merged(body, more)
    return written(body)


def whole_blocks(part: Part) -> list[Obj]:
    """The content blocks of a part: one, or two for a call with a seal (a thinking block carries it)."""
    if type(part) is Search:
        return list(search_blocks(part))
    block = block_object(part)
    if block is None or _is_empty(part):
        return []
    block = _filled(block, part)
    if isinstance(part, ToolCall) and part.seal is not None:
        signature = sealed_reasoning.to_slot(part.seal, NAME, part.id)
        return [{"type": "thinking", "thinking": "", "signature": signature}, block]
    return [block]


def _is_empty(part: Part) -> bool:
    if isinstance(part, Thinking):
        return not part.text and part.seal is None
    return isinstance(part, Text | Refusal) and not part.text


def _filled(block: Obj, part: Part) -> Obj:
    """The block with the content that a stream sends in deltas."""
    match part:
        case Text(text, _, citations) if citations:
            return {**block, "text": text, "citations": [citation_object(c) for c in citations]}
        case Text(text) | Refusal(text):
            return {**block, "text": text}
        case Thinking(text, seal) if block["type"] == "thinking":
            signature = sealed_reasoning.to_slot(seal, NAME) if seal else ""
            return {**block, "thinking": text, "signature": signature}
        case ToolCall():
            # The text of the arguments is copied, not encoded again: large integers and repeated keys stay as
            # they are.
            return {**block, "input": msgspec.Raw(part.arguments.encode() or b"{}")}
        case Opaque():
            return with_input(block, part.input)
        case _:
            return block
