"""How a block of leaked markup opens, as data, and matching it while it still arrives."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from .readers import Reader

NAME = re.compile(r"[\w.:/-]+")

# One of several literals ("" makes it optional), or a run of characters; NAME is the tool's name.
Step = tuple[str, ...] | re.Pattern[str]


class Head(msgspec.Struct, frozen=True):
    """How a block opens: the steps in order, then one of `then`, where the body begins."""

    steps: tuple[Step, ...]
    then: tuple[str, ...] = ()
    whole: bool = False  # the body begins at the first step: nothing but the call marks it

    @property
    def marks(self) -> tuple[str, ...]:
        first = self.steps[0]
        assert isinstance(first, tuple)
        return first


class Opening(msgspec.Struct, frozen=True):
    """A head that stands in the text: where its body begins, and the name it gave."""

    body: int
    name: str


def match_head(head: Head, text: str) -> Opening | Literal["no"] | None:
    """The opening; None while `text` may still become one; "no" when it cannot."""
    pos, name = 0, ""
    for step in head.steps:
        end = _step_end(step, text, pos)
        if not isinstance(end, int):
            return end
        name = text[pos:end] if step is NAME else name
        pos = end
    if head.then and not isinstance(follows := _step_end(head.then, text, pos), int):
        return follows
    return Opening(0 if head.whole else pos, name)


def _step_end(step: Step, text: str, pos: int) -> int | Literal["no"] | None:
    if isinstance(step, re.Pattern):
        run = step.match(text, pos)
        end = run.end() if run else pos
        if end == len(text):
            return None  # the run may go on
        return end if run else "no"
    left = len(text) - pos
    if any(len(item) > left and text.endswith(item[:left], pos) for item in step):
        return None
    found = next((item for item in step if text.startswith(item, pos)), None)
    return "no" if found is None else pos + len(found)


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One way of writing calls as text.

    `ends`: the literals that can end the body; none means that the body is a bracketed value and
    ends with its bracket. `closers`: what may follow the body, group after group, and belongs to
    the block. `place`: where in an answer it is looked for. `whole`: it is a call only if nothing
    follows.
    """

    name: str
    heads: tuple[Head, ...]
    read: Reader
    ends: tuple[str, ...] = ()
    closers: tuple[tuple[str, ...], ...] = ()
    place: Literal["anywhere", "line", "answer"] = "anywhere"
    whole: bool = False
