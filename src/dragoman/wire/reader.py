"""Read frames from an upstream's bytes, for every framing.

The first byte that is not whitespace decides the framing. The content type is not reliable: servers answer a
request for a stream with one JSON body, label JSON as an event stream, and an event stream as JSON. DeepSeek
labels a JSON error as `application/octet-stream`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .event_stream import FIRST_BYTES, EventStreamReader
from .frames import DEFAULT_MAX_FRAME, Frame
from .jsondocs import ArrayReader, DocumentReader
from .sse import SSEReader

_Reader = SSEReader | DocumentReader | ArrayReader | EventStreamReader
_BLANK = b" \t\r\n\xef\xbb\xbf"


class FrameReader:
    """`feed` takes bytes and returns frames; `close` returns the last one. Exhaust each iterator first."""

    __slots__ = ("_max_frame", "_reader", "streaming")

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._reader: _Reader | None = None
        self.streaming = True
        """Is this a stream (SSE, an array or AWS's event stream), not a JSON body?"""

    def feed(self, data: bytes) -> Iterator[Frame]:
        if self._reader is None:
            data = data.lstrip(_BLANK)
            if not data:
                return iter(())
            self._reader = self._choose(data[:1])
        return self._reader.feed(data)

    def close(self) -> Iterator[Frame]:
        return self._reader.close() if self._reader else iter(())

    def _choose(self, first: bytes) -> _Reader:
        if first == b"{":
            self.streaming = False
            return DocumentReader(self._max_frame)
        if first == b"[":
            return ArrayReader(self._max_frame)
        if first in FIRST_BYTES:
            return EventStreamReader(self._max_frame)
        return SSEReader(self._max_frame)
