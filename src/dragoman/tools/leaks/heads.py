"""How a block of leaked markup opens, as data, and matching it while it still arrives."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from .catalog import Catalog
from .readers import Reader

# One of several literals ("" makes it optional), or a run of characters.
Step = tuple[str, ...] | re.Pattern[str]
# Runs with a meaning: the tool's name as the model spells it; a name that is exactly a declared tool's;
# and one of that tool's parameters.
NAME = re.compile(r"[\w.:/-]+")
TAG = re.compile(r"[A-Za-z_][\w-]*")
KEY = re.compile(r"[A-Za-z_$][\w.$-]*")


class Head(msgspec.Struct, frozen=True):
    """How a block opens: the steps in order, then one of `then`.

    The body begins with the step whose index is `body`; without one, after the last step.
    """

    steps: tuple[Step, ...]
    then: tuple[str, ...] = ()
    body: int | None = None

    @property
    def marks(self) -> tuple[str, ...]:
        first = self.steps[0]
        assert isinstance(first, tuple)
        return first


class Opening(msgspec.Struct, frozen=True):
    """A head that stands in the text: where its body begins, and the name it gave."""

    body: int
    name: str


def match_head(head: Head, text: str, tools: Catalog) -> Opening | Literal["no"] | None:
    """The opening; None while `text` may still become one; "no" when it cannot."""
    pos, name, body = 0, "", 0
    for index, step in enumerate(head.steps):
        body = pos if index == head.body else body
        end = _step_end(step, text, pos)
        if not isinstance(end, int):
            return "no" if step is TAG and not tools.begins(text[pos:]) else end
        if not _is_known(step, text[pos:end], name, tools):
            return "no"
        name = text[pos:end] if step is NAME or step is TAG else name
        pos = end
    if head.then and not isinstance(follows := _step_end(head.then, text, pos), int):
        return follows
    return Opening(pos if head.body is None else body, name)


def _is_known(step: Step, word: str, name: str, tools: Catalog) -> bool:
    if step is TAG:
        return word in tools
    return step is not KEY or word in tools.place(name).keys


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
    """One way of writing calls as text; without a reader, the tokens around a message of words.

    `models`: who writes so, and `shape`: how it looks; for the manual. `ends`: the literals that can
    end the body, where `{name}` is the name that the opening gave; none means that the body is a
    bracketed value and ends with its bracket, or that there is no body (`empty`). `closers`: what may
    follow the body, group after group, and belongs to the block. `whole`: it is a call only if nothing
    follows. `bounded`: the body shows where it ends, so the literals may be missing at the answer's end.

    `place`: where in an answer it is looked for. "anywhere" in its text; "line": where a line begins;
    "answer": where the answer begins; "call": right after a call; "message": in both places; "tag":
    where a line begins with a declared tool's name as a tag.
    """

    name: str
    models: str
    shape: str
    heads: tuple[Head, ...]
    read: Reader | None
    ends: tuple[str, ...] = ()
    closers: tuple[tuple[str, ...], ...] = ()
    place: Literal["anywhere", "line", "answer", "call", "message", "tag"] = "anywhere"
    whole: bool = False
    empty: bool = False
    bounded: bool = False
