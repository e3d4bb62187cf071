"""The built-in upstream: plays the cases of the corpus to the tested gateway.

It speaks every protocol on one port. The text of a request names its case. So the gateway may rename models,
reorder requests and retry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..transport.server import HttpRequest, Stream
from . import corpus
from .scripted.model import ScriptedModel
from .scripted.replies import Reply, Step, Wait
from .scripted.server import Stop, play, reply_to, spoken_in, start
from .shape import Json

_WANTED = re.compile(rb"conformance-case:([a-z0-9.-]+)")
# A pause between chunks keeps them in separate TCP segments: some cases are about the split.
_PAUSE, _MANY = 0.002, 100


class CaseUpstream:
    """The server. `asked` maps a case to the protocols in which the gateway requested it."""

    def __init__(self, cases: list[Json]) -> None:
        self.url = ""
        self.asked: dict[str, set[str]] = {}
        self._cases: dict[str, Json] = {case["id"]: case for case in cases}
        self._otherwise = ScriptedModel()
        self._stop: Stop | None = None

    async def start(self, port: int) -> None:
        self.url, self._stop = await start(self._handle, port)

    async def stop(self) -> None:
        if self._stop is not None:
            await self._stop()

    async def _handle(self, request: HttpRequest) -> Stream:
        body = bytes(await request.read())
        case = self._case(body)
        if case is None:
            # Lists of models, token counts, and the gateway's own health checks.
            return await play(request, reply_to(self._otherwise, request, body))
        self.asked.setdefault(case["id"], set()).add(spoken_in(request).name)
        return await play(request, _reply(case))

    def _case(self, body: bytes) -> Json | None:
        match = _WANTED.search(body)
        return self._cases.get(match[1].decode()) if match else None


def _reply(case: Json) -> Reply:
    return Reply(steps=_steps(corpus.upstream_chunks(case)), content_type=corpus.content_type(case))


def _steps(chunks: list[bytes]) -> Iterator[Step]:
    # Even the shortest pause takes a millisecond: too long for a case that sends single bytes.
    pause = _PAUSE if len(chunks) <= _MANY else 0.0
    for chunk in chunks:
        yield chunk
        yield Wait(pause)
