"""Prompt-cache breakpoints: how many, and how long they live on either family of wires."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.messages import Cache, Media, Message, Part, Text, ToolCall, ToolResult
from .fields import Obj
from .notices import Notices

MOST = 4
"""OpenAI and Anthropic agree: of more than four, the last ones are kept, which span the most."""
_MARK = "prompt_cache_breakpoint"
# OpenAI's breakpoints live half an hour unless they are to live longer.
_LIFETIMES = {"1h": "12h", "12h": "12h"}


def count_marks(messages: Iterable[Message]) -> int:
    """How many there are on these, wherever they stand."""
    return sum([_marks(part) for message in messages for part in message.parts])


def _marks(part: Part) -> int:
    if isinstance(part, ToolResult):
        return (part.cache is not None) + sum([inner.cache is not None for inner in part.parts])
    if isinstance(part, (Text, ToolCall, Media)):
        return part.cache is not None
    return 0


def openai_mark(cache: Cache | None) -> Obj:
    """The member that marks a part of Chat or Responses; nothing for a part without a mark."""
    if cache is None:
        return {}
    lifetime = _LIFETIMES.get(cache.ttl or "")
    mark: Obj = {"mode": "explicit"}
    return {_MARK: mark | ({"ttl": lifetime} if lifetime else {})}


def trim_openai_marks(parts: Iterable[Obj], notices: Notices) -> None:
    """Takes the mark off all but the last few of `parts`, which the writer has just made."""
    marked = [part for part in parts if _MARK in part]
    for part in marked[:-MOST]:
        del part[_MARK]
    surplus(len(marked), notices)


def is_marked(part: Obj) -> bool:
    return _MARK in part


def unmarked(parts: list[Obj], most: int) -> tuple[list[Obj], int]:
    """`parts` without their first marks, `most` of them at the most, and how many those were."""
    result: list[Obj] = []
    off = 0
    for part in parts:
        if _MARK in part and off < most:
            off += 1
            part = {key: value for key, value in part.items() if key != _MARK}
        result.append(part)
    return result, off


def surplus(marks: int, notices: Notices) -> int:
    """How many of the first marks are to be left out."""
    if marks <= MOST:
        return 0
    message = f"only the last {MOST} cache breakpoints of {marks} are kept"
    notices.say("cache-marks-truncated", "messages", message)
    return marks - MOST
