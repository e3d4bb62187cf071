"""Pass the upstream's own frames to a client of the same protocol, unchanged, while nothing needs correction.

The decoder, the tool stage and the encoder process every frame in any case, so the encoder can take over at
any frame with the same ids and indexes. This module only chooses the bytes to send: the original frame, or
the frame that the encoder writes.

- The original frame goes out if the client's events equal the decoded events.
- A frame waits while the tool stage holds back a part of it (half a key, the start of a tag), or while it
  announces an end that is not confirmed yet.
- The first frame whose events differ ends the pass-through for the rest of the answer. Switching back is not
  possible: from then on the client's ids and indexes may differ from the upstream's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..model.events import ArgumentsDelta, BlockEnd, End, Event, Ping, Stop, TextDelta, Unknown, UsageSeen
from ..protocols.base import Encoder
from ..wire.frames import Frame

EndState = Literal["open", "announced", "over"]
"""Is the answer over with this frame, or is its end announced but not confirmed?"""
_OUTSIDE_BLOCKS = frozenset({UsageSeen, Ping, Unknown})
_END = End(Stop.END)


class VerbatimPassthrough:
    """Chooses for each frame of one answer: send the original, send an encoded frame, or wait."""

    __slots__ = ("_differing", "_encoder", "_waiting", "open")

    def __init__(self, encoder: Encoder) -> None:
        self.open = True
        self._encoder = encoder
        self._waiting: list[tuple[Frame | None, list[Event]]] = []
        """Frames that are not sent yet, each with the client's events for it."""
        self._differing: tuple[AccumulatedEvents, AccumulatedEvents] | None = None
        """Decoded and outgoing events since the first waiting frame in which the two differ."""

    def choose(
        self, frame: Frame | None, decoded: list[Event], outgoing: list[Event], end: EndState
    ) -> bytes:
        """Return the bytes to send now. `decoded` are the frame's events, `outgoing` the client's events.

        `frame` is None for events without a frame: the decoder emits them when the upstream's stream closes.
        """
        if self._differing is None and decoded == outgoing:
            if frame is not None and not self._waiting and end != "announced":
                return self._encoder.verbatim(frame, outgoing)
            self._waiting.append((frame, outgoing))
            return b"" if end == "announced" else self._release()
        self._waiting.append((frame, outgoing))
        expected, sent = self._differing = self._differing or (AccumulatedEvents(), AccumulatedEvents())
        expected.add(decoded)
        sent.add(outgoing)
        if sent.equals(expected):
            return b"" if end == "announced" else self._release()
        return b"" if end != "over" and sent.is_prefix_of(expected, outgoing) else self.stop()

    def stop(self) -> bytes:
        """End the pass-through. The encoder writes the waiting frames and everything after them."""
        self.open = False
        return b"".join([self._encoder.encode(outgoing) for _, outgoing in self._waiting if outgoing])

    def _release(self) -> bytes:
        waiting, self._waiting, self._differing = self._waiting, [], None
        verbatim = self._encoder.verbatim
        return b"".join([verbatim(frame, outgoing) for frame, outgoing in waiting if frame is not None])


class AccumulatedEvents:
    """The content of several frames in a form that can be compared, however the deltas are cut.

    It holds the joined text of each block, the events outside of blocks, and all other events in order.
    Of an `End` only the position counts. The protocol's `VerbatimCheck` judges its stop reason.
    """

    __slots__ = ("_length", "_others", "_outside_blocks", "_texts")

    def __init__(self) -> None:
        self._others: list[Event] = []
        self._outside_blocks: list[Event] = []
        self._texts: dict[int, list[str]] = {}
        self._length = 0

    def add(self, events: list[Event]) -> None:
        for event in events:
            # Compare types: `isinstance` on a msgspec struct goes through its metaclass and is much slower.
            if type(event) is TextDelta or type(event) is ArgumentsDelta:
                self._texts.setdefault(event.block, []).append(event.text)
                self._length += len(event.text)
            elif type(event) in _OUTSIDE_BLOCKS:
                self._outside_blocks.append(event)
            else:
                self._others.append(_END if type(event) is End else event)

    def is_prefix_of(self, other: AccumulatedEvents, added: Sequence[Event] = ()) -> bool:
        """Can this still grow into `other`? Blocks that ended in `added`, the last events, must be equal."""
        if self._length > other._length or not _is_prefix(self._others, other._others):
            return False
        if not _is_prefix(self._outside_blocks, other._outside_blocks):
            return False
        ended = [event.block for event in added if type(event) is BlockEnd]
        return all(self._text_of(block) == other._text_of(block) for block in ended)

    def equals(self, other: AccumulatedEvents) -> bool:
        """Is the content the same?"""
        if self._length != other._length or self._others != other._others:
            return False
        return self._outside_blocks == other._outside_blocks and self._joined() == other._joined()

    def _text_of(self, block: int) -> str:
        return "".join(self._texts.get(block, ()))

    def _joined(self) -> dict[int, str]:
        return {block: "".join(texts) for block, texts in self._texts.items()}


def _is_prefix(short: list[Event], long: list[Event]) -> bool:
    return short == long[: len(short)]
