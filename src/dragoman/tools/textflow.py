"""An answer's text on its way out: thinking in tags, calls written as words, stop sequences.

Each filter holds back only the few characters that could begin what it looks for. Where an answer begins with
words, and as long as it is nothing else, there is nothing for them to do, and they are not even made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..events import End, Stop
from ..messages import Thinking
from ..protocols.names import Called, ToolNames
from .leaks import BEGINNINGS, Catalog, LeakedCall, LeakFilter, is_untriggered
from .plan import ToolPlan
from .rules.answer import CALL_IN_TEXT, MARK_BEFORE_CALL, THINK_TAGS
from .stops import StopMatcher
from .thinktags import SIGNS, ThinkSplitter


class LoneMark(msgspec.Struct, frozen=True):
    """The opening mark of a call, at the end of a text: a leak if a call follows, and else text."""

    text: str


Piece = str | LeakedCall | LoneMark | Thinking | End

_NO_TOOLS = Catalog({})
_NO_WORDS = SIGNS | BEGINNINGS
"""What begins with one of these may be a tag, a call, or code."""


def catalog(names: ToolNames) -> Catalog:
    """The tools that a call written as text may mean."""
    return names.note(("catalog",), lambda: Catalog(_Parameters(names.declared())))


class _Parameters(Mapping[str, dict[str, Any] | None]):
    """What the tools take, which is asked of those alone that a text seems to call."""

    def __init__(self, declared: Mapping[str, Called]) -> None:
        self._declared = declared

    def __getitem__(self, name: str) -> dict[str, Any] | None:
        return self._declared[name].tool.schema

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


class TextFlow:
    """One answer's text. `feed` and `flush` give pieces in order."""

    __slots__ = ("_began", "_leaks", "_plan", "_stops", "_tags")

    def __init__(self, plan: ToolPlan) -> None:
        self._plan = plan
        self._began = ""
        """The words that the answer began with, while there was no need of filters."""
        self._leaks: LeakFilter | None = None
        self._tags: ThinkSplitter | None = None
        self._stops = StopMatcher(plan.stop) if plan.stop else None

    @property
    def dropped(self) -> str:
        """See `LeakFilter.dropped`."""
        return "" if self._leaks is None else self._leaks.dropped

    def reasoning_seen(self) -> None:
        """Reasoning came in its own field: tags in the text are strays."""
        if not self._began and self._leaks is None:
            self._filters()
        if self._tags is not None:
            self._tags.reasoning_seen()

    @property
    def passes(self) -> Callable[[str], bool] | None:
        """See `LeakFilter.passes`."""
        if self._stops is not None or not (self._tags is None or self._tags.passing):
            return None
        if self._leaks is None:
            return is_untriggered if self._began else None
        return self._leaks.passes

    def lets_by(self, text: str) -> bool:
        """Does this text go straight through, as the words before it did?"""
        return self._leaks is None and self._stops is None and self._began != "" and is_untriggered(text)

    def feed(self, text: str) -> list[Piece]:
        leaks = self._leaks
        if leaks is None:
            if self._is_plain(text):
                self._began = self._began or text
                return [text] if self._stops is None else self._stopped([text])
            leaks = self._filters()
        tags = self._tags
        if tags is None or tags.lets_by(text):
            return self._stopped([*leaks.feed(text)])
        return self._split(leaks, tags.feed(text))

    def flush(self) -> list[Piece]:
        """The text is over: what was held is text after all, but perhaps for the mark it ends with."""
        out: list[Piece] = []
        leaks = self._leaks
        if leaks is not None:
            if self._tags is not None and self._tags.holding:
                out += self._split(leaks, self._tags.close())
            if leaks.holding:
                looks = self._stops is None and self._plan.rules.on(MARK_BEFORE_CALL)
                mark = leaks.take_mark() if looks else ""
                out += self._stopped([*leaks.close()])
                if mark:
                    out.append(LoneMark(mark))
        if self._stops is not None and (rest := self._stops.flush()):
            out.append(rest)
        return out

    def _is_plain(self, text: str) -> bool:
        """Is it nothing that any filter looks for, wherever it is cut?"""
        if not self._began:
            first = text[:1]
            if not first or first.isspace() or first in _NO_WORDS or self._plan.unopened_thinking:
                return False
        return is_untriggered(text)

    def _filters(self) -> LeakFilter:
        """From now on they look at everything, and know how the answer began."""
        plan = self._plan
        leaks = self._leaks = LeakFilter(catalog(plan.names) if plan.rules.on(CALL_IN_TEXT) else _NO_TOOLS)
        if self._began:
            leaks.feed(self._began)
        elif plan.rules.on(THINK_TAGS):
            self._tags = ThinkSplitter(unopened=plan.unopened_thinking)
        return leaks

    def _split(self, leaks: LeakFilter, parts: Sequence[tuple[str, str]]) -> list[Piece]:
        out: list[Piece] = []
        for kind, text in parts:
            if kind == "thinking":
                out.append(Thinking(text))
            else:
                out += self._stopped([*leaks.feed(text)])
        return out

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
