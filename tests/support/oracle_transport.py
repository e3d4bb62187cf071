"""A mock HTTP transport for the official SDKs: every request gets the prepared bytes."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2


@dataclass(slots=True)
class Reply:
    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    piece: int | None = None


class Wire:
    """Gives one `Reply` at a time. `client` is the HTTP client for an SDK."""

    def __init__(self) -> None:
        self.reply = Reply()
        self.client = httpx2.Client(transport=httpx2.MockTransport(self._answer))

    def _answer(self, _: httpx2.Request) -> httpx2.Response:
        reply = self.reply
        headers = {"content-type": reply.content_type}
        return httpx2.Response(reply.status, headers=headers, stream=_Pieces(reply))


class _Pieces(httpx2.SyncByteStream):
    def __init__(self, reply: Reply) -> None:
        self._body = reply.body
        self._size = reply.piece or max(len(reply.body), 1)

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self._body), self._size):
            yield self._body[start : start + self._size]
