"""The heads of requests and answers: what they say, and how they are written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from ..fields import written as written_fields
from .refusals import Refusal

# What is between the values of a field that came more than once. A user agent is a list of names: Google's
# Python SDK names itself beside whoever uses it, in a second header.
_BETWEEN = {"user-agent": " ", "cookie": "; "}
# A second one of these is how requests are smuggled. (`Content-Length` is the parser's business.)
_ONCE = frozenset({"host", "authorization", "content-type"})

LENGTH = "content-length"
_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


def add_field(fields: dict[str, str], name: bytes, value: bytes) -> None:
    """One more field of a request's head, by its name in lower case."""
    key = name.lower().decode("ascii")
    text = value.decode("utf-8", "surrogateescape")
    before = fields.get(key)
    if before is None:
        fields[key] = text
    elif key in _ONCE:
        raise Refusal(f"the header {key} came twice")
    else:
        fields[key] = f"{before}{_BETWEEN.get(key, ', ')}{text}"


class Head:
    """What the head of a request says, but for the length of its body."""

    __slots__ = ("chunked", "coding", "keep_alive", "method", "path", "target", "wants_continue")

    def __init__(
        self, method: str, target: str, fields: dict[str, str], *, keep_alive: bool, chunked: bool
    ) -> None:
        self.method = method
        self.target = target if target.startswith("/") else _origin_form(target)
        path = self.target.partition("?")[0]
        self.path = unquote(path) if "%" in path else path
        self.keep_alive = keep_alive
        self.chunked = chunked
        """May an answer of unknown length be sent in chunks? HTTP/1.0 knows none."""
        self.coding = fields.get("content-encoding", "identity").lower()
        self.wants_continue = fields.get("expect", "").lower() == "100-continue"


def written(status: int, fields: Mapping[str, str], lines: bytes, framing: bytes, data: bytes) -> bytes:
    """An answer: its head and as much of its body as goes out with it, `data`.

    `lines` are further fields, written already, and `framing` those about the body.
    """
    line = _LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    now = int(time.time())
    if now != _Clock.second:
        _Clock.second = now
        _Clock.lines = b"date: %b\r\nserver: dragoman\r\n\r\n" % formatdate(now, usegmt=True).encode()
    return b"".join((line, written_fields(fields) if fields else b"", lines, framing, _Clock.lines, data))


class _Clock:
    """The last lines of every head, written once a second at most."""

    second = 0
    lines = b""


def _origin_form(target: str) -> str:
    """`http://host/path`, as proxies are asked, means the path."""
    parts = urlsplit(target)
    path = parts.path if parts.path.startswith("/") else "/" + parts.path
    return f"{path}?{parts.query}" if parts.query else path
