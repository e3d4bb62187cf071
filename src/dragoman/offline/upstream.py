"""The upstream of the replay server: an HTTP client that answers from recordings and opens no connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from ..conform.scripted.replies import Cut, Reply, Step, Wait
from ..model.events import Failed
from ..protocols.common.failures import UpstreamFailed
from ..recording.format import RecordedCall
from ..transport.client import (
    DEFAULT_NETWORK,
    Broken,
    CannotConnect,
    Client,
    CutOff,
    Disconnected,
    Network,
    OpenClient,
    Response,
    Upload,
)
from ..transport.client.contract import CONNECT_TIMEOUT, IDLE_TIMEOUT, NO_HEADERS

ORIGIN = "http://replay.invalid"
"""The address of all recordings. `.invalid` never exists (RFC 2606)."""
_NOT_HERE = Reply(status=404, steps=(b'{"error":{"message":"this is only a recording"}}',))


class RecordedAnswer:
    """What one exchange gets from its upstream, request by request."""

    def __init__(self, calls: tuple[RecordedCall, ...] = (), reply: Reply | None = None) -> None:
        self._calls = deque(calls)
        self._reply = reply

    def next(self) -> tuple[Reply, Failed | None]:
        """The next reply, and how it breaks off. A retry after the last one gets the last one again."""
        if self._reply is not None:
            return self._reply, None
        call = self._calls.popleft() if len(self._calls) > 1 else self._calls[0]
        failed = None if call.failed is None or call.failed.own else call.failed.failure
        if call.status is None:
            raise UpstreamFailed(failed, retryable=False) if failed else Disconnected("closed the connection")
        wait = call.failed.failure.retry_after if call.failed is not None else None
        headers = {} if wait is None else {"retry-after": f"{wait:g}"}
        steps = tuple(chunk.data for chunk in call.received)
        refused = not 200 <= call.status < 300
        return Reply(status=call.status, steps=steps, headers=headers), None if refused else failed


class Answers:
    """The answers that wait for the upstream requests of their exchanges."""

    def __init__(self) -> None:
        self._waiting: dict[str, RecordedAnswer] = {}
        self._number = 0

    def add(self, answer: RecordedAnswer) -> str:
        """Returns the base URL at which this answer is found."""
        self._number += 1
        self._waiting[str(self._number)] = answer
        return f"{ORIGIN}/{self._number}"

    def at(self, url: str) -> RecordedAnswer | None:
        return self._waiting.get(urlsplit(url).path.split("/")[1])

    def remove(self, base_url: str) -> None:
        self._waiting.pop(base_url.rpartition("/")[2], None)


class RecordedClient:
    """See `contract.Client`. Requests to other addresses go to `others`, or fail."""

    def __init__(self, answers: Answers, others: Client | None) -> None:
        self._answers = answers
        self._others = others

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | Upload = b"",
        connect_timeout: float = CONNECT_TIMEOUT,
        idle_timeout: float = IDLE_TIMEOUT,
        network: Network = DEFAULT_NETWORK,
    ) -> Response:
        if not url.startswith(f"{ORIGIN}/"):
            if self._others is None:
                place = urlsplit(url)
                raise CannotConnect(place.hostname or "", place.port or 443, "a replay contacts no server")
            return await self._others.request(
                method, url, headers, body, connect_timeout, idle_timeout, network
            )
        answer = self._answers.at(url)
        reply, failed = (_NOT_HERE, None) if answer is None else answer.next()
        await asyncio.sleep(reply.delay)
        return RecordedResponse(reply, failed)

    async def close(self) -> None:
        if self._others is not None:
            await self._others.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class RecordedResponse:
    """See `contract.Response`."""

    def __init__(self, reply: Reply, failed: Failed | None) -> None:
        self.status = reply.status
        self.headers: Mapping[str, str] = {"content-type": reply.content_type, **reply.headers}
        self._steps: Iterator[Step] = iter(reply.steps)
        self._failed = failed

    async def chunk(self) -> bytes:
        for step in self._steps:
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Cut):
                raise Broken("reset the connection") if step.reset else CutOff("broke off its answer")
            elif step:
                return step
        if self._failed is not None:
            raise UpstreamFailed(self._failed, retryable=False)
        return b""

    async def read(self, largest: int) -> bytes:
        parts: list[bytes] = []
        while largest > 0 and (data := await self.chunk()):
            parts.append(data[:largest])
            largest -= len(data)
        return b"".join(parts)

    async def close(self) -> None:
        self._steps = iter(())

    def release(self) -> None:
        self._steps = iter(())


def opening(answers: Answers, others: OpenClient | None) -> OpenClient:
    """A replacement for `open_client`."""
    return lambda headers: RecordedClient(answers, others(headers) if others else None)
