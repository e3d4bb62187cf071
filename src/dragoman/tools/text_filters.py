"""The filters for the text of one answer: think tags, leaked calls, stop sequences.

Each filter holds back only the few characters that may begin what it looks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..model.events import End, Stop
from ..model.messages import Thinking
from ..protocols.common.tool_names import CalledTool, ToolNames
from .leaks import Catalog, FrameTokens, LeakedCall, LeakFilter
from .plan import ToolPlan
from .rules.answer_rules import CALL_IN_TEXT, MARK_BEFORE_CALL, THINK_TAGS
from .stop_sequences import StopMatcher
from .think_tags import ThinkSplitter


class LoneMark(msgspec.Struct, frozen=True):
    """The opening mark of a call at the end of a text: a leak if a call follows, otherwise text."""

    text: str


Piece = str | LeakedCall | FrameTokens | LoneMark | Thinking | End

_NO_TOOLS = Catalog({})


def catalog(names: ToolNames) -> Catalog:
    """The declared tools, for finding calls that are written as text."""
    return names.note(("catalog",), lambda: Catalog(_Schemas(names.declared()), names.originals()))


class _Schemas(Mapping[str, dict[str, Any] | None]):
    """The schemas of the declared tools. A schema is decoded only if a text seems to call its tool."""

    def __init__(self, declared: Mapping[str, CalledTool]) -> None:
        self._declared = declared

    def __getitem__(self, name: str) -> dict[str, Any] | None:
        return self._declared[name].tool.schema

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


class TextFilters:
    """Runs the filters. `feed` and `flush` return pieces in order."""

    __slots__ = ("_plan", "_stops", "_tags", "idle", "leaks")

    def __init__(self, plan: ToolPlan) -> None:
        self._plan = plan
        self.leaks = LeakFilter(catalog(plan.names) if plan.rules.on(CALL_IN_TEXT) else _NO_TOOLS)
        tags = plan.rules.on(THINK_TAGS)
        self._tags = ThinkSplitter(unopened=plan.unopened_thinking) if tags else None
        self._stops = StopMatcher(plan.stop) if plan.stop else None
        self.idle = False
        """Whether text without a trigger may skip all filters."""

    def reasoning_seen(self) -> None:
        """Reasoning arrived in its own field: a closing tag in the text ends nothing."""
        if self._tags is not None:
            self._tags.reasoning_seen()

    def feed(self, text: str) -> list[Piece]:
        tags, leaks = self._tags, self.leaks
        if tags is None or tags.passes(text):
            pieces = self._stopped([*leaks.feed(text)])
        else:
            pieces = self._split(tags.feed(text))
        self.idle = self._stops is None and leaks.idle and (tags is None or tags.passing)
        return pieces

    def flush(self) -> list[Piece]:
        """The text is over. Held text is text after all, except a mark at its very end."""
        out: list[Piece] = []
        leaks = self.leaks
        self.idle = False
        if self._tags is not None and self._tags.holding:
            out += self._split(self._tags.close())
        if leaks.holding:
            looks = self._stops is None and self._plan.rules.on(MARK_BEFORE_CALL)
            mark = leaks.take_mark() if looks else ""
            out += self._stopped([*leaks.close()])
            if mark:
                out.append(LoneMark(mark))
        if self._stops is not None and (rest := self._stops.flush()):
            out.append(rest)
        return out

    def _split(self, parts: Sequence[tuple[str, str]]) -> list[Piece]:
        out: list[Piece] = []
        for kind, text in parts:
            if kind == "thinking":
                out.append(Thinking(text))
            else:
                out += self._stopped([*self.leaks.feed(text)])
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
