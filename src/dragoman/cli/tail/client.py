"""Read the exchanges of a running gateway over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import msgspec

from ...credentials.secret import Secret
from ...model.errors import DragomanError
from ...observe.receipts import Detail, ExchangeSummary, Page
from ...transport.client import Client, HttpError, Response, open_client
from ...wire.sse import SSEReader

# The gateway sends a keepalive every fifteen seconds; a stream that is silent for longer than this is dead.
_SILENCE = 60.0
_TIMEOUT = 15.0
_LARGEST = 256 * 1024 * 1024


class Unreachable(DragomanError):
    """The gateway does not answer, or its answer is not usable."""


class GatewayClient:
    """A client for one gateway. Every failure is an `Unreachable` that says what to do."""

    def __init__(self, url: str, key: Secret | None = None) -> None:
        self._url = url.rstrip("/")
        self._headers = {"x-api-key": key.reveal()} if key else {}
        self._client: Client | None = None

    async def __aenter__(self) -> GatewayClient:
        self._client = open_client()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def recent(self, query: Mapping[str, str], limit: int) -> list[ExchangeSummary]:
        """The newest exchanges that match `query`, newest first."""
        async with self._get("/exchanges", {**query, "limit": str(limit)}) as response:
            return _decoded(await response.read(_LARGEST), Page).exchanges

    async def receipt(self, id: str) -> Detail:
        async with self._get(f"/exchanges/{id}") as response:
            return _decoded(await response.read(_LARGEST), Detail)

    @asynccontextmanager
    async def live(self) -> AsyncGenerator[AsyncIterator[ExchangeSummary]]:
        """A stream of summaries: one each time an exchange begins, advances or ends."""
        async with self._get("/exchanges/live") as response:
            yield _summaries(response)

    @asynccontextmanager
    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> AsyncGenerator[Response]:
        response = None
        try:
            response = await self._ask(self._url + path + (f"?{urlencode(query)}" if query else ""))
            if response.status != 200:
                raise Unreachable(self._refused(response.status, await response.read(_LARGEST)))
            yield response
        except HttpError as error:
            raise self._missing(error) from None
        finally:
            if response is not None:
                await response.close()

    async def _ask(self, url: str) -> Response:
        assert self._client is not None
        try:
            return await self._client.request(
                "GET", url, self._headers, connect_timeout=_TIMEOUT, idle_timeout=_SILENCE
            )
        except ValueError as error:  # the transport's sentence about a wrong URL
            raise Unreachable(f"{self._url}: {error}") from None

    def _refused(self, status: int, body: bytes) -> str:
        if status == 401 and not self._headers:
            return f"the gateway at {self._url} needs a key: set DRAGOMAN_KEY, or give --key"
        if status == 401:
            return f"the gateway at {self._url} refuses this key: give another one with DRAGOMAN_KEY or --key"
        if status == 404:
            return f"the server at {self._url} has no /exchanges: is it a Dragoman gateway?"
        try:
            reason = msgspec.json.decode(body)["error"]["message"]
        except (msgspec.DecodeError, KeyError, TypeError):
            reason = "no reason given"
        return f"the gateway at {self._url} refused with {status}: {reason}"

    def _missing(self, error: Exception) -> Unreachable:
        return Unreachable(
            f"no gateway answers at {self._url} (it {error}): start `dragoman serve`, or give another --url"
        )


async def _summaries(response: Response) -> AsyncIterator[ExchangeSummary]:
    reader = SSEReader()
    while data := await response.chunk():
        for frame in reader.feed(data):
            if frame.event == "exchange":
                yield _decoded(frame.data, ExchangeSummary)


def _decoded(data: bytes, type: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.DecodeError as error:
        raise Unreachable(
            f"the gateway's answer cannot be read; is it another version of Dragoman? ({error})"
        ) from None
