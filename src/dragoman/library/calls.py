"""The results of `ToolCallBuffer`: partial, complete and failed calls."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..tools.rules import Fix


class PartialCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A call that is still growing: show it, but never run it."""

    id: str
    name: str
    delta: str
    """The new piece of the arguments' JSON text, already mended."""
    pieces: list[str]
    size: int
    arguments: None = None
    mended: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The arguments' JSON text so far. Joined on demand: a copy per event would cost quadratic time."""
        return "".join(self.pieces[: self.size])


class _Finished(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """The provider's id, for the answer; generated only if the provider sent none."""
    name: str
    """The name of the declared tool."""
    text: str = ""
    """The arguments' JSON text after mending."""
    raw: str = ""
    """The arguments' text before mending."""
    mended: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()
    kind: Literal["function", "custom"] = "function"
    """The free text of a custom tool is the argument `input`."""
    given_id: str = ""
    given_name: str = ""
    """The tool's name as the model wrote it."""
    recovered: bool = False
    """The model wrote the call as text, so the provider's history has no such call."""


class CompleteCall(_Finished, frozen=True, kw_only=True):
    """A complete call. It is `valid` if its arguments fit the tool's schema; else `problems` say why."""

    arguments: dict[str, Any]

    @property
    def valid(self) -> bool:
        return not self.problems


class FailedCall(_Finished, frozen=True, kw_only=True):
    """A call that must not run: cut off, unreadable, or a duplicate."""

    reason: Literal["cut", "duplicate"] = "cut"
    arguments: None = None


Finished = CompleteCall | FailedCall
Call = PartialCall | CompleteCall | FailedCall
