"""Reasoning with its opaque half: what each protocol's servers sign, and how they insist on it.

A signature of ours is recognised when it comes back, so a gateway that loses one, or brings one that
somebody else made, gets the same refusal it would get from the real provider.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

import msgspec

from ..messages import Message, Part, Request, Seal, Text, Thinking, ToolCall, ToolResult
from .speech import Scene

_MARK = b"scripted:"
_ENVELOPE = b"ZHJhZ29tYW4x"
"""How the envelope begins in which Dragoman carries a seal through a client: no upstream may see it."""
THOUGHT = "The user wants something. I look at what I was offered, and choose the first thing that fits."


def thoughtful(scene: Scene, parts: Sequence[Part]) -> list[Part]:
    """The parts with a thought before them, signed where this protocol puts its signatures."""
    if scene.protocol != "gemini":
        return [Thinking(THOUGHT, seal(scene.protocol, scene.seed)), *parts]
    called = any(isinstance(part, ToolCall) for part in parts)
    signature = seal(scene.protocol, scene.seed)
    if called:
        # Gemini signs the first call of a turn.
        first = next(part for part in parts if isinstance(part, ToolCall))
        parts = [msgspec.structs.replace(p, seal=signature) if p is first else p for p in parts]
        return [Thinking(THOUGHT), *parts]
    return [Thinking(THOUGHT), *parts, Thinking(seal=signature)]


def seal(protocol: str, seed: str) -> Seal:
    digest = hashlib.sha256(f"{protocol}:{seed}".encode()).digest()
    data = base64.b64encode(_MARK + protocol.encode() + b":" + digest).decode()
    if protocol == "openai-chat":
        # As OpenRouter has it: a list of details that comes back as it is.
        detail = {"type": "reasoning.encrypted", "data": data, "format": "scripted-v1"}
        return Seal(protocol, msgspec.json.encode([detail]).decode())
    return Seal(protocol, data, f"rs_{seed}" if protocol == "openai-responses" else None)


def objection(scene: Scene) -> str | None:
    """What is wrong with the signatures in the history, in the provider's words."""
    if _ENVELOPE in scene.body:
        return "a signature came in an envelope that was not made here"
    for number, message in enumerate(scene.request.messages):
        for found in _seals(message):
            if not _ours(found, scene.protocol):
                return f"messages.{number}: Invalid `signature` in `thinking` block"
    return _missing(scene.request) if scene.protocol != "openai-chat" else None


def _seals(message: Message) -> Iterator[Seal]:
    for part in message.parts:
        if isinstance(part, Thinking | ToolCall) and part.seal is not None:
            yield part.seal


def _ours(found: Seal, protocol: str) -> bool:
    mark = base64.b64encode(_MARK + protocol.encode()).decode()[:16]
    return found.protocol == protocol and mark in found.data


def _missing(request: Request) -> str | None:
    """Since the user spoke, every turn with a call needs the reasoning that led to it."""
    signed = True
    called: str | None = None
    for message in request.messages:
        if message.role == "assistant":
            signed = any(True for _ in _seals(message)) or (signed and called is not None)
            called = next((p.name for p in message.parts if isinstance(p, ToolCall)), called)
        elif any(isinstance(p, Text) for p in message.parts) and not _has_result(message):
            signed, called = False, None
    if called is None or signed:
        return None
    return f"Function call `{called}` is missing its `thought_signature` or its `thinking` block"


def _has_result(message: Message) -> bool:
    return any(isinstance(part, ToolResult) for part in message.parts)
