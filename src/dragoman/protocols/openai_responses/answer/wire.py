"""The members of Responses answers that the decoder reads: stream events, items, a whole response."""

from __future__ import annotations

from typing import Any

import msgspec


class ItemContent(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    annotations: list[dict[str, Any]] | None = None


class AnswerItem(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Any = None
    input: Any = None
    content: list[ItemContent] | None = None
    summary: list[ItemContent] | None = None
    encrypted_content: str | None = None
    status: str | None = None
    role: str | None = None


class ResponsesTokenDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class ResponsesUsage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: ResponsesTokenDetails | None = None
    output_tokens_details: ResponsesTokenDetails | None = None


class ResponseObject(msgspec.Struct, gc=False):
    id: str | None = None
    object: str | None = None
    created_at: Any = None
    model: str | None = None
    status: str | None = None
    output: list[msgspec.Raw] | None = None
    usage: ResponsesUsage | None = None
    error: Any = None
    incomplete_details: dict[str, Any] | None = None


class FramePosition(msgspec.Struct, gc=False):
    """The members of an event that give its position in the stream."""

    type: str = ""
    sequence_number: int | None = None
    output_index: int | None = None
    item: msgspec.Raw = msgspec.Raw()


class ResponsesEvent(msgspec.Struct, gc=False):
    """An event of a stream. `object` is set if it is a whole response instead."""

    type: str = ""
    object: str | None = None
    sequence_number: int | None = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    item_id: str | None = None
    delta: Any = None
    text: Any = None
    refusal: Any = None
    arguments: Any = None
    input: Any = None
    annotation: Any = None
    part: Any = None
    item: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
    error: Any = None
