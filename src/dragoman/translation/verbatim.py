"""Same protocol on both sides: the upstream's own frames pass while there is nothing to mend.

Decoder, tool stage and encoder follow every frame, so the encoder can take over at any frame with the same
ids and indexes. This module only chooses which bytes go out: the frame as it came, or what the encoder writes
for it. A frame goes out as it came when the client's events are the upstream's events. A frame waits while
something of it is held back (half a key, the beginning of a tag), or while it announces an end that is not
confirmed. The first frame whose events differ shuts the passage for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..model.events import ArgumentsDelta, BlockEnd, End, Event, Ping, Stop, TextDelta, Unknown, UsageSeen
from ..protocols.base import Encoder
from ..wire.frames import Frame

Ending = Literal["open", "announced", "over"]
"""Is the answer over with this frame, or is its end announced but not confirmed?"""
_BESIDE = frozenset({UsageSeen, Ping, Unknown})
_END = End(Stop.END)


class Passage:
    """Chooses, frame by frame, between the original and the rebuilt."""

    __slots__ = ("_encoder", "_said", "_waiting", "open")

    def __init__(self, encoder: Encoder) -> None:
        self.open = True
        self._encoder = encoder
        self._waiting: list[tuple[Frame | None, list[Event]]] = []
        """Frames that are not sent yet, each with the client's events for it."""
        self._said: tuple[Said, Said] | None = None
        """What came and what went, from the first frame on in which they differed and that still waits."""

    def choose(self, frame: Frame | None, came: list[Event], went: list[Event], end: Ending) -> bytes:
        """The bytes to send now. `frame` said `came`, and the client is to get `went`.

        `frame` is None for the events that come without one, when the upstream's stream closes.
        """
        if self._said is None and came == went:
            if frame is not None and not self._waiting and end != "announced":
                return self._encoder.verbatim(frame, went)
            self._waiting.append((frame, went))
            return b"" if end == "announced" else self._release()
        self._waiting.append((frame, went))
        before, now = self._said = self._said or (Said(), Said())
        before.add(came)
        now.add(went)
        if not now.within(before, went):
            return self.shut()
        agreed = now.equals(before)
        if end == "over" and not agreed:
            return self.shut()
        return self._release() if agreed and end != "announced" else b""

    def shut(self) -> bytes:
        """From here on everything is rebuilt; what waited goes out that way too."""
        self.open = False
        return b"".join([self._encoder.encode(went) for _, went in self._waiting if went])

    def _release(self) -> bytes:
        waiting, self._waiting, self._said = self._waiting, [], None
        return b"".join([self._encoder.verbatim(frame, went) for frame, went in waiting if frame is not None])


class Said:
    """What some frames said: texts by block, what belongs to no block, and everything else in order.

    Of an `End` only its place counts. Whether its stop reason is true is judged by the protocol's watch.
    """

    __slots__ = ("_beside", "_length", "_others", "_texts")

    def __init__(self) -> None:
        self._others: list[Event] = []
        self._beside: list[Event] = []
        self._texts: dict[int, list[str]] = {}
        self._length = 0

    def add(self, events: list[Event]) -> None:
        for event in events:
            # By the type itself: `isinstance` asks a struct's metaclass, and takes several times as long.
            if type(event) is TextDelta or type(event) is ArgumentsDelta:
                self._texts.setdefault(event.block, []).append(event.text)
                self._length += len(event.text)
            elif type(event) in _BESIDE:
                self._beside.append(event)
            else:
                self._others.append(_END if type(event) is End else event)

    def within(self, more: Said, last: Sequence[Event] = ()) -> bool:
        """Could this still become `more`? `last` was added to it: the texts of blocks that ended are over."""
        if self._length > more._length:
            return False
        if not (_begins(self._others, more._others) and _begins(self._beside, more._beside)):
            return False
        ended = [event.block for event in last if type(event) is BlockEnd]
        return all(self._joined_in(block) == more._joined_in(block) for block in ended)

    def equals(self, other: Said) -> bool:
        if self._length != other._length or len(self._others) != len(other._others):
            return False
        return len(self._beside) == len(other._beside) and self._joined() == other._joined()

    def _joined_in(self, block: int) -> str:
        return "".join(self._texts.get(block, ()))

    def _joined(self) -> dict[int, str]:
        return {block: "".join(texts) for block, texts in self._texts.items()}


def _begins(these: list[Event], those: list[Event]) -> bool:
    return these == those[: len(these)]
