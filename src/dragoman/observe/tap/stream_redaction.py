"""Streams without secrets: neither in their bytes nor in what they say.

A model says a key in small deltas, each in an event of its own. No stretch of bytes holds that key, but
whoever joins the deltas has it. So the strings of a stream are joined as a client does it (`strings.py`), and
where the joined text holds a secret, each string that has a part of it is masked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from ...credentials.secret import Secret
from .json_strings import StringAt, Strings, text_of, within
from .redaction import PATTERN_REACH, Redactor, Span, apart, begun, without

# Bytes of a stream that may wait for what could follow. A part of a secret that is released after that is
# written; what follows of it is masked all the same.
_MOST_HELD = 256 * 1024
_MOST_TEXTS = 1024
# A shorter beginning of a secret gives nothing away: it is `sk-`, or any word.
_LEAST_HELD = 4


def scrub_stream(redactor: Redactor, chunks: Sequence[bytes], own: Iterable[Secret] = ()) -> list[bytes]:
    """The chunks of a stream that is over, without secrets."""
    own = tuple(own)
    data = b"".join(chunks)
    said = StreamSecrets(redactor, own)
    said.feed(data)
    said.close()
    spans = apart([*redactor.spans(data, own), *said.spans()])
    return without(chunks, spans) if spans else list(chunks)


class _Piece(NamedTuple):
    """A string of the stream, as a part of a joined text."""

    at: int
    """Where it begins in the text."""
    said: StringAt
    size: int
    """How long it is as text."""


class _Joined:
    """The text that strings of one place make together: as much of its end as matters."""

    __slots__ = ("_new", "base", "count", "held_from", "pieces", "text")

    def __init__(self) -> None:
        self.text = b""
        self.count = 0
        """How many strings were added."""
        self._new: list[bytes] = []
        """What is not in `text` yet."""
        self.base = 0
        """Where `text` begins in all that was said."""
        self.pieces: list[_Piece] = []
        self.held_from: int | None = None
        """From here on in the stream it is not known yet whether there is a secret."""

    def add(self, said: StringAt, text: bytes) -> None:
        at = self.pieces[-1].at + self.pieces[-1].size if self.pieces else self.base + len(self.text)
        self.pieces.append(_Piece(at, said, len(text)))
        self._new.append(text)
        self.count += 1

    def copy(self) -> _Joined:
        other = _Joined()
        other.text, other.base, other.count = self.text, self.base, self.count
        other.held_from = self.held_from
        other.pieces, other._new = [*self.pieces], [*self._new]
        return other

    def join(self) -> None:
        """What was added becomes a part of `text`."""
        self.text = b"".join([self.text, *self._new])
        self._new.clear()

    def parts(self, span: Span) -> list[Span]:
        """The stretches of the stream in which the secret at `span` of the text stands."""
        start, end = self.base + span.start, self.base + span.end
        first = bisect_right(self.pieces, start, key=lambda piece: piece.at) - 1
        carrying = list(takewhile(lambda piece: piece.at < end, islice(self.pieces, first, None)))
        shares = _shares(span.shown, len(carrying))
        return [_part(piece, start, end, share) for piece, share in zip(carrying, shares, strict=True)]

    def hold(self, size: int) -> None:
        """The last `size` bytes of the text may be the beginning of a secret."""
        end = self.base + len(self.text)
        pending = (piece.said.start for piece in self.pieces if piece.at + piece.size > end - size)
        self.held_from = next(pending, None) if size else None

    def trim(self, reach: int) -> None:
        """Only the last `reach` bytes can still become a part of a secret."""
        surplus = len(self.text) - reach
        if surplus > 0:
            self.text = self.text[surplus:]
            self.base += surplus
            self.pieces = [piece for piece in self.pieces if piece.at + piece.size > self.base]


class StreamSecrets:
    """Finds the secrets in what one stream says, as it comes."""

    def __init__(self, redactor: Redactor, own: Sequence[Secret]) -> None:
        """`own` may grow as long as the stream does."""
        self._redactor = redactor
        self._own = own
        self._strings = Strings()
        self._joined: dict[tuple[bytes, ...], _Joined] = {}
        self._first: dict[bytes, tuple[bytes, ...]] = {}
        self._several: set[bytes] = set()
        """The paths at which there are strings of several indexes."""
        self._size = 0
        self._spans: dict[int, Span] = {}
        """By where they begin."""
        self._written = 0

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        self._look(self._strings.feed(data))

    def close(self) -> None:
        self._look(self._strings.close())

    def spans(self) -> list[Span]:
        """The parts of secrets that stand in strings of the stream."""
        return list(self._spans.values())

    def forget(self, until: int) -> None:
        """What stands before `until` has been written."""
        self._written = until
        self._spans = {start: span for start, span in self._spans.items() if span.end > until}

    def settled(self) -> int:
        """How many bytes of the stream can be written: nothing that follows makes a secret of them."""
        held = [joined.held_from for joined in self._joined.values() if joined.held_from is not None]
        least = self._size - _MOST_HELD
        return min((at for at in (self._strings.given, *held) if at >= least), default=self._size)

    def _look(self, strings: Iterable[StringAt]) -> None:
        grown: dict[tuple[bytes, ...], _Joined] = {}
        for said in strings:
            text = text_of(said.raw)
            for key in self._keys(said):
                joined = grown.get(key)
                if joined is None:
                    joined = grown[key] = self._place(key)
                joined.add(said, text)
        if not grown:
            return
        for joined in grown.values():
            joined.join()
        if not self._are_clean(grown.values()):
            for joined in grown.values():
                self._mask(joined)
        self._settle(grown.values())

    def _keys(self, said: StringAt) -> tuple[tuple[bytes, ...], ...]:
        """The texts that a string may continue: what stood at its path, and what had its indexes there too.

        Some servers count `index` up with each fragment of one call, so both are tried.
        """
        whole, own = (said.path,), (said.path, *said.indexes)
        if len(self._first) > _MOST_TEXTS:
            self._first.clear()
            self._several.clear()
        first = self._first.setdefault(said.path, own)
        if first == own and said.path not in self._several:
            return (whole,)  # as long as there is one index, both are the same
        if said.path not in self._several:
            self._several.add(said.path)
            if whole in self._joined:
                self._joined[first] = self._joined[whole].copy()
        return whole, own

    def _place(self, key: tuple[bytes, ...]) -> _Joined:
        """The text of a place. Those that grew last stand last."""
        joined = self._joined.pop(key, None) or _Joined()
        self._joined[key] = joined
        if len(self._joined) > _MOST_TEXTS:
            del self._joined[next(iter(self._joined))]
        return joined

    def _are_clean(self, grown: Iterable[_Joined]) -> bool:
        """Nearly always they are, and that is seen of all at once."""
        # Not with patterns: `^` is the beginning of a text.
        texts = b"\n".join(joined.text for joined in grown)
        return not self._redactor.patterns and not self._redactor.spans(texts, self._own)

    def _mask(self, joined: _Joined) -> None:
        for span in self._redactor.spans(joined.text, self._own):
            for part in joined.parts(span):
                known = self._spans.get(part.start)
                if known is not None and known.end > part.end:
                    continue
                if known is not None or part.start >= self._written:  # else it is too late for this part
                    self._spans[part.start] = part

    def _settle(self, grown: Iterable[_Joined]) -> None:
        forms = self._redactor.forms(self._own)
        reach = max((len(form) - 1 for form, _ in forms), default=0)
        patterns = bool(self._redactor.patterns)
        for joined in grown:
            joined.trim(max(reach, PATTERN_REACH) if patterns else reach)
            size = max((begun(form, joined.text) for form, _ in forms), default=0)
            if patterns and joined.count > 1:  # what goes on may become anything
                size = len(joined.text)
            joined.hold(size if size >= _LEAST_HELD else 0)


def _part(piece: _Piece, start: int, end: int, shown: bytes) -> Span:
    """What of `piece` stands between `start` and `end` of the text."""
    first, last = within(piece.said.raw, max(start - piece.at, 0), min(end - piece.at, piece.size))
    return Span(piece.said.start + first, piece.said.start + last, shown)


def _shares(shown: bytes, count: int) -> list[bytes]:
    """`shown` spread over `count` strings: none becomes empty, so that each delta stays one.

    >>> _shares(b"#e7f15906", 3), _shares(b"#e7", 5)
    ([b'#', b'e', b'7f15906'], [b'#', b'e', b'7', b'*', b'*'])
    """
    shares = [shown[at : at + 1] or b"*" for at in range(count - 1)]
    return [*shares, shown[count - 1 :] or b"*"]
