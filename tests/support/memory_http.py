"""An HTTP client without sockets: it implements the client's contract and calls a server handler."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from dragoman.transport.client import (
    DEFAULT_NETWORK,
    Client,
    CutOff,
    Disconnected,
    Network,
    Silent,
    Unsendable,
)
from dragoman.transport.server import ClientGone, Handler, HttpAnswer, HttpRequest, HttpResponse, Stream
from dragoman.transport.urls import parse

_PIECES = 8
"""So many pieces of an answer may wait for the client to read them."""


def opening(handler: Handler) -> Callable[[Mapping[str, str]], Client]:
    """A replacement for `open_client`: its clients call `handler`."""
    return lambda headers: MemoryClient(handler, headers)


class MemoryClient:
    """See `contract.Client`."""

    def __init__(self, handler: Handler, headers: Mapping[str, str] | None = None) -> None:
        self._handler = handler
        self._headers = dict(headers or {})
        self._answers: list[_Answer] = []

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        connect_timeout: float = 30.0,
        idle_timeout: float = 300.0,
        network: Network = DEFAULT_NETWORK,
    ) -> "_Answer":
        try:
            place = parse(url)
        except ValueError as error:
            raise Unsendable(str(error)) from None
        fields = {"host": place.authority, **self._headers, **(headers or {})}
        if body:
            fields["content-length"] = str(len(body))

        async def read() -> bytes:
            return body

        answer = _Answer(idle_timeout)
        named = {name.lower(): value for name, value in fields.items()}
        request = HttpRequest(method, place.target, named, read, answer.sink, client="127.0.0.1")
        answer.begin(self._handler, request)
        self._answers.append(answer)
        await answer.head()
        return answer

    async def close(self) -> None:
        for answer in self._answers:
            await answer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Sink:
    """See `request.Sink`."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.broken = False
        self.gone = False

    @property
    def slow(self) -> bool:
        return self.pieces.full()

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.begun.set()

    async def write(self, data: bytes) -> None:
        if self.gone or self.broken:
            raise ClientGone
        await self.pieces.put(data)

    async def end(self, last: bytes = b"") -> None:
        if last:
            await self.write(last)
        await self.pieces.put(None)

    def abort(self) -> None:
        self.broken = True


class _Answer:
    """See `contract.Response`."""

    def __init__(self, idle_timeout: float) -> None:
        self.sink = _Sink()
        self._idle = idle_timeout
        self._task: asyncio.Task[None] | None = None
        self._over = False

    @property
    def status(self) -> int:
        return self.sink.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.sink.headers

    def begin(self, handler: Handler, request: HttpRequest) -> None:
        self._task = asyncio.create_task(self._run(handler, request))

    async def _run(self, handler: Handler, request: HttpRequest) -> None:
        try:
            answer: HttpAnswer = await handler(request)
            if isinstance(answer, Stream):
                await answer.end()
            else:
                assert isinstance(answer, HttpResponse), "a client does not ask for upgrades"
                if self.sink.begun.is_set():
                    raise ClientGone
                await self.sink.begin(answer.status, answer.headers)
                await self.sink.end(b"" if request.method == "HEAD" else answer.body)
        except (ClientGone, RuntimeError):
            self.sink.broken = True

    async def head(self) -> None:
        assert self._task is not None
        begun = asyncio.create_task(self.sink.begun.wait())
        try:
            await asyncio.wait((begun, self._task), timeout=self._idle, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            begun.cancel()
        if self.sink.begun.is_set():
            return
        ended = self._task.done()
        await self.close()
        raise (Disconnected if ended else Silent)("did not answer")

    async def chunk(self) -> bytes:
        if self._over:
            return b""
        assert self._task is not None
        next_piece = asyncio.create_task(self.sink.pieces.get())
        try:
            await asyncio.wait(
                (next_piece, self._task), timeout=self._idle, return_when=asyncio.FIRST_COMPLETED
            )
            await asyncio.sleep(0)  # bytes that were written just before the handler ended
            if not next_piece.done():
                ended = self._task.done()
                await self.close()
                raise (CutOff if ended else Silent)("ended in the middle of its answer")
            piece = next_piece.result()
        finally:
            next_piece.cancel()
        if piece is None:
            self._over = True
            return b""
        return piece

    async def read(self, largest: int) -> bytes:
        parts: list[bytes] = []
        while largest > 0 and (data := await self.chunk()):
            parts.append(data[:largest])
            largest -= len(data)
        return b"".join(parts)

    async def close(self) -> None:
        self._over = True
        self.sink.gone = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def release(self) -> None:
        self.sink.gone = True
