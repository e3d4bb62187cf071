"""Reasoning in its own field: calls that were lost in it, and reasoning that arrives twice.

Some servers leave a model's tool call in the reasoning (vllm#55759). It is real only if nothing follows: no
answer and no other call. So from the first call on, reasoning waits. If a block follows, the model only
talked about calls, and the text goes out as reasoning.
"""

from __future__ import annotations

from .leaks import FrameTokens, LeakedCall, LeakFilter, Segment


class RepeatedReasoning:
    """Detects reasoning that arrives a second time, in tags. Blanks do not count: tags add some."""

    __slots__ = ("_before", "_held", "_place", "seen")

    def __init__(self) -> None:
        self.seen: list[str] = []
        """The reasoning that arrived in its own field."""
        self._place: int | None = 0
        """How much of it arrived a second time. None: the second text is different."""
        self._held: list[str] = []
        self._before: str | None = None

    def new_part(self, text: str) -> str:
        """The part of `text` that is new. Text is held while it may be a repetition."""
        if self._place is None:
            return text
        if self._before is None:
            self._before = "".join("".join(self.seen).split())
        new = "".join(text.split())
        self._held.append(text)
        if self._before.startswith(new, self._place):
            self._place += len(new)
            return ""
        self._place = None
        held, self._held = "".join(self._held), []
        return held


class ReasoningLeaks:
    """Finds calls in the reasoning of one answer."""

    __slots__ = ("_waiting", "leaks")

    def __init__(self, leaks: LeakFilter) -> None:
        self.leaks = leaks
        self._waiting: list[Segment] = []

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def feed(self, text: str) -> str:
        """The reasoning that may go out now."""
        return self._pass_on(self.leaks.feed(text))

    def flush(self) -> str:
        """The block is over: the beginning of a mark is reasoning after all."""
        return self._pass_on(self.leaks.close())

    def as_text(self) -> str:
        """A block follows: all of the text was reasoning."""
        waiting, self._waiting = self._waiting, []
        return "".join(piece if isinstance(piece, str) else piece.raw for piece in waiting)

    def as_calls(self) -> list[LeakedCall]:
        """Nothing follows: the calls are real."""
        waiting, self._waiting = self._waiting, []
        return [piece for piece in waiting if isinstance(piece, LeakedCall)]

    def _pass_on(self, pieces: list[Segment]) -> str:
        seen: list[str] = []
        for piece in pieces:
            if self._waiting or isinstance(piece, LeakedCall):
                self._waiting.append(piece)
            elif not isinstance(piece, FrameTokens):
                seen.append(piece)
        return "".join(seen)
