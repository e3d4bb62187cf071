"""Prompt-cache breakpoints: their number, and their lifetimes at Anthropic and OpenAI."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ...model.messages import Cache, Media, Message, Opaque, Part, Request, Text, ToolCall, ToolResult
from ..facts import CacheMark
from .fields import Obj
from .notices import Notices

MAX_BREAKPOINTS = 4
"""OpenAI and Anthropic allow four. The last four are kept: they cover the longest prefixes."""
_MARK = "prompt_cache_breakpoint"
_MEMBER = b'"cache_control"'
OPENAI_MARK = CacheMark(_MARK, seconds=1800)
# Anthropic's `1h` becomes OpenAI's `12h`. OpenAI's default is 30 minutes, which covers Anthropic's `5m`.
_LIFETIMES = {"1h": "12h", "12h": "12h"}


def count_marks(messages: Iterable[Message]) -> int:
    """The number of breakpoints in these messages, also inside tool results."""
    return sum([_marks(part) for message in messages for part in message.parts])


def marks_nothing(request: Request) -> bool:
    """Does the request have no cache marks? A client that sets some knows best where they belong."""
    if request.settings.cache is not None or any(tool.cache is not None for tool in request.tools):
        return False
    if count_marks(request.messages):
        return False
    # Opaque blocks are not decoded, so a mark in them is found by its name.
    parts = [part for message in request.messages for part in message.parts if isinstance(part, Opaque)]
    return not any(_MEMBER in msgspec.json.encode(part.raw.value) for part in parts)


def note_added(field: str, notices: Notices) -> None:
    """Note that Dragoman marks a prompt for the cache."""
    notices.note("cache-marks-added", "settings.cache", f"the client marks nothing for the cache: {field}")


def _marks(part: Part) -> int:
    if isinstance(part, ToolResult):
        return (part.cache is not None) + sum([inner.cache is not None for inner in part.parts])
    if isinstance(part, (Text, ToolCall, Media)):
        return part.cache is not None
    return 0


def openai_mark(cache: Cache | None) -> Obj:
    """The member that marks a part in Chat or Responses. Empty for a part without a breakpoint."""
    if cache is None:
        return {}
    lifetime = _LIFETIMES.get(cache.ttl or "")
    mark: Obj = {"mode": "explicit"}
    return {_MARK: mark | ({"ttl": lifetime} if lifetime else {})}


def trim_openai_marks(parts: Iterable[Obj], notices: Notices) -> None:
    """Remove all breakpoints except the last four. `parts` must be new objects: this changes them."""
    marked = [part for part in parts if _MARK in part]
    for part in marked[:-MAX_BREAKPOINTS]:
        del part[_MARK]
    surplus(len(marked), notices)


def is_marked(part: Obj | msgspec.Raw) -> bool:
    """Has a part a breakpoint? A part that stays JSON has none of Dragoman's."""
    return isinstance(part, dict) and _MARK in part


def unmarked(parts: list[Obj], most: int) -> tuple[list[Obj], int]:
    """Copy `parts` without their first breakpoints, at most `most`. Returns the number removed, too."""
    result: list[Obj] = []
    removed = 0
    for part in parts:
        if is_marked(part) and removed < most:
            removed += 1
            part = {key: value for key, value in part.items() if key != _MARK}
        result.append(part)
    return result, removed


def surplus(marks: int, notices: Notices) -> int:
    """The number of leading breakpoints to remove. Adds a notice if there are any."""
    if marks <= MAX_BREAKPOINTS:
        return 0
    message = f"only the last {MAX_BREAKPOINTS} cache breakpoints of {marks} are kept"
    notices.warn("cache-marks-truncated", "messages", message)
    return marks - MAX_BREAKPOINTS
