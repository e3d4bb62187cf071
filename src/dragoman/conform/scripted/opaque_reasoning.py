"""Reasoning with signatures, and the check that a client sends them back.

The scripted model recognises its own signatures. A gateway that loses one, or sends one of another issuer,
gets the same error as from the real provider.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Iterator, Sequence

from ...model.messages import Message, Part, Request, Seal, Text, Thinking, ToolCall, ToolResult
from .answer_bytes import ReplyContext

_MARK = b"scripted:"
_ENVELOPE = b"ZHJhZ29tYW4x"
"""The first bytes of Dragoman's envelope for seals, in base64. No upstream may ever receive an envelope."""
THOUGHT = "The user wants something. I look at what I was offered, and choose the first thing that fits."


def thoughtful(context: ReplyContext, parts: Sequence[Part]) -> list[Part]:
    """Add reasoning before the parts, signed where the protocol puts its signatures."""
    return context.wire.server.sign(parts, THOUGHT, seal(context))


def seal(context: ReplyContext) -> Seal:
    name = context.protocol.encode()
    digest = hashlib.sha256(name + b":" + context.seed.encode()).digest()
    data = base64.b64encode(_MARK + name + b":" + digest).decode()
    return Seal(context.protocol, *context.wire.server.seal(data, context.seed))


def objection(context: ReplyContext) -> str | None:
    """The provider's error for a wrong or missing signature in the history; None if all are right."""
    if _ENVELOPE in context.body:
        return "a signature came in an envelope of another issuer"
    for number, message in enumerate(context.request.messages):
        for found in _seals(message):
            if not _ours(found, context.protocol):
                return f"messages.{number}: Invalid `signature` in `thinking` block"
    return _missing(context.request) if context.wire.server.wants_seals else None


def _seals(message: Message) -> Iterator[Seal]:
    for part in message.parts:
        if isinstance(part, (Thinking, ToolCall)) and part.seal is not None:
            yield part.seal


def _ours(found: Seal, protocol: str) -> bool:
    mark = _MARK + protocol.encode()
    whole = len(mark) // 3 * 4  # this much of its base64 does not depend on the bytes that follow
    return found.protocol == protocol and base64.b64encode(mark).decode()[:whole] in found.data


def _missing(request: Request) -> str | None:
    """Every call since the user's last message needs its signed reasoning, as Anthropic and Gemini demand."""
    questions = [number for number, message in enumerate(request.messages) if _is_question(message)]
    recent = request.messages[questions[-1] if questions else 0 :]
    for role, run in itertools.groupby(recent, lambda message: message.role):
        turn = list(run)
        calls = [p.name for m in turn for p in m.parts if isinstance(p, ToolCall)]
        if role == "assistant" and calls and not any(True for m in turn for _ in _seals(m)):
            return f"Function call `{calls[0]}` is missing its `thought_signature` or `thinking` block"
    return None


def _is_question(message: Message) -> bool:
    has_text = any(isinstance(part, Text) for part in message.parts)
    return message.role == "user" and has_text and not any(isinstance(p, ToolResult) for p in message.parts)
