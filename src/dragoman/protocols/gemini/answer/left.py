"""What a chunk holds beside what the decoder understands. A client that speaks Gemini too gets it back.

A chunk becomes a `Carried` with the members around its parts. Its counts, ids and sources stay there too, so
the client gets them as they came. The members of a part are with the event of that part: in `part.extras`
they have the form of a part, in the `extras` of an event that of a chunk with one part.

Members stay JSON: only the objects on the way to the parts are decoded, so numbers keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.errors import UpstreamError
from ....model.messages import Extras
from ....wire.structs import present, without_lone_surrogates
from ...common.fields import Obj, is_array, is_object
from ..own import NAME
from . import wire

_NULLS = ("text", "functionCall", "thoughtSignature")
"""Members that clients read without a check for null."""
_ABSENT = msgspec.Raw(b"null")

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def members_of(data: bytes | msgspec.Raw) -> dict[str, Any]:
    """The members of a JSON object. They stay JSON. Raises UpstreamError for any other value."""
    try:
        return _decode_members(data)
    except ValueError:
        pass
    try:
        return _decode_members(without_lone_surrogates(bytes(data)))
    except msgspec.ValidationError as error:
        raise UpstreamError(f"the upstream sent an event that cannot be read: {error}") from None


class LeftMembers:
    """The members of one chunk. Its decoder takes out what it understands."""

    __slots__ = ("candidate", "chunk", "parts")

    def __init__(self, data: bytes, candidates: Sequence[wire.Candidate], place: int | None) -> None:
        """`place`: the place of the answer in the list of candidates."""
        self.chunk = members_of(data)
        self.chunk.pop("error", None)
        self.candidate: Obj = {}
        self.parts: list[Obj] = []
        if place is not None:
            items: list[Any] = _decode_items(self.chunk["candidates"])
            self.candidate = items[place] = members_of(items[place])
            self.chunk["candidates"] = items
            self._take_parts()
            if candidates[place].finishReason:
                del self.candidate["finishReason"]

    def _take_parts(self) -> None:
        if not present(self.candidate.get("content", _ABSENT)):
            return
        content = self.candidate["content"] = members_of(self.candidate["content"])
        if present(content.get("parts", _ABSENT)):
            self.parts = [members_of(part) for part in _decode_items(content["parts"])]
            content["parts"] = []

    def drop_null_counts(self) -> None:
        """Leave out counts that are null: clients read them as numbers."""
        usage = members_of(self.chunk["usageMetadata"])
        counts = {key: value for key, value in usage.items() if key not in wire.COUNTS or present(value)}
        self.chunk["usageMetadata"] = counts

    @property
    def extras(self) -> Extras:
        """The members around the parts."""
        return Extras(NAME, self.chunk)


def text_members(left: Obj, part: wire.GeminiPart) -> Obj:
    """What is left of a part with text."""
    return _without(left, ("text", "thought") if part.thought else ("text",))


def call_members(left: Obj, signature: str | None) -> Obj:
    """What is left of a part with a call."""
    call = _without(members_of(left["functionCall"]), wire.GeminiCall.__struct_fields__)
    rest = _without(left, ("functionCall", "thoughtSignature") if signature else ("functionCall",))
    return {"functionCall": call, **rest} if call else rest


def media_members(left: Obj, key: str) -> Obj:
    """What is left of a part with an image or a file."""
    blob = _without(members_of(left[key]), wire.Blob.__struct_fields__)
    rest = _without(left, (key,))
    return {key: blob, **rest} if blob else rest


def other_members(left: Obj) -> Obj:
    """All members of a part that only Gemini knows."""
    return _without(left, ())


def _without(members: Obj, known: Sequence[str]) -> Obj:
    return {
        key: value
        for key, value in members.items()
        if key not in known and (key not in _NULLS or present(value))
    }


def in_chunk(part: Obj) -> Extras:
    """The members of one part, in the form of a chunk."""
    return Extras(NAME, {"candidates": [{"content": {"parts": [part]}}]})


def part_in(members: Obj) -> Obj | None:
    """The one part of a chunk that `in_chunk` made; None if `members` are those around the parts."""
    place = answer_place(members)
    content: Any = None if place is None else members["candidates"][place].get("content")
    parts = content.get("parts") if is_object(content) else None
    return parts[0] if is_array(parts) and parts else None


def answer_place(chunk: Obj) -> int | None:
    """The place of the answer in the list of candidates. The other ones are not decoded."""
    candidates = chunk.get("candidates")
    if not is_array(candidates) or not candidates:
        return None
    if type(candidates[0]) is dict:
        return 0
    return next((place for place, candidate in enumerate(candidates) if is_object(candidate)), None)
