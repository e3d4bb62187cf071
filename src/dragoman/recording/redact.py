"""Records without secrets. A chunk waits while what follows could still make a secret of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

import msgspec

from ..observe.tap import (
    Asked,
    Broke,
    Came,
    Ended,
    Read,
    Record,
    Redactor,
    Searched,
    StreamSecrets,
    Track,
    Went,
)
from ..observe.tap.redaction import Span, apart, without


class Censor:
    """One exchange's records on their way into a file."""

    def __init__(self, redactor: Redactor, track: Track) -> None:
        self._redactor = redactor
        self._track = track
        self._streams: dict[int, _Stream] = {}
        self._early: list[Record] | None = []
        """What comes before the first upstream is asked: until then its key may not be known."""

    def passed(self, records: Iterable[Record]) -> list[Record]:
        """What may be written now."""
        out: list[Record] = []
        chunks: dict[int, list[Came | Went]] = {}
        for record in records:
            if isinstance(record, (Came, Went)):
                chunks.setdefault(record.call if isinstance(record, Came) else 0, []).append(record)
                continue
            if isinstance(record, (Asked, Ended)) and self._early is not None:
                out += [self._clean(one) for one in self._early]
                self._early = None
            if self._early is None:
                out.append(self._clean(record))
            else:
                self._early.append(record)
        for number, some in chunks.items():
            stream = self._streams.setdefault(number, _Stream(self._redactor, self._track))
            out += stream.passed(some)
        return out

    def rest(self) -> list[Record]:
        """Nothing more will come."""
        out = [self._clean(record) for record in self._early or ()]
        for stream in self._streams.values():
            out += stream.rest()
        return out

    def _clean(self, record: Record) -> Record:
        match record:
            case Read():
                return msgspec.structs.replace(
                    record,
                    path=self._text(record.path),
                    headers=self._headers(record.headers),
                    body=self._redactor.scrub(record.body, self._track.secrets),
                )
            case Asked():
                return msgspec.structs.replace(
                    record,
                    url=self._text(record.url),
                    headers=self._headers(record.headers),
                    body=self._redactor.scrub(record.body, self._track.secrets),
                )
            case Searched():
                found = self._redactor.scrub(record.found, self._track.secrets)
                return msgspec.structs.replace(record, found=found)
            case Broke() | Ended() if record.failure is not None:
                message = self._text(record.failure.message)
                failure = msgspec.structs.replace(record.failure, message=message)
                return msgspec.structs.replace(record, failure=failure)
            case _:
                return record

    def _text(self, text: str) -> str:
        return self._redactor.scrub_text(text, self._track.secrets)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: self._text(value) for name, value in headers.items()}


class _Stream:
    """The chunks of one stream."""

    def __init__(self, redactor: Redactor, track: Track) -> None:
        self._redactor = redactor
        self._track = track
        self._said = StreamSecrets(redactor, track.secrets)
        self._waiting: list[Came | Went] = []
        self._at = 0
        """Where the first of them begins in the stream."""

    def passed(self, chunks: list[Came | Went]) -> list[Record]:
        self._waiting += chunks
        self._said.feed(b"".join(chunk.data for chunk in chunks))
        data = b"".join(chunk.data for chunk in self._waiting)
        sure = len(data) - self._redactor.unsure(data, self._track.secrets)
        # Whole chunks only: where they were cut is part of what happened. None may end inside a match.
        spans = self._redactor.spans(data, self._track.secrets)
        ends = list(accumulate(len(chunk.data) for chunk in self._waiting))
        count = bisect_right(ends, min(sure, self._said.settled() - self._at))
        for span in reversed(spans):
            while count and span.start < ends[count - 1] < span.end:
                count -= 1
        return self._released(count)

    def rest(self) -> list[Record]:
        self._said.close()
        return self._released(len(self._waiting))

    def _released(self, count: int) -> list[Record]:
        chunks, self._waiting = self._waiting[:count], self._waiting[count:]
        pieces = [chunk.data for chunk in chunks]
        data = b"".join(pieces)
        spans = self._redactor.spans(data, self._track.secrets)
        spans += [Span(one.start - self._at, one.end - self._at, one.shown) for one in self._said.spans()]
        self._at += len(data)
        self._said.forget(self._at)
        if not spans:
            return [*chunks]
        cleaned = without(pieces, apart(spans))
        return [
            chunk if data == chunk.data else msgspec.structs.replace(chunk, data=data)
            for chunk, data in zip(chunks, cleaned, strict=True)
        ]
