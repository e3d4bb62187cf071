"""Frames that differ in nothing but their words are handled as one.

Most of a stream is one frame over and over with other words in it, and many of them arrive together. The
first of them is read in full. The bytes around its words are then known, so those that follow, at once or
in later reads, need only be cut there. As long as their words would go to the client as they are, they go
through the house as one piece, and come out again frame by frame: what the client gets does not depend on
what arrived together.
"""

from __future__ import annotations

import json
import re

import msgspec

from .events import ArgumentsDelta, Event, TextDelta
from .protocols.base import Decoder
from .tools.stage import Passes
from .wire.frames import Around, Frame, before_data
from .wire.reader import FrameReader
from .wire.sse import inside_of

Delta = TextDelta | ArgumentsDelta

# To find out what frames have in common costs as much as to read a few, and runs code that may have left the
# processor's caches: so many must lie ahead, and fewer with each one that was read without.
_MANY = 8
# Some upstreams put a counter or random padding into every frame: no use to go on trying.
_PATIENCE = 4
_PROBE = "word"
_PROBED = _PROBE.encode()
_LONG = 4 * 1024
_BETWEEN = b"\\u0000"
_BACKSLASH = ord("\\")
_decode = msgspec.json.Decoder(str).decode


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """What frames alike have in common: everything but the inside of one JSON string."""

    event: str
    head: bytes
    tail: bytes
    around: Around
    """The same on the wire."""

    before: bytes
    """What stands before the data."""

    def fits(self, frame: Frame) -> bool:
        if frame.event != self.event:
            return False
        data, around = frame.data, self.around
        if around.differ:
            return inside_of(self.before + data, around, b"%d" % around.number(data)) is not None
        return data.startswith(self.head) and data.endswith(self.tail)

    def frame(self, event: bytes) -> Frame:
        """An event as it stands on the wire, without its end."""
        return Frame(event[len(self.before) :], self.event)

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
    events: list[bytes] | None = None
    """All of each of them, where they differ elsewhere too."""

    def frames(self) -> list[Frame]:
        if self.events is not None:
            return list(map(self.pattern.frame, self.events))
        return [self.pattern.with_words(inside) for inside in self.insides]


class Alike:
    """Knows what the frames of the moment look like."""

    __slots__ = ("_decoder", "_number", "_patience", "_pattern", "delta", "least")

    def __init__(self, decoder: Decoder, *, eager: bool = False) -> None:
        """`eager`: to read a frame in full is dear, so that it pays also where they come one by one."""
        self._decoder = decoder
        self.least = 0 if eager else _MANY
        """How many of a frame's size must lie ahead of it, so that it pays to look at it."""
        self._patience = _PATIENCE if decoder.repeats else 0
        self._pattern: Pattern | None = None
        self._number = 0
        """Of the last frame that was read, where each has its own."""
        self.delta: Delta | None = None
        """What the last frame said, where others like it may follow."""

    def seen(self, frame: Frame, events: list[Event]) -> Delta | None:
        """`frame` was read, and these events came of it: the words last, that others like it go on with."""
        delta = events[-1] if events and self._patience else None
        # By the type itself: that it is none of several, `isinstance` takes long to tell.
        if type(delta) is not TextDelta and type(delta) is not ArgumentsDelta:
            self._pattern = self.delta = None
            return None
        if self._pattern is None or not (_same(self.delta, delta) and self._pattern.fits(frame)):
            self._pattern = self._learned(frame, delta.text)
        if self._pattern is None:
            self.delta = None
            return None
        if self._pattern.around.differ:
            # What is looked at only now may have been read together with others that follow it.
            self._number = max(self._number, self._pattern.around.number(frame.data))
        self.delta = delta
        return delta

    def follow(self, reader: FrameReader) -> Pieces | None:
        """What follows the last frame and is like it; None where nothing is."""
        pattern = self._pattern
        assert pattern is not None
        around, events = pattern.around, None
        if around.differ:
            numbered = reader.take_numbered(around, self._number)
            found = None if numbered is None else [inside for inside, _ in numbered]
            events = [event for _, event in numbered or ()]
        else:
            found = reader.take(around)
        if found:
            self._patience = _PATIENCE
            self.least = 0  # what is known costs nothing
            self._number += len(found)
            return Pieces(pattern, found, events)
        if found is None:
            self._patience -= 1
            self._pattern = self.delta = None
        return None

    def _learned(self, frame: Frame, words: str) -> Pattern | None:
        """Where the words stand in the frame: proven by putting others in their place."""
        if words == _PROBE:
            return None
        found = self._around(frame, msgspec.json.encode(words))
        if found is None and not words.isascii():
            found = self._around(frame, json.dumps(words).encode())
        return found

    def _around(self, frame: Frame, literal: bytes) -> Pattern | None:
        data = frame.data
        head, found, tail = data.partition(literal)
        if not found:
            return None
        head, tail = head + b'"', b'"' + tail
        if self._decoder.words(head + _PROBED + tail) != _PROBE:
            return None
        before = before_data(frame.event)
        beside = [name for name in self._decoder.beside if data.find(name) >= 0]
        return Pattern(frame.event, head, tail, Around.of(before, head, tail, beside), before)


