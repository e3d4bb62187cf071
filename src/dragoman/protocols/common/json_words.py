"""Ask for JSON in the prompt: for upstreams without a JSON mode, or whose JSON mode requires the word."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.messages import Format, Message, Text, leading_system

RULE = "json-mode-emulated"


def in_words(wanted: Format) -> str:
    """The instruction that stands for `wanted`."""
    words = "Answer with JSON only: no other text, no code fence."
    if wanted.kind == "schema":
        schema = msgspec.json.encode(wanted.schema or {}).decode()
        words += f" It must be valid against this JSON Schema:\n{schema}"
    return words


def instructed(messages: Sequence[Message], words: str) -> tuple[Message, ...]:
    """`messages` with an instruction at the end of the system prompt, where it keeps the cached prefix."""
    at = leading_system(messages)
    return (*messages[:at], Message("system", (Text(words),)), *messages[at:])


def says_json(messages: Sequence[Message]) -> bool:
    """Does the conversation contain the word? OpenAI and DeepSeek refuse JSON mode without it."""
    texts = (part.text for message in messages for part in message.parts if isinstance(part, Text))
    return any("json" in text.lower() for text in texts)


def has_object_root(wanted: Format) -> bool:
    """Is the answer an object? OpenAI refuses any other schema."""
    return (wanted.schema or {}).get("type") == "object"
