"""Bytes in, requests out. The parser is httptools (llhttp, in C)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import httptools

from .heads import Head, add_field
from .refusals import BodyUnreadable, Refusal
from .request import Request

if TYPE_CHECKING:
    from .connection import Connection

log = logging.getLogger("dragoman.http")

_LARGEST_HEAD = 32 * 1024
_TOO_LARGE = "its head is too large"


class Reader:
    """Parses the bytes of one connection. Calls `asked` with each request when its head is complete."""

    __slots__ = ("_asked", "_connection", "_fields", "_head", "_parser", "_target", "broken", "request")

    def __init__(self, connection: Connection, asked: Callable[[Request], object]) -> None:
        self.request: Request | None = None
        """The one that is being read."""
        self.broken = ""
        """Why nothing more can be read."""
        self._connection = connection
        self._asked = asked
        self._parser = httptools.HttpRequestParser(self)
        self._head = 0
        """Bytes of a head that has not come to its end."""
        self._target = b""
        self._fields: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Parse `data`, unless the connection is broken already."""
        if self.broken:
            return
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

    def stop(self) -> None:
        """Nothing more will come."""
        if self.request is not None:
            self.request.fail(BodyUnreadable())
            self.request = None
        del self._parser, self._connection  # they hold on to us

    def _stay(self, rest: bytes) -> None:
        """Nobody is upgraded here: the same request again, without the wish."""
        method, fields = self._parser.get_method(), self._fields
        self._parser = httptools.HttpRequestParser(self)
        if method == b"CONNECT":
            self._break("nothing can be tunnelled through here")
            return
        unwanted = ("upgrade", "connection", "http2-settings")
        lines = [f"{name}: {value}\r\n" for name, value in fields.items() if name not in unwanted]
        line = b"%b %b HTTP/1.1\r\n" % (method, self._target)
        self.feed(line + "".join(lines).encode("utf-8", "surrogateescape") + b"\r\n" + rest)

    def _break(self, why: str) -> None:
        if self.broken:
            return
        self.broken = why
        if self.request is not None:
            self.request.keep_alive = False
            self.request.fail(BodyUnreadable())

    # What the parser calls.

    def on_message_begin(self) -> None:
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
