"""A conversation that goes on, for who writes it as neutral messages: what was written is JSON already.

It is cut where whatever follows is written the same, whatever stands before: between what the user says, a
result among it, and what the model says, a call among it. Both are sure to be written, so no turn of the one
becomes one with a turn of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from ..messages import Notice, ToolCall, ToolResult
from .fields import Obj
from .history import History
from .listed import LATELY
from .notices import Notices
from .pieces import Whole, grown

S = TypeVar("S")

_encode = msgspec.json.Encoder().encode


class Beginning(msgspec.Struct, Generic[S], frozen=True):
    """How a conversation was written, up to a place where nothing is left open."""

    count: int
    """So many messages of the history are in that."""
    json: list[memoryview]
    """Each with the comma before its first message."""
    said: tuple[tuple[Notice, ...], ...]
    """What had to be said about them, in each place where it is said."""
    state: S
    """What the writer knows by then. It is never changed, but copied."""
    looked: int = 0
    """Up to this message, there is no other such place behind it."""


class Stretches(Generic[S]):
    """Writes histories in stretches that do not depend on each other but for what the writer knows."""

    def __init__(self, name: str, copied: Callable[[S], S]) -> None:
        """`name`: under which it is noted in a history what was written."""
        self._name = name
        self._copied = copied

    def write(
        self,
        history: History,
        key: Any,
        begun: Beginning[S],
        notices: Sequence[Notices],
        write: Callable[[int, int, S], list[Obj]],
    ) -> tuple[list[memoryview], list[Obj]]:
        """All of `history` behind what is `begun`: what is settled as JSON, and the rest as it is written.

        `key` is all that decides how a message is. `write` is given from which message to which, and what is
        known by then, to which it adds; what has to be said it says in `notices`.
        """
        known, before = history.noted(self._name, key)
        if before is None or before.count - len(history.leading) > known:
            before = begun
        for one, said in zip(notices, before.said, strict=False):
            one.again(said)
        looked, stop = min(before.looked, known + len(history.leading)), len(history) - LATELY
        place = _settled(history, max(before.count, looked), stop)
        # Several turns at a time, unless it is the first one or none is likely to follow soon.
        if place and (before is begun or place > before.count + LATELY or place < stop - LATELY):
            state = self._copied(before.state)
            written = _encode(write(before.count, place, state))
            json = grown(before.json, (b",", memoryview(written)[1:-1]))
            before = Beginning(place, json, tuple(one.all() for one in notices), state, stop)
            history.note(self._name, key, before, marks=True)
        elif not place and stop > looked + LATELY:
            before = msgspec.structs.replace(before, looked=stop)
            history.note(self._name, key, before, marks=True)
        return before.json, write(before.count, len(history), self._copied(before.state))


def listed(settled: Sequence[memoryview], late: list[Obj]) -> list[Obj] | Whole:
    """What is settled, and the rest behind it."""
    if not settled:
        return late
    first, *others = settled
    behind = (b",", memoryview(_encode(late))[1:]) if late else (b"]",)
    return Whole([b"[", first[1:], *others, *behind])


def _settled(history: History, start: int, stop: int) -> int:
    """The last place before `stop`, but behind `start`, at which the conversation may be cut; 0 if there is
    none."""
    for place in range(stop, max(start, len(history.leading)), -1):
        if _is_sure(history, range(place, len(history)), by_model=True) and _is_sure(
            history, range(place - 1, len(history.leading) - 1, -1), by_model=False
        ):
            return place
    return 0


def _is_sure(history: History, places: range, *, by_model: bool) -> bool:
    """Is there a call or a result in these messages, before the other side speaks?"""
    for index in places:
        plain = history.plain(index)
        if plain is None:
            message = history[index]
            if (message.role == "assistant") is not by_model:
                return False
            if any(isinstance(part, (ToolCall, ToolResult)) for part in message.parts):
                return True
        elif (plain.kind == "said") is not by_model:
            return False
        elif plain.kind != "told" and _is_paired(plain.content):
            return True
    return False


def _is_paired(content: Any) -> bool:
    return any(part.kind in ("call", "result") for part in content)
