"""Bytes in, requests out.

The parser is httptools (llhttp, in C). It is spared what needs no parsing: a head that came before, and the
rest of a long body that says its length.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import httptools

from .buffers import LARGEST, SHARED, Buffers
from .heads import Head, KnownHead, add_field, known_head
from .refusals import BodyUnreadable, Refusal
from .request import Request

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger("dragoman.http")

_LARGEST_HEAD = 32 * 1024
_TOO_LARGE = "its head is too large"
_HEAD_END = b"\r\n\r\n"
# More of a body than comes at once goes past the parser, which would copy it.
_LONG = SHARED
# So many times as much as has come of a body, or of one before, is made room for: a claim costs nothing.
_AHEAD = 16
_NOTHING = memoryview(b"")


class Reader:
    """Reads for one connection, into `buffers`. `asked` is told of each request when its head is there."""

    __slots__ = (
        "_asked", "_begun", "_body", "_brought", "_buffers", "_connection", "_fields", "_head", "_known",
        "_parser", "_target", "broken", "request", "room", "socket",
    )  # fmt: skip

    def __init__(self, connection: Connection, buffers: Buffers, asked: Callable[[Request], object]) -> None:
        self.request: Request | None = None
        """The one that is being read."""
        self.broken = ""
        """Why nothing more can be read."""
        self.room = buffers.shared
        """Where the next bytes go. While a long body comes there is none for anything else: what follows is
        another request."""
        self.socket = -1
        """What comes can be read from it as well, unless it is less than 0."""
        self._body: bytearray | None = None
        """Where a long body is coming together, or a portion of it: it goes past the parser."""
        self._brought = 0
        """Bytes of the last one that was."""
        self._connection = connection
        self._buffers = buffers
        self._asked = asked
        self._parser = httptools.HttpRequestParser(self)
        self._begun = False
        """Is the parser in the middle of a request?"""
        self._head = 0
        """Bytes of a head that has not come to its end."""
        self._target = b""
        self._fields: dict[str, str] = {}
        self._known: KnownHead | None = None

    def came(self, size: int) -> None:
        """So many are there."""
        if self._body is not None:
            self._fill(self._body, size)
        elif not self.broken:
            room, request = self.room, self.request
            data = room[:size]
            if request is not None and (not self._begun or request.left > _LONG):
                data = self._read_body(request, data, 0)
            elif not self._begun:
                data = self._begin(data)
            if data:
                self._parse(data)
            if self._body is not None and size == len(room) and self.socket >= 0:
                self._read_on(self._body)

    @property
    def piles_up(self) -> bool:
        """Has much of a body come that nobody reads?"""
        waiting = 0 if self._body is None else len(self._body) - len(self.room)
        return self.request is not None and self.request.piles_up(waiting)

    def stop(self) -> None:
        """Nothing more will come."""
        self._body = None
        if self.request is not None:
            self.request.fail(BodyUnreadable())
            self.request = None
        del self._parser, self._connection  # they hold on to us

    # Past the parser.

    def _begin(self, data: memoryview) -> memoryview:
        """A request begins with this read; gives what is left for the parser."""
        known = self._known
        if known is not None and (found := known.found(data)) is not None:
            fields, end = found
            request = self.request = Request(self._connection, known.head, fields)
            self._asked(request)
            return self._read_body(request, data, end)
        self.room = self._buffers.shared
        start = bytes(data[:_LARGEST_HEAD])
        end = start.find(_HEAD_END) + len(_HEAD_END)
        if end < len(_HEAD_END):
            return data
        self._parse(data[:end])
        request = self.request
        if request is None or self.broken:
            return data[end:]
        self._known = known_head(start[:end], request.head, self._fields)
        if request.left <= _LONG:
            return data[end:]
        return self._read_body(request, data, end)

    def _read_body(self, request: Request, data: memoryview, at: int) -> memoryview:
        """The body from `at` on; gives what follows it."""
        size = len(data)
        end = at + request.left
        if end > size:
            if at < size:
                if self._begun:
                    self._reset_parser()
                self._make_room(request, data[at:])
            return _NOTHING
        request.feed(data[at:end].tobytes())
        if self._begun:
            self._reset_parser()
        request.complete = True
        self.request = None
        return _NOTHING if end == size else data[end:]

    def _make_room(self, request: Request, begun: memoryview) -> None:
        """More of the body is coming than it was fed with and what has `begun`."""
        held = len(begun)
        size = min(request.left, LARGEST, _AHEAD * max(request.size + held, self._brought))
        self._body = self._buffers.take(size)
        room = memoryview(self._body)
        room[:held] = begun
        self.room = room[held:]

    def _reset_parser(self) -> None:
        """It does not hear of the rest of what it has begun."""
        self._begun = False
        self._parser = httptools.HttpRequestParser(self)

    def _read_on(self, body: bytearray) -> None:
        """The rest of a long body has often come as well: to look costs less than to be told."""
        try:
            size = os.readv(self.socket, [self.room])
        except OSError:  # there is no more yet, or it is broken: the transport will meet the same
            return
        self._fill(body, size)

    def _fill(self, body: bytearray, size: int) -> None:
        room, request = self.room, self.request
        assert request is not None
        if size < len(room):
            self.room = room[size:]
            return
        self._body = None
        request.feed(body)
        if request.left:
            self._make_room(request, _NOTHING)
            return
        request.complete = True
        self.request = None
        if request.size > _LONG:  # the next one will be as well
            self.room, self._brought = self._buffers.first, request.size
        else:
            self.room = self._buffers.shared

    # By the parser.

    def _parse(self, data: memoryview | bytes) -> None:
        if self.request is None:
            self._head += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._stay(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self._break(_reason(error))
        if self.request is None and self._head > _LARGEST_HEAD:
            self._break(_TOO_LARGE)

    def _stay(self, rest: memoryview | bytes) -> None:
        """Nobody is upgraded here: the same request again, without the wish."""
        method, fields = self._parser.get_method(), self._fields
        self._parser = httptools.HttpRequestParser(self)
        if method == b"CONNECT":
            self._break("nothing can be tunnelled through here")
            return
        unwanted = ("upgrade", "connection", "http2-settings")
        lines = [f"{name}: {value}\r\n" for name, value in fields.items() if name not in unwanted]
        line = b"%b %b HTTP/1.1\r\n" % (method, self._target)
        self._parse(line + "".join(lines).encode("utf-8", "surrogateescape") + b"\r\n" + rest)

    def _break(self, why: str) -> None:
        if self.broken:
            return
        self.broken = why
        if self.request is not None:
            self.request.keep_alive = False
            self.request.fail(BodyUnreadable())

    def on_message_begin(self) -> None:
        self._begun = True
        self._target = b""
        self._fields = {}

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        add_field(self._fields, name, value)

    def on_headers_complete(self) -> None:
        parser = self._parser
        if parser.should_upgrade():
            return  # `_stay` gives the same head to a new parser
        self._head = 0
        if sum(map(len, self._fields.values())) > _LARGEST_HEAD:
            raise Refusal(_TOO_LARGE)
        head = Head(
            parser.get_method().decode("ascii"),
            self._target.decode("utf-8", "surrogateescape"),
            self._fields,
            keep_alive=parser.should_keep_alive(),
            chunked=parser.get_http_version() != "1.0",
        )
        self.request = Request(self._connection, head, self._fields)
        self._asked(self.request)

    def on_body(self, data: bytes) -> None:
        if self.request is not None:
            self.request.feed(data)

    def on_message_complete(self) -> None:
        self._begun = False
        if self.request is not None:  # else it is an upgrade
            self.request.complete = True
            self.request = None


def _reason(error: httptools.HttpParserError) -> str:
    """The parser's own words, which repeat nothing of what came, or those of whoever it called."""
    cause = error.__context__
    if cause is None or isinstance(cause, Refusal):
        return str(cause or error)
    log.error("a request could not be taken", exc_info=cause)
    return "it cannot be taken"
