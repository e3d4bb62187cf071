"""Reasoning on its way out, where some servers lose a model's tool call.

A call that stands written in the reasoning is the real one only if nothing follows: no answer, no other
call. So from the first such call on, reasoning waits; when something follows it was talk about calls, and
goes out as the reasoning it is.
"""

from __future__ import annotations

from .leaks import Frame, LeakedCall, LeakFilter, Segment


class Repeat:
    """Tells reasoning that comes a second time. Blanks do not count: tags bring some of their own."""

    __slots__ = ("_before", "_held", "_place", "said")

    def __init__(self) -> None:
        self.said: list[str] = []
        """The reasoning that came first."""
        self._place: int | None = 0
        """How much of it came a second time; None: what comes is something else."""
        self._held: list[str] = []
        self._before: str | None = None

    def fresh(self, text: str) -> str:
        """What of `text` was not said before. As long as it may be a repetition, it is held."""
        if self._place is None:
            return text
        if self._before is None:
            self._before = "".join("".join(self.said).split())
        new = "".join(text.split())
        self._held.append(text)
        if self._before.startswith(new, self._place):
            self._place += len(new)
            return ""
        self._place = None
        held, self._held = "".join(self._held), []
        return held


class Thoughts:
    """The reasoning of one answer."""

    __slots__ = ("_waiting", "leaks")

    def __init__(self, leaks: LeakFilter) -> None:
        self.leaks = leaks
        self._waiting: list[Segment] = []

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def feed(self, text: str) -> str:
        """The reasoning that may go out now."""
        return self._sorted(self.leaks.feed(text))

    def flush(self) -> str:
        """The block is over: the beginning of a mark that never came is reasoning."""
        return self._sorted(self.leaks.close())

    def as_words(self) -> str:
        """Something follows: all of it was reasoning."""
        waiting, self._waiting = self._waiting, []
        return "".join(piece if isinstance(piece, str) else piece.raw for piece in waiting)

    def as_calls(self) -> list[LeakedCall]:
        """Nothing follows: these were the model's calls."""
        waiting, self._waiting = self._waiting, []
        return [piece for piece in waiting if isinstance(piece, LeakedCall)]

    def _sorted(self, pieces: list[Segment]) -> str:
        said: list[str] = []
        for piece in pieces:
            if self._waiting or isinstance(piece, LeakedCall):
                self._waiting.append(piece)
            elif not isinstance(piece, Frame):
                said.append(piece)
        return "".join(said)
