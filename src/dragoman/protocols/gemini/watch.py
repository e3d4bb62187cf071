"""May a Gemini upstream's chunk go to a Gemini client as it is?

Nearly always: Gemini has little grammar. Calls need a name and an object for arguments, and nothing may
follow the finish reason but usage. Clients of ours also rely on call ids, so a call without one is
rebuilt.
"""

from __future__ import annotations

import msgspec

from . import types

_decode_part = msgspec.json.Decoder(types.Part).decode


class Watch:
    """Follows one answer."""

    def __init__(self) -> None:
        self._finished = False
        self._ids: set[str] = set()

    def passes(self, chunk: types.Chunk) -> bool:
        try:
            return self._passes(chunk)
        except ValueError:
            return False  # a strict client would refuse it as well

    def _passes(self, chunk: types.Chunk) -> bool:
        candidates = chunk.candidates or []
        if len(candidates) > 1 or (candidates and self._finished):
            return False
        for candidate in candidates:
            parts = candidate.content.parts if candidate.content else None
            if not all(self._part(bytes(raw)) for raw in parts or ()):
                return False
            self._finished = bool(candidate.finishReason)
        return bool(chunk.responseId and chunk.modelVersion)

    def _part(self, raw: bytes) -> bool:
        call = _decode_part(raw).functionCall
        if call is None:
            return True
        args = bytes(call.args).strip()
        if not call.name or not call.id or call.id in self._ids or call.partialArgs is not None:
            return False
        self._ids.add(call.id)
        return args[:1] == b"{"
