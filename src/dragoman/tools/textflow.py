"""An answer's text on its way out: thinking in tags, calls written as words, stop sequences.

Each filter holds back only the few characters that could begin what it looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..events import End, Stop
from ..messages import Thinking
from .leaks import LeakedCall, LeakFilter
from .stops import StopMatcher
from .thinktags import ThinkSplitter

Piece = str | LeakedCall | Thinking | End


class TextFlow:
    """One answer's text. `feed` and `flush` give pieces in order."""

    __slots__ = ("_leaks", "_stops", "_tags")

    def __init__(self, leaks: LeakFilter, tags: ThinkSplitter | None, stop: tuple[str, ...]) -> None:
        self._leaks = leaks
        self._tags = tags
        self._stops = StopMatcher(stop) if stop else None

    def reasoning_seen(self) -> None:
        """Reasoning came in its own field: tags in the text are strays."""
        if self._tags is not None:
            self._tags.reasoning_seen()

    @property
    def passes(self) -> Callable[[str], bool] | None:
        """See `LeakFilter.passes`."""
        if self._stops is not None or not (self._tags is None or self._tags.passing):
            return None
        return self._leaks.passes

    def feed(self, text: str) -> list[Piece]:
        tags = self._tags
        return self._said(text) if tags is None or tags.lets_by(text) else self._split(tags.feed(text))

    def flush(self) -> list[Piece]:
        """The text is over: what was held is text after all."""
        out: list[Piece] = []
        if self._tags is not None and self._tags.holding:
            out += self._split(self._tags.close())
        if self._leaks.holding:
            out += self._stopped([*self._leaks.close()])
        if self._stops is not None and (rest := self._stops.flush()):
            out.append(rest)
        return out

    def _split(self, parts: Sequence[tuple[str, str]]) -> list[Piece]:
        out: list[Piece] = []
        for kind, text in parts:
            if kind == "thinking":
                out.append(Thinking(text))
            else:
                out += self._said(text)
        return out

    def _said(self, text: str) -> list[Piece]:
        return self._stopped([*self._leaks.feed(text)])

    def _stopped(self, pieces: list[Piece]) -> list[Piece]:
        if self._stops is None:
            return pieces
        out: list[Piece] = []
        for piece in pieces:
            if not isinstance(piece, str):
                out.append(piece)
                continue
            text, sequence = self._stops.feed(piece)
            if text:
                out.append(text)
            if sequence is not None:
                out.append(End(Stop.STOP_SEQUENCE, sequence))
                break
        return out
