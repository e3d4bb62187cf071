"""Frames that differ in nothing but their words are handled as one.

Most of a stream is one frame over and over with other words in it, and many of them arrive together. The
first of them is read in full. The bytes around its words are then known, so those that follow need only be
cut there. As long as their words would go to the client as they are, they go through the house as one
piece, and come out again frame by frame: what the client gets does not depend on what arrived together.
"""

from __future__ import annotations

import json
import re

import msgspec

from .events import ArgumentsDelta, Event, TextDelta
from .protocols.base import Decoder
from .wire.frames import Frame
from .wire.reader import FrameReader

Delta = TextDelta | ArgumentsDelta

# Some upstreams put a counter or random padding into every frame: no use to go on trying.
_PATIENCE = 4
_PROBE = b"word"
_BETWEEN = b"\\u0000"
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_decode = msgspec.json.Decoder(str).decode


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """What frames alike have in common: everything but the inside of one JSON string."""

    event: str
    head: bytes
    tail: bytes

    def fits(self, frame: Frame) -> bool:
        data = frame.data
        return frame.event == self.event and data.startswith(self.head) and data.endswith(self.tail)

    def with_words(self, inside: bytes) -> Frame:
        return Frame(self.head + inside + self.tail, self.event)


class Run(msgspec.Struct, frozen=True, gc=False):
    """Some frames alike."""

    pattern: Pattern
    insides: list[bytes]
    """What stands in each of them where they differ: the inside of a JSON string."""
    pieces: list[bytes]
    """The same as a client gets it piece by piece: no escape of its arguments is cut in two."""
    delta: Delta
    """What they say together."""

    def frames(self) -> list[Frame]:
        return [self.pattern.with_words(inside) for inside in self.insides]


class Alike:
    """Knows what the frames of the moment look like."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._patience = _PATIENCE
        self._pattern: Pattern | None = None
        self._delta: Delta | None = None

    def seen(self, frame: Frame, events: list[Event]) -> Delta | None:
        """`frame` was read, and these events came of it. Gives the kind of what may follow in a run."""
        before, delta = self._delta, events[0] if len(events) == 1 else None
        self._delta = delta if isinstance(delta, TextDelta | ArgumentsDelta) else None
        if self._delta is None or not self._patience:
            self._pattern = None
        elif self._pattern is None or not (_same(before, self._delta) and self._pattern.fits(frame)):
            self._pattern = self._learned(frame, self._delta.text)
        return None if self._pattern is None else self._delta

    def follow(self, reader: FrameReader) -> Pieces | None:
        """What follows the frame that was seen and is like it; None where nothing is."""
        pattern = self._pattern
        assert pattern is not None
        name = b"event: " + pattern.event.encode() if pattern.event else b""
        insides = reader.take(name, b"data: " + pattern.head, pattern.tail)
        if not insides:
            self._patience -= 1
            return None
        self._patience = _PATIENCE
        return Pieces(pattern, insides)

    def _learned(self, frame: Frame, words: str) -> Pattern | None:
        """Where the words stand in the frame: proven by putting others in their place."""
        data = frame.data
        if self._decoder.words(data) != words:
            return None
        for literal in (msgspec.json.encode(words), json.dumps(words).encode()):
            at = data.find(literal)
            if at < 0:
                continue
            pattern = Pattern(frame.event, data[: at + 1], data[at + len(literal) - 1 :])
            if self._decoder.words(pattern.with_words(_PROBE).data) == _PROBE.decode():
                return pattern
        return None


class Pieces:
    """Frames alike, of which not all need pass."""

    def __init__(self, pattern: Pattern, insides: list[bytes]) -> None:
        self._pattern = pattern
        self._insides = insides
        self._words = words_of(insides)
        self._texts = [] if self._words is None else self._words.split("\0")

    def __len__(self) -> int:
        return len(self._insides)

    def frame(self, at: int) -> Frame:
        return self._pattern.with_words(self._insides[at])

    def run(self, at: int, delta: Delta, passes: re.Pattern[str] | None) -> Run | None:
        """Those from `at` on that say nothing but what passes, as one, of the kind and block of `delta`."""
        if passes is None or self._words is None:
            return None
        if type(delta) is ArgumentsDelta:
            end, pieces = self._arguments(at, passes)
        else:
            end = self._text(at, passes)
            pieces = self._insides[at:end]
        if end == at:
            return None
        words = "".join(self._texts[at:end])
        return Run(self._pattern, self._insides[at:end], pieces, type(delta)(delta.block, words))

    def _text(self, at: int, passes: re.Pattern[str]) -> int:
        # To text, the marks between are characters like any other.
        if at == 0 and self._words is not None and passes.fullmatch(self._words):
            return len(self)
        while at < len(self) and passes.fullmatch(self._texts[at]):
            at += 1
        return at

    def _arguments(self, at: int, passes: re.Pattern[str]) -> tuple[int, list[bytes]]:
        """How far it goes inside a string of the arguments; an escape that is cut waits for its end."""
        pieces: list[bytes] = []
        sure = (at, 0)
        held = ""
        for index in range(at, len(self)):
            text, inside = self._texts[index], self._insides[index]
            if not held and passes.fullmatch(text):
                pieces.append(inside)
                sure = (index + 1, len(pieces))
                continue
            text, inside = held + text, _escaped(held) + inside
            legal = passes.match(text)
            held = text[legal.end() :] if legal else text
            if held and not (_CUT_ESCAPE.fullmatch(held) and inside.endswith(_escaped(held))):
                break
            if piece := inside[: len(inside) - len(_escaped(held))]:
                pieces.append(piece)
            if not held:
                sure = (index + 1, len(pieces))
        return sure[0], pieces[: sure[1]]


def _escaped(held: str) -> bytes:
    """The beginning of an escape as it stands in a JSON string."""
    return held.replace("\\", "\\\\").encode()


def words_of(insides: list[bytes]) -> str | None:
    """The words in the insides of some JSON strings, a NUL between them. None if not each is one."""
    joined = _BETWEEN.join(insides)
    gaps = len(insides) - 1
    if b"" in insides or joined.count(_BETWEEN) != gaps:
        return None  # nothing said is no delta
    try:
        words = _decode(b'"%s"' % joined)
    except (ValueError, RecursionError):
        return None
    # One that ends in a lone backslash has swallowed what was put behind it.
    return words if words.count("\0") == gaps else None


def _same(before: Delta | None, now: Delta) -> bool:
    return before is not None and type(before) is type(now) and before.block == now.block
