"""The heads of requests and answers: fields read into a plain dict, and written in one piece."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus

from ..fields import written
from .refusals import Refusal

# What is between the values of a field that came more than once. A user agent is a list of names: Google's
# Python SDK names itself beside whoever uses it, in a second header.
_BETWEEN = {"user-agent": " ", "cookie": "; "}
# A second one of these is how requests are smuggled. (`Content-Length` is the parser's business.)
_ONCE = frozenset({"host", "authorization", "content-type"})

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


def written_head(status: int, fields: Mapping[str, str]) -> bytes:
    """The head of an answer, the empty line included."""
    line = _LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"%b%bdate: %b\r\nserver: dragoman\r\n\r\n" % (line, written(fields), _date())


class _Clock:
    """The date, written once a second at most."""

    second = 0
    text = b""


def _date() -> bytes:
    now = int(time.time())
    if now != _Clock.second:
        _Clock.second, _Clock.text = now, formatdate(now, usegmt=True).encode()
    return _Clock.text
