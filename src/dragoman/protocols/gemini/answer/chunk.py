"""A chunk on its way to a client that gets it as the upstream sent it, with the parts that are written."""

from __future__ import annotations

from typing import Any

from ....wire.structs import read_value
from ...common.fields import Obj, is_array, is_object
from .left import answer_place


class Chunk:
    """The members around the parts, and the parts so far."""

    __slots__ = ("_members", "candidate", "parts")

    def __init__(self, members: Obj) -> None:
        self._members = dict(members)
        self.parts: list[Obj] = []
        self.candidate: Obj | None = None
        """The answer's candidate."""
        place = answer_place(members)
        if place is not None:
            candidates = self._members["candidates"] = [*members["candidates"]]
            self.candidate = candidates[place] = {**candidates[place]}

    @property
    def usage(self) -> Any:
        return self._members.get("usageMetadata")

    @usage.setter
    def usage(self, usage: Any) -> None:
        self._members["usageMetadata"] = usage

    @property
    def finished(self) -> bool:
        """Has the answer's candidate its finish reason?"""
        return self.candidate is not None and isinstance(self.candidate.get("finishReason"), str)

    @property
    def blocked(self) -> bool:
        """Was the prompt blocked? Then the chunk has no candidate, and it ends the answer."""
        feedback = self._members.get("promptFeedback")
        if feedback is None or self.candidate is not None:
            return False
        value = read_value(bytes(feedback))
        return is_object(value) and bool(value.get("blockReason"))

    def add_to_candidate(self, fields: Obj) -> None:
        """Set members of the answer's candidate."""
        if self.candidate is None:
            self.candidate = {"index": 0}
            others: Any = self._members.get("candidates")
            self._members["candidates"] = [self.candidate, *(others if is_array(others) else ())]
        self.candidate.update(fields)

    def written(self, identity: Obj) -> Obj:
        """The chunk as the client gets it. `identity`: the names that all chunks have in common."""
        members = self._members
        for name in identity:
            if name in members:
                members[name] = identity[name]
        content = None if self.candidate is None else self.candidate.get("content")
        if is_object(content):
            content = {**content, "parts": self.parts} if self.parts else {**content}
            if "role" in content:
                content["role"] = "model"
            self.add_to_candidate({"content": content})
        elif self.parts:
            self.add_to_candidate({"content": {"parts": self.parts, "role": "model"}})
        return members
