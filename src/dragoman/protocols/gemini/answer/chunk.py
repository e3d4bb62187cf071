"""A chunk on its way to a client that gets it as the upstream sent it, with the parts that are written."""

from __future__ import annotations

from typing import Any

import msgspec

from ...common.fields import Obj, is_array, is_object
from .left import answer_place


class Chunk:
    """The members around the parts, and the parts so far."""

    __slots__ = ("_members", "parts")

    def __init__(self, members: Obj) -> None:
        self._members = dict(members)
        self.parts: list[Obj] = []

    @property
    def usage(self) -> Any:
        return self._members.get("usageMetadata")

    @usage.setter
    def usage(self, usage: Any) -> None:
        self._members["usageMetadata"] = usage

    @property
    def candidate(self) -> Obj | None:
        """The answer's candidate."""
        place = answer_place(self._members)
        return None if place is None else self._members["candidates"][place]

    @property
    def finished(self) -> bool:
        """Has the answer's candidate its finish reason?"""
        return isinstance((self.candidate or {}).get("finishReason"), str)

    @property
    def blocked(self) -> bool:
        """Was the prompt blocked? Then the chunk has no candidate, and it ends the answer."""
        feedback = self._members.get("promptFeedback")
        if feedback is None or self.candidate is not None:
            return False
        value = msgspec.json.decode(feedback)
        return is_object(value) and bool(value.get("blockReason"))

    def add_to_candidate(self, fields: Obj) -> None:
        """Set members of the answer's candidate."""
        candidates: Any = self._members.get("candidates")
        candidates = [*candidates] if is_array(candidates) else []
        place = answer_place(self._members)
        if place is None:
            place = 0
            candidates.insert(0, {"index": 0})
        candidates[place] = {**candidates[place], **fields}
        self._members["candidates"] = candidates

    def written(self, identity: Obj) -> Obj:
        """The chunk as the client gets it. `identity`: the names that all chunks have in common."""
        for name, value in identity.items():
            if name in self._members:
                self._members[name] = value
        content = (self.candidate or {}).get("content")
        if self.parts:
            content = {**content} if is_object(content) else {"role": "model"}
            content["parts"] = self.parts
        if is_object(content):
            if "role" in content:
                content = {**content, "role": "model"}
            self.add_to_candidate({"content": content})
        return self._members
