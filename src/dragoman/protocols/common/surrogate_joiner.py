"""Join surrogate pairs that the deltas of one block split.

Only a frame that the strict decoder rejects can contain a lone surrogate. So a decoder creates the joiner at
the first such frame, and other streams do not pay for it.
"""

from __future__ import annotations

import msgspec

from ...model.events import DELTAS, ArgumentsDelta, BlockEnd, Carried, Event, TextDelta
from ...wire.surrogates import PairJoiner


class SurrogateJoiner:
    """Joins surrogate pairs in the deltas of each block."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[type[TextDelta | ArgumentsDelta], PairJoiner]] = {}

    def join(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, DELTAS):
                self._delta(event, out)
            else:
                if isinstance(event, BlockEnd) and event.block in self._waiting:
                    kind, joiner = self._waiting.pop(event.block)
                    if rest := joiner.close():
                        out.append(kind(event.block, rest))
                out.append(event)
        return out

    def _delta(self, event: TextDelta | ArgumentsDelta, out: list[Event]) -> None:
        kind = type(event)
        _, joiner = self._waiting.setdefault(event.block, (kind, PairJoiner()))
        if text := joiner.feed(event.text):
            out.append(event if text == event.text else msgspec.structs.replace(event, text=text))
        elif event.extras is not None:
            out.append(Carried(event.extras, event.block))
