"""Sending an answer over HTTP: held until it is worth sending, then kept alive, then ended well."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

from ..http.fields import written
from ..http.server import NO_HEADERS, ClientGone, Request, Response, Stream
from ..messages import Notice
from ..protocols.base import ClientProtocol
from ..recording.replay import MOST_HELD
from ..tap import Track
from ..wire.arrays import ArrayWriter
from .beats import Beats
from .manners import Manner

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


class _Head:
    """Of the answers of one kind: nearly all differ only in the id, which they say several times."""

    __slots__ = ("_around", "_headers")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._around = written({**answer_headers("?"), **headers}).split(b"?")

    def lines(self, id: str, notices: Sequence[Notice]) -> bytes:
        """What such an answer says of itself."""
        if notices:
            return written({**answer_headers(id, notices), **self._headers})
        return id.encode().join(self._around)


_EVENTS = _Head({"content-type": "text/event-stream", **_LIVE})
_ARRAY = _Head({**_JSON, **_LIVE})
_WHOLE = _Head(_JSON)


def whole_reply(body: bytes, id: str, notices: Sequence[Notice]) -> Response:
    """An answer that is not streamed."""
    return Response(body, lines=_WHOLE.lines(id, notices))


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

    def put(self, data: bytes, *, meaningful: bool) -> bool:
        """Send `data`, or hold it while nothing worth sending has come. False: the client reads slowly."""
        if not data:
            return True
        if not self.committed:
            self._held += data
            if not meaningful and len(self._held) <= MOST_HELD:
                return True
            data, self._held = self._held, b""
            self.committed = True
        return self._put(self._array.feed(data) if self._array else data)

    async def keep_pace(self) -> None:
        """Wait until the client has read most of what was sent."""
        await self._opened().keep_pace()

    def keep_alive(self) -> None:
        """From now on silence is filled, as far as the client's SDK stands it."""
        if self._manner.keepalive and self._manner.interval > 0:
            self.due = self._track.began + self._manner.interval
            self.beating = True
            self._beats.add(self)

    def end(self, last: bytes = b"") -> Stream:
        """The answer is over; `last` is what is still to be said. A keepalive after that would be a lie."""
        self.stop()
        last, self._held = self._held + last, b""
        self.committed = True
        if self._array is not None:
            last = self._array.feed(last) + self._array.close()
        if last:
            self._track.went(last)
        stream = self._opened()
        stream.end(last)
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
        if self._http.transport is not None:
            self._http.transport.abort()
        return self._opened()

    def beat(self) -> None:
        """Tell the client to go on waiting."""
        self.due = time.monotonic() + self._manner.interval
        if self._stream is not None and self._stream.slow:
            return  # a client that does not even take the answer needs no keepalive
        try:
            self._put(self._manner.keepalive if self.committed else self._manner.patience, alive=True)
        except ClientGone:
            self.stop()  # whoever writes next will see it

    def _opened(self) -> Stream:
        if self._stream is None:
            head = _ARRAY if self.array else _EVENTS
            self._stream = Stream(self._http, 200, NO_HEADERS, head.lines(self._track.id, self._notices))
        return self._stream

    def _put(self, data: bytes, *, alive: bool = False) -> bool:
        stream = self._stream or self._opened()
        self._track.went(data, alive=alive)
        self.due = time.monotonic() + self._manner.interval
        return stream.put(data)
