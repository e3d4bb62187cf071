"""The opening of a leaked call as data, and how it is matched while it arrives."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from .catalog import Catalog
from .readers import Reader

# One of several literals ("" makes it optional), or a run of characters.
Step = tuple[str, ...] | re.Pattern[str]
# Runs with a meaning: a tool's name as the model spells it, the exact name of a declared tool, and the name
# of one of its parameters.
NAME = re.compile(r"[\w.:/-]+")
TAG = re.compile(r"[A-Za-z_][\w-]*")
KEY = re.compile(r"[A-Za-z_$][\w.$-]*")


class Head(msgspec.Struct, frozen=True):
    """How a block opens: the steps in order, then one of `then`.

    The body begins with the step at index `body`, or after the last step. `outside`: the head begins a
    message, so it counts only outside a message of text whose beginning was found.
    """

    steps: tuple[Step, ...]
    then: tuple[str, ...] = ()
    body: int | None = None
    outside: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        first = self.steps[0]
        assert isinstance(first, tuple)
        return first


class Opening(msgspec.Struct, frozen=True):
    """A head that was found: where the body begins, and the tool name in the head."""

    body: int
    name: str


def match_head(head: Head, text: str, tools: Catalog) -> Opening | Literal["no"] | None:
    """The opening. None while `text` may still become one; "no" if it cannot."""
    pos, name, body = 0, "", 0
    for index, step in enumerate(head.steps):
        body = pos if index == head.body else body
        end = _step_end(step, text, pos)
        if not isinstance(end, int):
            return "no" if step is TAG and not tools.has_prefix(text[pos:]) else end
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
    return step is not KEY or word in tools.parameters(name).keys


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


class LeakFormat(msgspec.Struct, frozen=True, kw_only=True):
    """One way of writing calls as text.

    - `models`, `shape`: the models that use the format, and how it looks. For the manual.
    - `read`: the reader of the body. None: the block is not a call but the tokens around a message of text.
    - `ends`: the literals that may end the body; `{name}` stands for the tool name in the opening. Without
      any, the body is a bracketed value that ends with its bracket, or there is no body (`empty`).
    - `closers`: groups of literals that may follow the body, in this order, and belong to the block.
    - `whole`: the block is a call only if no text follows.
    - `bounded`: the body itself shows where it ends, so `ends` may be missing at the end of the answer.
    - `place`: where in an answer the format is looked for. "anywhere": in all text. "line": at the beginning
      of a line. "answer": at the beginning of the answer. "call": directly after a call. "message": as
      "answer" and "call". "tag": at the beginning of a line, with the name of a declared tool as the tag.
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
