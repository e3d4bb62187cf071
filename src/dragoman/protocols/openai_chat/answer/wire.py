"""The members of Chat answers that the decoder reads.

A member is `Any` if some server's type differs from OpenAI's: the index may be a string or missing, the
arguments an object or null, the content a list (Mistral), the error a string.
"""

from __future__ import annotations

from typing import Any

import msgspec


class FunctionDelta(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class CustomDelta(msgspec.Struct, gc=False):
    name: str | None = None
    input: str | None = None


class CallDelta(msgspec.Struct, gc=False):
    index: Any = None
    id: str | None = None
    type: str | None = None
    function: FunctionDelta | None = None
    custom: CustomDelta | None = None
    extra_content: Any = None


class ChatDelta(msgspec.Struct, gc=False):
    role: str | None = None
    content: Any = msgspec.UNSET
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    reasoning_text: Any = None
    """GitHub Copilot."""
    thinking: Any = None
    """Servers that name the field like Ollama's own protocol."""
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: FunctionDelta | None = None
    annotations: Any = None


class Choice(msgspec.Struct, gc=False):
    index: int | None = None
    delta: ChatDelta | None = None
    message: ChatDelta | None = None
    finish_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    """Null before the end. Some servers leave it out."""
    native_finish_reason: Any = None
    """OpenRouter: the finish reason of the provider, before OpenRouter mapped it."""
    error: Any = None
    """OpenRouter: why the provider ended this choice."""


class ChatTokenDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class ChatUsage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: ChatTokenDetails | None = None
    completion_tokens_details: ChatTokenDetails | None = None


class Groq(msgspec.Struct, gc=False):
    usage: ChatUsage | None = None


class ChatChunk(msgspec.Struct, gc=False):
    """A chunk of a stream, a whole `chat.completion`, or an error. The members tell which."""

    id: str | None = None
    object: str | None = None
    created: Any = None
    model: str | None = None
    choices: list[Choice] | None = None
    usage: ChatUsage | None = None
    error: Any = None
    base_resp: Any = None
    """MiniMax reports failures here, together with `choices: null`."""
    x_groq: Groq | None = None
