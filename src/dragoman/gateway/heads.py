"""The heads of requests on one connection, with what may be said once said once.

Google's Python SDK names itself beside whoever uses it: Pydantic AI's requests have two `User-Agent` headers,
and aiohttp refuses such a request. A user agent is a list of names, so two of them are one longer list.
Nothing else is touched: a second `Host` or `Content-Length` is how requests are smuggled.
"""

from __future__ import annotations

import re

_END = b"\r\n\r\n"
_AGENT = re.compile(rb"(?<=\r\n)user-agent:[ \t]*([^\r\n]*)\r\n", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)


class Heads:
    """Takes a connection's bytes as they come. Bodies are counted, so that none is ever taken for a head."""

    def __init__(self) -> None:
        self._body = 0
        """Bytes of a body that are still to come."""
        self._lost = False
        """Where the next head begins is not known: from here on everything passes as it is."""

    def feed(self, data: bytes) -> bytes:
        """`data` for the parser."""
        if self._lost:
            return data
        if len(data) <= self._body:
            self._body -= len(data)
            return data
        done = data[: self._body]
        rest = data[self._body :]
        self._body = 0
        while rest and not self._lost:
            head, rest = self._head(rest)
            body = rest[: self._body]
            self._body -= len(body)
            done += head + body
            rest = rest[len(body) :]
        return done + rest

    def _head(self, data: bytes) -> tuple[bytes, bytes]:
        end = data.find(_END)
        if end < 0:
            self._lost = True  # in pieces: no client does that to its own head
            return b"", data
        head = data[: end + len(_END)]
        self._lost = _CHUNKED.search(head) is not None
        length = _LENGTH.search(head)
        self._body = int(length[1]) if length else 0
        return _with_one_agent(head), data[len(head) :]


def _with_one_agent(head: bytes) -> bytes:
    names = _AGENT.findall(head)
    if len(names) < 2:
        return head
    first = _AGENT.sub(b"", head).partition(b"\r\n")
    return b"".join((first[0], b"\r\nuser-agent: ", b" ".join(names), b"\r\n", first[2]))