class Pieces:
    """Frames alike, of which not all need pass."""

    __slots__ = ("_escaped", "_events", "_insides", "_pattern", "_split", "_words", "count")

    def __init__(self, pattern: Pattern, insides: list[bytes], events: list[bytes] | None) -> None:
        """`events` is all of each of them, where they differ in more than what is inside."""
        self.count = len(insides)
        self._pattern = pattern
        self._insides = insides
        self._events = events
        self._escaped = _BACKSLASH in b"".join(insides)
        # What is long is read one by one: to count characters in all of it together takes longer.
        self._split: list[str] | None = _words_of_each(insides) if len(insides[0]) > _LONG else None
        self._words = "\0".join(self._split) if self._split else words_of(insides, self._escaped)

    @property
    def _texts(self) -> list[str]:
        """The words of each."""
        if self._split is None:
            self._split = (self._words or "").split("\0")
        return self._split

    def frame(self, at: int) -> Frame:
        if self._events is not None:
            return self._pattern.frame(self._events[at])
        return self._pattern.with_words(self._insides[at])

    def run(self, at: int, delta: Delta, passes: Passes | None) -> Run | None:
        """Those from `at` on that say nothing but what passes, as one, of the kind and block of `delta`."""
        if passes is None or self._words is None:
            return None
        if not callable(passes):
            end, pieces = self._arguments(at, passes)
            return self._run(at, end, pieces, delta) if end > at else None
        # To text, the marks between are characters like any other.
        if at == 0 and passes(self._words):
            split = self._split
            said = TextDelta(delta.block, "".join(split) if split else self._words.replace("\0", ""))
            return Run(self._pattern, self._insides, self._written(at, self.count), said, self._events)
        end = at
        while end < self.count and passes(self._texts[end]):
            end += 1
        return self._run(at, end, self._written(at, end), delta) if end > at else None

    def _written(self, at: int, end: int) -> list[bytes]:
        """As the words are written to a client: some upstreams escape what need not be."""
        insides = self._insides if end - at == self.count else self._insides[at:end]
        if not self._escaped:
            return insides
        together = b"".join(insides)
        # Not `in`: Python first tries to take bytes that are looked for so for a number.
        if together.find(b"\\u") < 0 and together.find(b"\\/") < 0:
            return insides
        return [msgspec.json.encode(text)[1:-1] for text in self._texts[at:end]]

    def _run(self, at: int, end: int, pieces: list[bytes], delta: Delta) -> Run:
        said = type(delta)(delta.block, "".join(self._texts[at:end]))
        events = self._events[at:end] if self._events is not None else None
        return Run(self._pattern, self._insides[at:end], pieces, said, events)

    def _arguments(self, at: int, passes: re.Pattern[str]) -> tuple[int, list[bytes]]:
        """How far it goes inside a string of the arguments; an escape that is cut waits for its end."""
        texts = self._texts[at:]
        words = "".join(texts)
        legal = _end(passes, words, 0, len(words))
        pieces: list[bytes] = []
        sure = (at, 0)
        held = b""
        clean = end = 0
        for index, text in enumerate(texts, at):
            end += len(text)
            if end > legal:
                break
            inside = self._insides[index]
            # The longest escape has six characters: where no backslash is near, none is cut.
            if held or "\\" in text[-5:]:
                inside = held + inside
                clean = _end(passes, words, clean, end)
                held = _escaped(words[clean:end])
                if not inside.endswith(held):
                    break
                inside = inside[: len(inside) - len(held)]
            else:
                clean = end
            if inside:
                pieces.append(inside)
            if not held:
                sure = (index + 1, len(pieces))
        return sure[0], pieces[: sure[1]]


def _end(run: re.Pattern[str], text: str, start: int, stop: int) -> int:
    found = run.match(text, start, stop)
    return found.end() if found else start


def _escaped(held: str) -> bytes:
    """The beginning of an escape as it stands in a JSON string."""
    return held.replace("\\", "\\\\").encode()


def words_of(insides: list[bytes], escaped: bool = True) -> str | None:
    """The words in the insides of some JSON strings, a NUL between them. None if not each is one.

    `escaped`: there may be a backslash in them.
    """
    joined = _BETWEEN.join(insides)
    gaps = len(insides) - 1
    if b"" in insides or (escaped and joined.count(_BETWEEN) != gaps):
        return None  # nothing said is no delta
    try:
        words = _decode(b'"' + joined + b'"')
    except (ValueError, RecursionError):
        return None
    # One that ends in a lone backslash has swallowed what was put behind it.
    return words if not escaped or words.count("\0") == gaps else None


def _words_of_each(insides: list[bytes]) -> list[str] | None:
    """The same, one by one."""
    try:
        words = [_decode(b'"%b"' % inside) for inside in insides]
    except (ValueError, RecursionError):
        return None
    return None if "" in words or any("\0" in each for each in words) else words


def _same(before: Delta | None, now: Delta) -> bool:
    return before is not None and type(before) is type(now) and before.block == now.block
