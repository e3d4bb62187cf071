"""Keep what is left of Chat chunks, for a client that speaks Chat too."""

from __future__ import annotations

import msgspec

from ....model.events import ArgumentsDelta, BlockEnd, Carried, Event, TextDelta, UsageSeen
from ....model.messages import Extras
from ...common.extras import kept
from ...common.fields import Obj, is_array, is_object
from ..own import NAME

NO_MEMBERS = Extras(NAME, {})
_OF_ERROR = frozenset({"message", "type", "param", "code"})
_OF_CHUNK = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})


class LeftMembers:
    """The members of the chunks of one answer that are not understood."""

    __slots__ = ("_before_start", "_last", "of_end")

    def __init__(self) -> None:
        self.of_end: Extras | None = None
        """What is left of the chunk with the finish reason."""
        self._last: Extras | None = None
        """What was left of the last chunk. Most chunks of an answer leave the same."""
        self._before_start: list[Extras] = []
        """What is left of chunks before the answer. Azure's first chunk judges the prompt."""

    def keep_before_start(self, chunk: Obj) -> None:
        """Keep a chunk that comes before the answer."""
        left = self._take(chunk)
        if left is not None:
            self._before_start.append(left)

    def keep(self, chunk: Obj, out: list[Event], *, began: bool, finished: bool) -> None:
        """Keep what is left of a chunk: with one of its events, or with the end of the answer."""
        left = self._take(chunk)
        if began:
            if left is not None:
                left = _without_usage(left, out)
                out[0] = msgspec.structs.replace(out[0], extras=left)
            out[1:1] = map(Carried, self._before_start)
        elif left is not None:
            if finished:
                self._keep_for_end(left, out)
            else:
                _attach(left, out)

    def _take(self, chunk: Obj) -> Extras | None:
        """What is left of a chunk, after the decoder took out what it understands."""
        chunk.pop("id", None)
        chunk.pop("object", None)
        chunk.pop("created", None)
        chunk.pop("model", None)
        choices = chunk.get("choices")
        if choices and not choices[0] and len(choices) == 1:
            del chunk["choices"]
        last = self._last
        if last is None or last.members != chunk:
            self._last = last = kept(NAME, chunk)
        return last

    def _keep_for_end(self, left: Extras, out: list[Event]) -> None:
        """Keep what is left of the chunk with the finish reason. The delta's members go with its event."""
        if out and is_array(choices := left.members.get("choices")) and (delta := choices[0].get("delta")):
            _attach(Extras(NAME, {"choices": [{"delta": delta}]}), out)
            choice = {key: value for key, value in choices[0].items() if key != "delta"}
            left = Extras(NAME, {**left.members, "choices": [choice, *choices[1:]]})
        if self.of_end is not None:
            out.append(Carried(self.of_end))  # OpenRouter sends the finish reason twice
        self.of_end = left


def left_of_failure(chunk: Obj) -> Extras | None:
    """What is left of a frame with an error: OpenRouter says in `error.metadata` what its provider said."""
    error = chunk.get("error")
    told = {name: value for name, value in error.items() if name not in _OF_ERROR} if is_object(error) else {}
    rest = {name: value for name, value in chunk.items() if name not in _OF_CHUNK}
    return kept(NAME, {**rest, "error": told} if told else rest)


def _attach(left: Extras, out: list[Event]) -> None:
    """Give what is left of a frame to its first delta, or to another event of its own."""
    other: int | None = None
    for at, event in enumerate(out):
        if type(event) is TextDelta or type(event) is ArgumentsDelta:
            out[at] = type(event)(event.block, event.text, extras=left)
            return
        # The end of the block before says nothing about this frame.
        if other is None and type(event) is not BlockEnd:
            other = at
    if other is None:
        out.append(Carried(left))
    else:
        out[other] = msgspec.structs.replace(out[other], extras=left)


def _without_usage(left: Extras, out: list[Event]) -> Extras:
    """What is left of a whole body, without the token counts: they go with their event."""
    last, usage = out[-1], left.members.get("usage")
    if type(last) is not UsageSeen or not is_object(usage):
        return left
    out[-1] = UsageSeen(last.usage, Extras(NAME, {"usage": usage}))
    return Extras(NAME, {name: value for name, value in left.members.items() if name != "usage"})
