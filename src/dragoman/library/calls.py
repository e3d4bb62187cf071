"""What `ToolCallBuffer` gives out: a call that grows, one that is whole, one that failed."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..tools.rules import Fix


class PartialCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A call that is still growing: for showing, never for running."""

    id: str
    name: str
    delta: str
    """What is new in the arguments' JSON text, mended where that is certain."""
    pieces: list[str]
    size: int
    arguments: None = None
    mended: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The arguments' JSON text so far. Joined when asked for: each event would else copy all of it."""
        return "".join(self.pieces[: self.size])


class _Finished(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """The provider's own id, to answer with; made up only where the provider gave none."""
    name: str
    """The declared tool that is meant."""
    text: str = ""
    """The arguments' JSON text, as mended."""
    raw: str = ""
    """The arguments' text as the model sent it."""
    mended: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()
    kind: Literal["function", "custom"] = "function"
    """A custom tool's free text stands in the argument `input`."""
    given_id: str = ""
    given_name: str = ""
    """The tool's name as the model said it."""
    recovered: bool = False
    """The model wrote the call as text, so it has no place in the provider's history."""


class CompleteCall(_Finished, frozen=True, kw_only=True):
    """A whole call. It is `valid` when it fits the schema of a declared tool; `problems` say why not."""

    arguments: dict[str, Any]

    @property
    def valid(self) -> bool:
        return not self.problems


class FailedCall(_Finished, frozen=True, kw_only=True):
    """A call that must not be run: cut off, unreadable, or the same as another one."""

    reason: Literal["cut", "duplicate"] = "cut"
    arguments: None = None


Finished = CompleteCall | FailedCall
Call = PartialCall | CompleteCall | FailedCall
