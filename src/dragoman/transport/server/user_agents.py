r"""Accepts requests with two User-Agent fields.

Google's Python SDK sends its own User-Agent beside that of the program that uses it. aiohttp refuses the
second one, and no setting changes that. So each further field is renamed before aiohttp reads it, and
`incoming.py` joins the values (RFC 9110 allows several products in one field). The new name has the same
length, so nothing else in the request moves.
"""

from __future__ import annotations

RENAMED = "user_agent"
_FIELD = b"\r\nuser-agent:"
_DASH = _FIELD.index(b"-")
_END = b"\r\n\r\n"


class UserAgents:
    r"""Renames the further User-Agent fields of one head, however the head is split into reads.

    >>> agents = UserAgents()
    >>> agents.feed(b"GET / HTTP/1.1\r\nUser-Agent: a\r\nuser-a")
    b'GET / HTTP/1.1\r\nUser-Agent: a\r\nuser'
    >>> agents.feed(b"gent: b\r\n\r\nuser-agent: the body")
    b'_agent: b\r\n\r\nuser-agent: the body'
    """

    __slots__ = ("_held", "_passed", "_seen", "done")

    def __init__(self) -> None:
        self.done: bool = False
        """Is the head complete? Then do not call `feed` again."""
        self._seen: bool = False
        """Has the head a User-Agent already?"""
        self._passed: bytes = b""
        """The end of what `feed` returned: a field may begin in it."""
        self._held: bytes = b""

    def feed(self, data: bytes) -> bytes:
        """The bytes for aiohttp. The end of a possible second name is held until the name is complete."""
        data = self._held + data
        before = len(self._passed)
        window = self._passed + data
        end = window.find(_END)
        self.done = end >= 0
        data = self._renamed(data, window[:end] if self.done else window, before)
        keep = len(data) if self.done or not self._seen else _settled(window) - before
        self._held = data[keep:]
        data = data[:keep]
        self._passed = (self._passed + data)[1 - len(_FIELD) :]
        return data

    def _renamed(self, data: bytes, head: bytes, before: int) -> bytes:
        head = head.lower()
        at = head.find(_FIELD)
        if at >= 0 and not self._seen:
            self._seen = True
            at = head.find(_FIELD, at + 1)
        if at < 0:
            return data
        changed = bytearray(data)
        while at >= 0:
            changed[at + _DASH - before] = ord("_")
            at = head.find(_FIELD, at + 1)
        return bytes(changed)


def _settled(window: bytes) -> int:
    """How many bytes can be passed on: all but the end of a name that may become User-Agent."""
    at = window.rfind(b"\r\n", max(0, len(window) - len(_FIELD) + 1))
    if at >= 0 and len(window) - at > _DASH and _FIELD.startswith(window[at:].lower()):
        return at + _DASH
    return len(window)
