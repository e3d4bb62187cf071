"""Write a stream as one JSON array: Google streams like that without `alt=sse`.

The bytes between the elements are Google's, so that a client that splits the text by them works, too.
"""

from __future__ import annotations

from .sse import SSEReader


class ArrayWriter:
    r"""`feed` takes whole server-sent events and returns their data as elements; `close` ends the array.

    >>> array = ArrayWriter()
    >>> array.feed(b'data: {"a":1}\r\n\r\n') + array.feed(b'data: {"b":2}\r\n\r\n') + array.close()
    b'[{"a":1}\n,\r\n{"b":2}\n]\n'
    """

    content_type = "application/json"

    def __init__(self) -> None:
        self._reader = SSEReader()
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        out: list[bytes] = []
        for frame in self._reader.feed(data):
            out.append(b"\n,\r\n" if self._begun else b"[")
            out.append(frame.data)
            self._begun = True
        return b"".join(out)

    def close(self) -> bytes:
        return b"\n]\n" if self._begun else b"[]\n"
