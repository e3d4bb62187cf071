"""An answer whose head has arrived. After its end is read, the connection can be used again."""

from __future__ import annotations

from collections.abc import Mapping

from .codings import decoder_for
from .errors import CutOff, HttpError
from .transfer import Transfer

# After the last event of a stream, usually only the end of the transfer is missing. Waiting for it in the
# background, for at most this time and size, keeps the connection for the next request.
_LINGER = 0.5
_LINGER_BYTES = 16 * 1024


class CurlResponse:
    """See `contract.Response`."""

    __slots__ = ("_decoder", "_error", "_idle", "_transfer", "headers", "status")

    def __init__(self, transfer: Transfer, idle_timeout: float) -> None:
        self.status = transfer.head.status
        self.headers: Mapping[str, str] = transfer.head.headers
        self._decoder = decoder_for(self.headers.get("content-encoding", ""))
        self._transfer = transfer
        self._idle = idle_timeout
        self._error: HttpError | None = None

    async def chunk(self) -> bytes:
        if self._error is not None:
            raise self._error
        try:
            if self._decoder is None:
                return await self._transfer.data(self._idle)
            return await self._decoded()
        except HttpError as error:
            self._error = error
            await self.close()
            raise

    async def read(self, largest: int) -> bytes:
        parts: list[bytes] = []
        while largest > 0 and (data := await self.chunk()):
            parts.append(data[:largest])
            largest -= len(data)
        return b"".join(parts)

    async def close(self) -> None:
        self._transfer.drop(CutOff("was not read to its end"))

    def release(self) -> None:
        self._transfer.linger(_LINGER, _LINGER_BYTES)

    async def _decoded(self) -> bytes:
        decoder = self._decoder
        assert decoder is not None
        if data := decoder.feed(b""):
            return data
        while piece := await self._transfer.data(self._idle):
            if data := decoder.feed(piece):
                return data
        decoder.end()
        return b""
