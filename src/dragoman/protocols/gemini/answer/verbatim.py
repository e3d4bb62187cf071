"""Check whether a Gemini upstream's chunks may pass unchanged to a Gemini client.

Nearly always they may, because Gemini's streams have few rules: a call has a name and an object as arguments,
a signature is base64, and nothing follows the finish reason.
"""

from __future__ import annotations

import msgspec

from ...common.sealed_reasoning import is_base64
from . import wire

_decode_part = msgspec.json.Decoder(wire.GeminiPart).decode


class VerbatimCheck:
    """Checks the chunks of one answer."""

    def __init__(self) -> None:
        self._finished = False
        self._identity: tuple[str | None, str | None] | None = None
        self._ids: set[str] = set()
        self._output = 0

    def passes(self, chunk: wire.GeminiChunk) -> bool:
        try:
            return self._passes(chunk)
        except ValueError:
            return False  # a strict client would reject the chunk, too

    def _passes(self, chunk: wire.GeminiChunk) -> bool:
        candidates = chunk.candidates or []
        if len(candidates) > 1 or self._finished:
            return False
        identity = (chunk.responseId, chunk.modelVersion)
        self._identity = self._identity or identity
        if not all(identity) or identity != self._identity:
            return False
        if chunk.usageMetadata is not None and not self._adds_up(chunk.usageMetadata):
            return False
        return all(self._candidate(candidate) for candidate in candidates)

    def _candidate(self, candidate: wire.Candidate) -> bool:
        content = candidate.content or wire.GeminiContent()
        self._finished = bool(candidate.finishReason)
        if candidate.finishReason and not candidate.finishReason.isupper():
            return False  # clients compare finish reasons, and Google's are upper case
        if candidate.index or content.role not in ("model", msgspec.UNSET):
            return False
        return all(self._part(_decode_part(bytes(raw))) for raw in content.parts or ())

    def _part(self, part: wire.GeminiPart) -> bool:
        call = part.functionCall
        signature = part.thoughtSignature
        if part.text is None or signature is None or not is_base64(signature or ""):
            return False
        if call is None or call is msgspec.UNSET:
            return call is msgspec.UNSET
        args = bytes(call.args).strip()
        if not call.name or call.partialArgs is not None:
            return False
        # Gemini 2 sends no ids, Gemini 3 sends unique ones. An empty or repeated id would confuse the
        # client's pairing.
        if call.id is not msgspec.UNSET:
            if not call.id or call.id in self._ids:
                return False
            self._ids.add(call.id)
        return args[:1] == b"{"

    def _adds_up(self, usage: wire.UsageMetadata) -> bool:
        if usage.promptTokenCount is msgspec.UNSET:
            return True  # Vertex sends chunks with only `trafficType`
        given = (
            usage.promptTokenCount,
            usage.candidatesTokenCount,
            usage.thoughtsTokenCount,
            usage.toolUsePromptTokenCount,
        )
        counts = [0 if count is msgspec.UNSET else -1 if count is None else count for count in given]
        before, self._output = self._output, counts[1]
        total = usage.totalTokenCount
        return min(counts) >= 0 and self._output >= before and total in (msgspec.UNSET, sum(counts))
