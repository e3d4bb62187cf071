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
    pieces: list[bytes]
    """What stands in each of them where they differ: the inside of a JSON string."""
    delta: Delta
    """What they say together."""

    def frames(self) -> list[Frame]:
        return [self.pattern.with_words(piece) for piece in self.pieces]


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
    """Frames alike, in which not every piece need be one that passes."""

    def __init__(self, pattern: Pattern, insides: list[bytes]) -> None:
        self._pattern = pattern
        self._insides = insides
        self._words = words_of(insides)
        self._texts: list[str] | None = None

    def __len__(self) -> int:
        return len(self._insides)

    def frame(self, at: int) -> Frame:
        return self._pattern.with_words(self._insides[at])

    def until(self, at: int, passes: re.Pattern[str] | None) -> int:
        """How far it goes from `at` with nothing but what `passes`."""
        if passes is None or self._words is None:
            return at
        # To plain text the marks between are characters like any other. In JSON they are not: there
        # each piece is looked at, since an escape may be cut in two.
        if at == 0 and passes.fullmatch(self._words):
            return len(self)
        texts = self._split(self._words)
        while at < len(texts) and passes.fullmatch(texts[at]):
            at += 1
        return at

    def run(self, start: int, end: int, delta: Delta) -> Run:
        """Those from `start` to `end` as one, of the kind and block of `delta`."""
        assert self._words is not None
        words = "".join(self._split(self._words)[start:end])
        return Run(self._pattern, self._insides[start:end], type(delta)(delta.block, words))

    def _split(self, words: str) -> list[str]:
        if self._texts is None:
            self._texts = words.split("\0")
        return self._texts


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
