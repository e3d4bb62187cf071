"""The members of Gemini's answers that the decoder reads. A chunk and a whole body have the same form."""

from __future__ import annotations

from typing import Any

import msgspec

Count = int | msgspec.UnsetType | None


class GeminiCall(msgspec.Struct, gc=False):
    """`args` stays raw, which keeps its digits and key order."""

    name: str | None = None
    id: str | msgspec.UnsetType | None = msgspec.UNSET
    args: msgspec.Raw = msgspec.Raw()
    partialArgs: list[dict[str, Any]] | None = None
    willContinue: bool | None = None


class Blob(msgspec.Struct, gc=False):
    mimeType: str = ""
    data: str | None = None
    fileUri: str | None = None


class GeminiPart(msgspec.Struct, gc=False):
    text: str | msgspec.UnsetType | None = msgspec.UNSET
    thought: bool | None = None
    thoughtSignature: str | msgspec.UnsetType | None = msgspec.UNSET
    functionCall: GeminiCall | msgspec.UnsetType | None = msgspec.UNSET
    inlineData: Blob | None = None
    fileData: Blob | None = None


class GeminiContent(msgspec.Struct, gc=False):
    parts: list[msgspec.Raw] | None = None
    role: str | msgspec.UnsetType | None = msgspec.UNSET


class Candidate(msgspec.Struct, gc=False):
    index: int | None = None
    content: GeminiContent | None = None
    finishReason: str | None = None
    finishMessage: str | None = None
    citationMetadata: Any = None
    groundingMetadata: Any = None


class UsageMetadata(msgspec.Struct, gc=False):
    promptTokenCount: Count = msgspec.UNSET
    cachedContentTokenCount: Count = msgspec.UNSET
    candidatesTokenCount: Count = msgspec.UNSET
    thoughtsTokenCount: Count = msgspec.UNSET
    toolUsePromptTokenCount: Count = msgspec.UNSET
    totalTokenCount: Count = msgspec.UNSET


COUNTS = UsageMetadata.__struct_fields__


class GeminiChunk(msgspec.Struct, gc=False):
    candidates: list[Candidate] | None = None
    promptFeedback: dict[str, Any] | None = None
    usageMetadata: UsageMetadata | None = None
    modelVersion: str | None = None
    responseId: str | None = None
    error: Any = None
