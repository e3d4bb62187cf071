"""Send an answer to the client: hold it until it is meaningful, keep the connection alive, end it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from ...model.messages import Notice
from ...observe.tap import Track
from ...protocols.base import ClientProtocol
from ...recording.replay import MAX_HELD
from ...transport.server import ClientGone, HttpRequest, HttpResponse, Stream
from ..client_settings import ClientSettings
from .keepalive import KeepaliveTimer

_UNPRINTABLE = re.compile(r"[^ -~]")


def answer_headers(track: Track, notices: Sequence[Notice] = ()) -> dict[str, str]:
    """The id of the exchange, in the headers that SDKs read it from, and what there is to warn about."""
    # Anthropic's SDKs put `request-id` into their errors, OpenAI's put `x-request-id`.
    headers = {"x-dragoman-exchange": track.id, "request-id": track.id, "x-request-id": track.id}
    if notices and (warnings := "; ".join(f"{n.rule} {n.path}" for n in notices if n.warning)):
        # Paths quote the client's request. A line break in one would start another header.
        headers["x-dragoman-warnings"] = _UNPRINTABLE.sub("?", warnings[:2000])
    if track.limit_warnings:
        headers["x-dragoman-limit-warning"] = _UNPRINTABLE.sub("?", "; ".join(track.limit_warnings)[:2000])
    return headers


_JSON = {"content-type": "application/json"}
# `x-accel-buffering`: nginx would hold a stream back until its buffer is full.
_LIVE = {"cache-control": "no-cache", "x-accel-buffering": "no"}
_EVENTS = {"content-type": "text/event-stream", **_LIVE}


class WholeReply:
    """The answer for a client that did not ask for a stream: nothing is sent before its end."""

    __slots__ = ("_body", "_track")

    reframed = False

    def __init__(self, track: Track) -> None:
        self._track = track
        self._body = b""

    def begin(self) -> None:
        self._body = b""

    async def write(self, data: bytes, *, meaningful: bool) -> None:
        self._body += data

    def replaceable(self, *, meaningful: bool) -> bool:
        return True

    async def end(self, last: bytes) -> HttpResponse:
        body, track = self._body + last, self._track
        track.record_client_bytes(body)
        return HttpResponse(body, headers={**answer_headers(track, track.notices), **_JSON})

    def unopened(self) -> bool:
        return True

    def stop(self) -> None:
        """There are no keepalives."""


class StreamReply:
    """The streamed answer of one exchange, whichever target gives it.

    Until it is committed, nothing of an answer is sent, so another target may still answer. A keepalive opens
    the stream before that. Another target may still answer then, but a failure can no longer have an HTTP
    status: it becomes an error event.
    """

    __slots__ = (
        "_held", "_http", "_notices", "_settings", "_stream", "_timer", "_track", "_writer", "committed",
        "due", "needs_keepalive", "reframed",
    )  # fmt: skip

    def __init__(
        self,
        http: HttpRequest,
        client: ClientProtocol,
        settings: ClientSettings,
        track: Track,
        timer: KeepaliveTimer,
    ) -> None:
        self._http = http
        reframes = client.endpoints.reframes
        self.reframed = reframes is not None and reframes(http.query, http.headers)
        """Does the client want another framing than SSE (Gemini without `alt=sse`, Bedrock)?"""
        self._writer = client.endpoints.writer() if self.reframed else None
        self._settings = settings
        self._track = track
        self._timer = timer
        self._notices: Sequence[Notice] = ()
        self._held = b""
        self._stream: Stream | None = None
        self.due = 0.0
        """When the next keepalive is due. See `KeepaliveTimer`."""
        self.needs_keepalive = False
        self.committed = False
        """Has the client got bytes of an answer? Keepalives do not count."""

    def begin(self) -> None:
        """Start an attempt: drop what the attempt before it left."""
        self._notices = self._track.notices
        self._held = b""

    def replaceable(self, *, meaningful: bool) -> bool:
        """May another attempt still replace this answer? `meaningful`: it has content, sent or not."""
        return not (self.committed or meaningful)

    async def write(self, data: bytes, *, meaningful: bool) -> None:
        """Send `data`, or hold it until the answer is meaningful. Waits while the client reads slowly."""
        if not data:
            return
        if not self.committed:
            self._held += data
            # Some upstreams send the opening event and then an error. Until there is content, another target
            # may replace this answer.
            if not meaningful and len(self._held) <= MAX_HELD:
                return
            data, self._held = self._held, b""
            self.committed = True
        await self._send(self._writer.feed(data) if self._writer else data)

    def keep_alive(self) -> None:
        """Start to send keepalives, if the client's parser accepts them."""
        if self._settings.keepalive and self._settings.interval > 0:
            self.due = self._track.began + self._settings.interval
            self.needs_keepalive = True
            self._timer.add(self)

    async def end(self, last: bytes = b"") -> Stream:
        """Send `last` and end the answer. No keepalive may follow."""
        self.stop()
        last, self._held = self._held + last, b""
        self.committed = True
        if self._writer is not None:
            last = self._writer.feed(last) + self._writer.close()
        if last:
            self._track.record_client_bytes(last)
        stream = self._opened()
        await stream.end(last)
        return stream

    def unopened(self) -> bool:
        """Stop the keepalives. True if none was sent, so an HTTP status can still be chosen."""
        self.stop()
        return self._stream is None

    def stop(self) -> None:
        """Send no more keepalives."""
        if self.needs_keepalive:
            self.needs_keepalive = False
            self._timer.discard(self)

    def abort(self) -> Stream:
        """Break the connection, so that the client does not take a partial answer for a complete one."""
        self.stop()
        if self._http.sink is not None:
            self._http.sink.abort()
        return self._opened()

    async def send_keepalive(self) -> None:
        self.due = time.monotonic() + self._settings.interval
        if not self.needs_keepalive or (self._stream is not None and self._stream.slow):
            return  # a client with unread bytes needs no keepalive
        try:
            await self._send(
                self._settings.keepalive if self.committed else self._settings.early_keepalive, alive=True
            )
        except ClientGone:
            self.stop()  # the next write raises it again, in the task of the exchange

    def _opened(self) -> Stream:
        if self._stream is None:
            headers = answer_headers(self._track, self._notices)
            kind = _EVENTS if self._writer is None else {"content-type": self._writer.content_type, **_LIVE}
            self._stream = Stream(self._http, headers={**headers, **kind})
        return self._stream

    async def _send(self, data: bytes, *, alive: bool = False) -> None:
        stream = self._stream or self._opened()
        self._track.record_client_bytes(data, alive=alive)
        self.due = time.monotonic() + self._settings.interval
        await stream.write(data)


Reply = WholeReply | StreamReply
