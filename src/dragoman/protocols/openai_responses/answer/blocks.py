"""The blocks of an output item, and the small readers of its members."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Citation, Extras, Raw
from ...common.fields import Obj, is_array, is_object
from ..own import NAME
from .forms import Form


class Blocks:
    """What the items of one answer share."""

    def __init__(self, issuer: str, keep: bool) -> None:
        self.issuer = issuer
        self.keep = keep
        """The client speaks this protocol too: keep all members of all frames."""
        self.used = 0
        self.last = Extras(NAME, {})
        """The extras of the last delta. Most deltas of an answer have the same."""


class Block:
    """A block of an item: a content part, the reasoning, or the call."""

    __slots__ = ("at", "cited", "form", "number", "open", "pieces")

    def __init__(self, number: int, form: Form | None, at: int) -> None:
        self.number = number
        self.form = form
        """None: a whole item, or reasoning that has no text so far."""
        self.at = at
        """The index of the newest part. Reasoning may have several parts in one block."""
        self.pieces: list[str] = []
        self.cited = 0
        self.open = True

    def remainder(self, whole: str) -> str:
        """The rest of `whole` that is not emitted yet. Empty if `whole` contradicts the emitted text."""
        emitted = "".join(self.pieces)
        return whole[len(emitted) :] if whole.startswith(emitted) else ""


def entries(members: Obj, name: str) -> list[Obj]:
    given = members.get(name)
    return [entry if is_object(entry) else {} for entry in given] if is_array(given) else []


def as_text(arguments: Any) -> str:
    """Arguments as text. OpenAI's `tool_search_call` has an object, and so have calls of some servers."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def read_citation(annotation: Obj) -> Citation:
    return Citation(
        url=str(annotation.get("url") or ""),
        title=str(annotation.get("title") or annotation.get("filename") or ""),
        start=annotation.get("start_index"),
        end=annotation.get("end_index"),
        raw=Raw(NAME, annotation),
    )
