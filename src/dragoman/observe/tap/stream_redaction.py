"""Remove secrets from streams, even a secret that is split over many events.

A model may write a key in small deltas, each in its own event. No range of bytes holds the key, but a reader
who joins the deltas gets it. So the strings of a stream are joined like a client does (`json_strings.py`).
If the joined text holds a secret, every string with a part of it is masked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from ...credentials.secret import Secret
from .json_strings import StringAt, Strings, text_of, within
from .redaction import PATTERN_REACH, Redactor, Span, merge_spans, partial_match, replace_spans

# Bytes of a stream that may wait because a secret could follow. Beyond that they are released; the rest of
# such a secret is still masked.
_MAX_HELD = 256 * 1024
_MAX_TEXTS = 1024
# A shorter start of a secret reveals nothing: it may be `sk-` or any word.
_LEAST_HELD = 4


def scrub_stream(redactor: Redactor, chunks: Sequence[bytes], own: Iterable[Secret] = ()) -> list[bytes]:
    """The chunks of a finished stream, without secrets."""
    own = tuple(own)
    data = b"".join(chunks)
    secrets = StreamSecrets(redactor, own)
    secrets.feed(data)
    secrets.close()
    spans = merge_spans([*redactor.spans(data, own), *secrets.spans()])
    return replace_spans(chunks, spans) if spans else list(chunks)


class _Piece(NamedTuple):
    """A string of the stream, as a part of a joined text."""

    at: int
    """Its offset in the joined text."""
    string: StringAt
    size: int
    """The length of its decoded text."""


class _JoinedText:
    """The joined text of the strings at one path: only as much of its end as a secret can need."""

    __slots__ = ("_new", "base", "count", "held_from", "pieces", "text")

    def __init__(self) -> None:
        self.text = b""
        self.count = 0
        """The number of strings so far."""
        self._new: list[bytes] = []
        """Strings that are not in `text` yet."""
        self.base = 0
        """The offset of `text` in the full joined text."""
        self.pieces: list[_Piece] = []
        self.held_from: int | None = None
        """The offset in the stream from which a secret may begin; None if none may."""

    def add(self, string: StringAt, text: bytes) -> None:
        at = self.pieces[-1].at + self.pieces[-1].size if self.pieces else self.base + len(self.text)
        self.pieces.append(_Piece(at, string, len(text)))
        self._new.append(text)
        self.count += 1

    def copy(self) -> _JoinedText:
        other = _JoinedText()
        other.text, other.base, other.count = self.text, self.base, self.count
        other.held_from = self.held_from
        other.pieces, other._new = [*self.pieces], [*self._new]
        return other

    def join(self) -> None:
        """Append the new strings to `text`."""
        self.text = b"".join([self.text, *self._new])
        self._new.clear()

    def parts(self, span: Span) -> list[Span]:
        """The ranges of the stream that hold the secret at `span` of the text."""
        start, end = self.base + span.start, self.base + span.end
        first = bisect_right(self.pieces, start, key=lambda piece: piece.at) - 1
        carrying = list(takewhile(lambda piece: piece.at < end, islice(self.pieces, first, None)))
        shares = _shares(span.shown, len(carrying))
        return [_part(piece, start, end, share) for piece, share in zip(carrying, shares, strict=True)]

    def hold(self, size: int) -> None:
        """Hold the strings of the last `size` bytes: they may be the start of a secret."""
        end = self.base + len(self.text)
        pending = (piece.string.start for piece in self.pieces if piece.at + piece.size > end - size)
        self.held_from = next(pending, None) if size else None

    def trim(self, reach: int) -> None:
        """Keep only the last `reach` bytes: earlier ones cannot be part of a later secret."""
        surplus = len(self.text) - reach
        if surplus > 0:
            self.text = self.text[surplus:]
            self.base += surplus
            self.pieces = [piece for piece in self.pieces if piece.at + piece.size > self.base]


class StreamSecrets:
    """Finds the secrets in the joined strings of one stream, as it arrives."""

    def __init__(self, redactor: Redactor, own: Sequence[Secret]) -> None:
        """`own` may grow while the stream runs."""
        self._redactor = redactor
        self._own = own
        self._strings = Strings()
        self._joined: dict[tuple[bytes, ...], _JoinedText] = {}
        self._first: dict[bytes, tuple[bytes, ...]] = {}
        self._several: set[bytes] = set()
        """Paths whose strings have several different indexes."""
        self._size = 0
        self._spans: dict[int, Span] = {}
        """By their start."""
        self._written = 0

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        self._scan(self._strings.feed(data))

    def close(self) -> None:
        self._scan(self._strings.close())

    def spans(self) -> list[Span]:
        """The ranges of the stream to mask."""
        return list(self._spans.values())

    def discard_before(self, until: int) -> None:
        """Forget the spans before `until`: those bytes have been written."""
        self._written = until
        self._spans = {start: span for start, span in self._spans.items() if span.end > until}

    def safe_length(self) -> int:
        """The number of bytes that can be written: no later byte can make a secret of them."""
        held = [joined.held_from for joined in self._joined.values() if joined.held_from is not None]
        least = self._size - _MAX_HELD
        return min((at for at in (self._strings.given, *held) if at >= least), default=self._size)

    def _scan(self, strings: Iterable[StringAt]) -> None:
        grown: dict[tuple[bytes, ...], _JoinedText] = {}
        for string in strings:
            text = text_of(string.raw)
            for key in self._keys(string):
                joined = grown.get(key)
                if joined is None:
                    joined = grown[key] = self._joined_text(key)
                joined.add(string, text)
        if not grown:
            return
        for joined in grown.values():
            joined.join()
        if not self._are_clean(grown.values()):
            for joined in grown.values():
                self._mask(joined)
        self._hold_undecided(grown.values())

    def _keys(self, string: StringAt) -> tuple[tuple[bytes, ...], ...]:
        """The joined texts that a string may continue: by its path, and by its path and indexes.

        Some servers increment `index` with each fragment of one call, so both are tried.
        """
        whole, own = (string.path,), (string.path, *string.indexes)
        if len(self._first) > _MAX_TEXTS:
            self._first.clear()
            self._several.clear()
        first = self._first.setdefault(string.path, own)
        if first == own and string.path not in self._several:
            return (whole,)  # with a single index both texts are equal
        if string.path not in self._several:
            self._several.add(string.path)
            if whole in self._joined:
                self._joined[first] = self._joined[whole].copy()
        return whole, own

    def _joined_text(self, key: tuple[bytes, ...]) -> _JoinedText:
        """The joined text for a key. Least recently used texts come first and are dropped first."""
        joined = self._joined.pop(key, None) or _JoinedText()
        self._joined[key] = joined
        if len(self._joined) > _MAX_TEXTS:
            del self._joined[next(iter(self._joined))]
        return joined

    def _are_clean(self, grown: Iterable[_JoinedText]) -> bool:
        """Search all texts at once, because nearly all of them are clean."""
        # Patterns need single texts, because `^` means the start of a text.
        texts = b"\n".join(joined.text for joined in grown)
        return not self._redactor.patterns and not self._redactor.spans(texts, self._own)

    def _mask(self, joined: _JoinedText) -> None:
        for span in self._redactor.spans(joined.text, self._own):
            for part in joined.parts(span):
                known = self._spans.get(part.start)
                if known is not None and known.end > part.end:
                    continue
                if (
                    known is not None or part.start >= self._written
                ):  # otherwise the part has already been written
                    self._spans[part.start] = part

    def _hold_undecided(self, grown: Iterable[_JoinedText]) -> None:
        forms = self._redactor.forms(self._own)
        reach = max((len(form) - 1 for form, _ in forms), default=0)
        patterns = bool(self._redactor.patterns)
        for joined in grown:
            joined.trim(max(reach, PATTERN_REACH) if patterns else reach)
            size = max((partial_match(form, joined.text) for form, _ in forms), default=0)
            if patterns and joined.count > 1:  # a pattern may match any continuation
                size = len(joined.text)
            joined.hold(size if size >= _LEAST_HELD else 0)


def _part(piece: _Piece, start: int, end: int, shown: bytes) -> Span:
    """The range of the stream for the part of `piece` between `start` and `end` of the text."""
    first, last = within(piece.string.raw, max(start - piece.at, 0), min(end - piece.at, piece.size))
    return Span(piece.string.start + first, piece.string.start + last, shown)


def _shares(shown: bytes, count: int) -> list[bytes]:
    """Spread `shown` over `count` strings, so that no delta becomes empty.

    >>> _shares(b"#e7f15906", 3), _shares(b"#e7", 5)
    ([b'#', b'e', b'7f15906'], [b'#', b'e', b'7', b'*', b'*'])
    """
    shares = [shown[at : at + 1] or b"*" for at in range(count - 1)]
    return [*shares, shown[count - 1 :] or b"*"]
