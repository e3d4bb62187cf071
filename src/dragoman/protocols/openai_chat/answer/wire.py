"""The parts of Chat's answers that mean something, as lenient as the servers are sloppy.

Fields are typed `Any` where providers disagree with OpenAI: an index may be a string (or missing), the
arguments an object (or null), the content a list of chunks (Mistral), the error a string.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class Custom(msgspec.Struct, gc=False):
    name: str | None = None
    input: str | None = None


class Call(msgspec.Struct, gc=False):
    index: Any = None
    id: str | None = None
    type: str | None = None
    function: Function | None = None
    custom: Custom | None = None
    extra_content: Any = None


class Delta(msgspec.Struct, gc=False):
    role: str | None = None
    content: Any = msgspec.UNSET
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None
    annotations: Any = None


class Choice(msgspec.Struct, gc=False):
    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    """Null until the end; some servers leave it out."""
    native_finish_reason: Any = None
    """OpenRouter: the provider's own word, beside the one that it was mapped to."""


class Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class Groq(msgspec.Struct, gc=False):
    usage: Usage | None = None


class Chunk(msgspec.Struct, gc=False):
    """A stream's chunk, a whole `chat.completion`, or an error: events apart by what is in it."""

    id: str | None = None
    object: str | None = None
    created: Any = None
    model: str | None = None
    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None
    base_resp: Any = None
    """MiniMax reports failures here, beside `choices: null`."""
    x_groq: Groq | None = None
