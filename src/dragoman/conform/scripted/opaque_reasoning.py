"""Reasoning with its opaque half: what each protocol's servers sign, and how they insist on it.

A signature of ours is recognised when it comes back, so a gateway that loses one, or brings one that
somebody else made, gets the same refusal it would get from the real provider.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Iterator, Sequence

from ...model.messages import Message, Part, Request, Seal, Text, Thinking, ToolCall, ToolResult
from .answer_bytes import Scene

_MARK = b"scripted:"
_ENVELOPE = b"ZHJhZ29tYW4x"
"""How the envelope begins in which Dragoman carries a seal through a client: no upstream may see it."""
THOUGHT = "The user wants something. I look at what I was offered, and choose the first thing that fits."


def thoughtful(scene: Scene, parts: Sequence[Part]) -> list[Part]:
    """The parts with a thought before them, signed where this protocol puts its signatures."""
    return scene.wire.server.sign(parts, THOUGHT, seal(scene))


def seal(scene: Scene) -> Seal:
    name = scene.protocol.encode()
    digest = hashlib.sha256(name + b":" + scene.seed.encode()).digest()
    data = base64.b64encode(_MARK + name + b":" + digest).decode()
    return Seal(scene.protocol, *scene.wire.server.seal(data, scene.seed))


def objection(scene: Scene) -> str | None:
    """What is wrong with the signatures in the history, in the provider's words."""
    if _ENVELOPE in scene.body:
        return "a signature came in an envelope that was not made here"
    for number, message in enumerate(scene.request.messages):
        for found in _seals(message):
            if not _ours(found, scene.protocol):
                return f"messages.{number}: Invalid `signature` in `thinking` block"
    return _missing(scene.request) if scene.wire.server.wants_seals else None


def _seals(message: Message) -> Iterator[Seal]:
    for part in message.parts:
        if isinstance(part, (Thinking, ToolCall)) and part.seal is not None:
            yield part.seal


def _ours(found: Seal, protocol: str) -> bool:
    mark = _MARK + protocol.encode()
    whole = len(mark) // 3 * 4  # so much of its base64 is the same whatever follows
    return found.protocol == protocol and base64.b64encode(mark).decode()[:whole] in found.data


def _missing(request: Request) -> str | None:
    """Since the user spoke, every turn with a call needs the reasoning that led to it."""
    said = [number for number, message in enumerate(request.messages) if _is_question(message)]
    recent = request.messages[said[-1] if said else 0 :]
    for role, run in itertools.groupby(recent, lambda message: message.role):
        turn = list(run)
        calls = [p.name for m in turn for p in m.parts if isinstance(p, ToolCall)]
        if role == "assistant" and calls and not any(True for m in turn for _ in _seals(m)):
            return f"Function call `{calls[0]}` is missing its `thought_signature` or `thinking` block"
    return None


def _is_question(message: Message) -> bool:
    has_text = any(isinstance(part, Text) for part in message.parts)
    return message.role == "user" and has_text and not any(isinstance(p, ToolResult) for p in message.parts)
