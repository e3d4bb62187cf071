"""Sending an answer over HTTP: held until it is worth sending, then kept alive, then ended well."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from ..model.messages import Notice
from ..observe.tap import Track
from ..protocols.base import ClientProtocol
from ..recording.replay import MOST_HELD
from ..transport.server import ClientGone, Request, Response, Stream
from ..wire.arrays import ArrayWriter
from .client_settings import Manner
from .keepalive import Beats

_UNPRINTABLE = re.compile(r"[^ -~]")


def answer_headers(id: str, notices: Sequence[Notice] = ()) -> dict[str, str]:
    """What every answer says of itself: which exchange it belongs to, and what could not be carried over."""
    headers = {"x-dragoman-exchange": id, "request-id": id, "x-request-id": id}
    if notices:
        said = "; ".join(f"{n.rule} {n.path}" for n in notices)
        # Paths have words of the client's in them: nothing that could end a header goes into one.
        headers["x-dragoman-warnings"] = _UNPRINTABLE.sub("?", said[:2000])
    return headers


_JSON = {"content-type": "application/json"}
_LIVE = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_EVENTS = {"content-type": "text/event-stream", **_LIVE}
_ARRAY = {**_JSON, **_LIVE}


def whole_reply(body: bytes, id: str, notices: Sequence[Notice]) -> Response:
    """An answer that is not streamed."""
    return Response(body, headers={**answer_headers(id, notices), **_JSON})


class StreamReply:
    """A streamed answer, given by whichever target gives one.

    Until it is committed nothing of an answer is sent, so all can still be different. A client that waits
    long is told to go on waiting, which opens the reply: from then on another target may still answer, but a
    failure can no longer be told by an HTTP status.
    """

    __slots__ = (
        "_array", "_beats", "_held", "_http", "_manner", "_notices", "_stream", "_track", "array",
        "beating", "committed", "due",
    )  # fmt: skip

    def __init__(
        self, http: Request, client: ClientProtocol, manner: Manner, track: Track, beats: Beats
    ) -> None:
        self._http = http
        wants_array = client.endpoints.wants_array
        self.array = wants_array is not None and wants_array(http.query, http.headers)
        """Is it one JSON array?"""
        self._array = ArrayWriter() if self.array else None
        self._manner = manner
        self._track = track
        self._beats = beats
        self._notices: tuple[Notice, ...] = ()
        self._held = b""
        self._stream: Stream | None = None
        self.due = 0.0
        """When the client will have heard nothing for too long."""
        self.beating = False
        """Is its silence filled?"""
        self.committed = False
        """Has the client been given any bytes of an answer?"""

    def begin(self, notices: tuple[Notice, ...] = ()) -> None:
        """A try begins, with this to be said of it; nothing is left of the one before."""
        self._notices = notices
        self._held = b""

    async def write(self, data: bytes, *, meaningful: bool) -> None:
        """Send `data`, or hold it while nothing worth sending has come. Waits while the client is slow."""
        if not data:
            return
        if not self.committed:
            self._held += data
            if not meaningful and len(self._held) <= MOST_HELD:
                return
            data, self._held = self._held, b""
            self.committed = True
        await self._send(self._array.feed(data) if self._array else data)

    def keep_alive(self) -> None:
        """From now on silence is filled, as far as the client's SDK stands it."""
        if self._manner.keepalive and self._manner.interval > 0:
            self.due = self._track.began + self._manner.interval
            self.beating = True
            self._beats.add(self)

    async def end(self, last: bytes = b"") -> Stream:
        """The answer is over; `last` is what is still to be said. A keepalive after that would be a lie."""
        self.stop()
        last, self._held = self._held + last, b""
        self.committed = True
        if self._array is not None:
            last = self._array.feed(last) + self._array.close()
        if last:
            self._track.record_client_bytes(last)
        stream = self._opened()
        await stream.end(last)
        return stream

    def unopened(self) -> bool:
        """No more keepalives, and none was sent: the answer may still be quite another one."""
        self.stop()
        return self._stream is None

    def stop(self) -> None:
        """No more keepalives: the answer is over, or is not given after all."""
        if self.beating:
            self.beating = False
            self._beats.discard(self)

    def abort(self) -> Stream:
        """Nothing true can be said any more: break off, so that nobody takes it for a whole answer."""
        self.stop()
        if self._http.sink is not None:
            self._http.sink.abort()
        return self._opened()

    async def beat(self) -> None:
        """Tell the client to go on waiting."""
        self.due = time.monotonic() + self._manner.interval
        if not self.beating or (self._stream is not None and self._stream.slow):
            return  # a client that does not even take the answer needs no keepalive
        try:
            await self._send(self._manner.keepalive if self.committed else self._manner.patience, alive=True)
        except ClientGone:
            self.stop()  # whoever writes next will see it

    def _opened(self) -> Stream:
        if self._stream is None:
            headers = answer_headers(self._track.id, self._notices)
            self._stream = Stream(self._http, headers={**headers, **(_ARRAY if self.array else _EVENTS)})
        return self._stream

    async def _send(self, data: bytes, *, alive: bool = False) -> None:
        stream = self._stream or self._opened()
        self._track.record_client_bytes(data, alive=alive)
        self.due = time.monotonic() + self._manner.interval
        await stream.write(data)
