"""Remove secrets from records. A chunk waits as long as later bytes could complete a secret in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

import msgspec

from ..observe.tap import (
    ClientBytes,
    ClientRequest,
    ExchangeEnded,
    Record,
    Redactor,
    StreamSecrets,
    Track,
    UpstreamBytes,
    UpstreamFailure,
    UpstreamRequest,
)
from ..observe.tap.redaction import Span, merge_spans, replace_spans


class RecordFilter:
    """Removes secrets from the records of one exchange."""

    def __init__(self, redactor: Redactor, track: Track) -> None:
        self._redactor = redactor
        self._track = track
        self._streams: dict[int, _StreamFilter] = {}
        self._early: list[Record] | None = []
        """Records before the first upstream request: until then the upstream's key may be unknown."""

    def filter(self, records: Iterable[Record]) -> list[Record]:
        """The records that can be written now."""
        out: list[Record] = []
        chunks: dict[int, list[UpstreamBytes | ClientBytes]] = {}
        for record in records:
            if isinstance(record, (UpstreamBytes, ClientBytes)):
                chunks.setdefault(record.call if isinstance(record, UpstreamBytes) else 0, []).append(record)
                continue
            if isinstance(record, (UpstreamRequest, ExchangeEnded)) and self._early is not None:
                out += [self._clean(one) for one in self._early]
                self._early = None
            if self._early is None:
                out.append(self._clean(record))
            else:
                self._early.append(record)
        for number, some in chunks.items():
            stream = self._streams.setdefault(number, _StreamFilter(self._redactor, self._track))
            out += stream.filter(some)
        return out

    def flush(self) -> list[Record]:
        """The remaining records, at the end of the exchange."""
        out = [self._clean(record) for record in self._early or ()]
        for stream in self._streams.values():
            out += stream.flush()
        return out

    def _clean(self, record: Record) -> Record:
        match record:
            case ClientRequest():
                return msgspec.structs.replace(
                    record,
                    path=self._text(record.path),
                    headers=self._headers(record.headers),
                    body=self._redactor.scrub(record.body, self._track.secrets),
                )
            case UpstreamRequest():
                return msgspec.structs.replace(
                    record,
                    url=self._text(record.url),
                    headers=self._headers(record.headers),
                    body=self._redactor.scrub(record.body, self._track.secrets),
                )
            case UpstreamFailure() | ExchangeEnded() if record.failure is not None:
                message = self._text(record.failure.message)
                failure = msgspec.structs.replace(record.failure, message=message)
                return msgspec.structs.replace(record, failure=failure)
            case _:
                return record

    def _text(self, text: str) -> str:
        return self._redactor.scrub_text(text, self._track.secrets)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: self._text(value) for name, value in headers.items()}


class _StreamFilter:
    """Removes secrets from the chunks of one stream."""

    def __init__(self, redactor: Redactor, track: Track) -> None:
        self._redactor = redactor
        self._track = track
        self._secrets = StreamSecrets(redactor, track.secrets)
        self._waiting: list[UpstreamBytes | ClientBytes] = []
        self._at = 0
        """The offset of the first waiting chunk in the stream."""

    def filter(self, chunks: list[UpstreamBytes | ClientBytes]) -> list[Record]:
        self._waiting += chunks
        self._secrets.feed(b"".join(chunk.data for chunk in chunks))
        data = b"".join(chunk.data for chunk in self._waiting)
        sure = len(data) - self._redactor.undecided(data, self._track.secrets)
        # Release whole chunks only, because the recording keeps the chunking. None may end inside a match.
        spans = self._redactor.spans(data, self._track.secrets)
        ends = list(accumulate(len(chunk.data) for chunk in self._waiting))
        count = bisect_right(ends, min(sure, self._secrets.safe_length() - self._at))
        for span in reversed(spans):
            while count and span.start < ends[count - 1] < span.end:
                count -= 1
        return self._released(count)

    def flush(self) -> list[Record]:
        self._secrets.close()
        return self._released(len(self._waiting))

    def _released(self, count: int) -> list[Record]:
        chunks, self._waiting = self._waiting[:count], self._waiting[count:]
        pieces = [chunk.data for chunk in chunks]
        data = b"".join(pieces)
        spans = self._redactor.spans(data, self._track.secrets)
        spans += [Span(one.start - self._at, one.end - self._at, one.shown) for one in self._secrets.spans()]
        self._at += len(data)
        self._secrets.discard_before(self._at)
        if not spans:
            return [*chunks]
        cleaned = replace_spans(pieces, merge_spans(spans))
        return [
            chunk if data == chunk.data else msgspec.structs.replace(chunk, data=data)
            for chunk, data in zip(chunks, cleaned, strict=True)
        ]
