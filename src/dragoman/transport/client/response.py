"""An answer whose head is there. Once it is read to its end, its connection is free again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping
from typing import Any, Protocol

from .codings import decoder_for
from .errors import CutOff, HttpError, Silent
from .faults import LIBRARY_ERRORS, amid_answer

# After an answer's last word only the end of the transfer is missing. Waiting that long for it, behind the
# asker's back, saves the next request a new connection.
_LINGER = 0.5
_LINGER_BYTES = 16 * 1024


class Raw(Protocol):
    """The body of the library's answer."""

    @property
    def content(self) -> AsyncIterator[bytes | bytearray | memoryview]: ...
    def aclose(self) -> Awaitable[None]: ...


class Owner(Protocol):
    """Who gets the connection back."""

    def over(self) -> None:
        """Called once: the answer was read to its end, or given up."""
        ...

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` while the client is open."""
        ...


class HttpResponse:
    """See `contract.Response`."""

    __slots__ = ("_content", "_decoder", "_error", "_idle", "_owner", "_raw", "headers", "status")

    def __init__(
        self, status: int, headers: Mapping[str, str], raw: Raw, owner: Owner, idle_timeout: float
    ) -> None:
        self.status = status
        self.headers = headers
        self._raw = raw
        self._decoder = decoder_for(headers.get("content-encoding", ""))
        self._content = raw.content
        self._owner: Owner | None = owner
        self._idle = idle_timeout
        self._error: HttpError | None = None

    async def chunk(self) -> bytes:
        decoder = self._decoder
        if decoder is None:
            return await self._piece()
        while True:
            if data := decoder.feed(decoder.waiting):
                return data
            piece = await self._piece()
            if not piece:
                decoder.end()
                return b""
            if data := decoder.feed(piece):
                return data

    async def read(self, largest: int) -> bytes:
        parts: list[bytes] = []
        while largest > 0 and (data := await self.chunk()):
            parts.append(data[:largest])
            largest -= len(data)
        return b"".join(parts)

    async def close(self) -> None:
        if self._owner is not None:
            self._error = self._error or CutOff("was not read to its end")
            self._over()
            await self._raw.aclose()

    def leave(self) -> None:
        if self._owner is not None:
            self._owner.later(self._linger())

    async def _piece(self) -> bytes:
        """The next bytes that came, empty at the end."""
        while self._owner is not None:
            try:
                async with asyncio.timeout(self._idle):
                    data = await anext(self._content)
            except StopAsyncIteration:
                self._over()
                break
            except LIBRARY_ERRORS as error:
                silent = type(error) is TimeoutError  # asyncio's own
                self._error = Silent("sent nothing for too long") if silent else amid_answer(error)
                await self.close()
            else:
                if data:
                    return bytes(data)
        if self._error is not None:
            raise self._error
        return b""

    async def _linger(self) -> None:
        left = _LINGER_BYTES
        try:
            async with asyncio.timeout(_LINGER):
                while left > 0 and (piece := await self._piece()):
                    left -= len(piece)
        except (HttpError, TimeoutError):
            pass
        finally:
            await self.close()

    def _over(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None:
            owner.over()
