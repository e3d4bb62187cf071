r"""Lets a request have two User-Agent fields.

Google's Python SDK sends its own User-Agent beside that of the program that uses it. aiohttp refuses a second
one, and has no setting for that: its parser is strict for every request. So each further field is renamed
before aiohttp reads it, and `incoming.py` joins the values (RFC 9110 lets one field hold several names). The
new name has as many bytes as the old one, so nothing else in the request moves.
"""

from __future__ import annotations

RENAMED = "user_agent"
_FIELD = b"\r\nuser-agent:"
_DASH = _FIELD.index(b"-")
_END = b"\r\n\r\n"


class UserAgents:
    r"""Renames the fields of one head, however it is cut into reads.

    >>> agents = UserAgents()
    >>> agents.feed(b"GET / HTTP/1.1\r\nUser-Agent: a\r\nuser-a")
    b'GET / HTTP/1.1\r\nUser-Agent: a\r\nuser'
    >>> agents.feed(b"gent: b\r\n\r\nuser-agent: the body")
    b'_agent: b\r\n\r\nuser-agent: the body'
    """

    __slots__ = ("_held", "_passed", "_seen", "done")

    def __init__(self) -> None:
        self.done: bool = False
        """Has the head come to its end? Then nothing more is to be fed."""
        self._seen: bool = False
        """Has it had a User-Agent?"""
        self._passed: bytes = b""
        """The last bytes that were given out: a field may begin in them."""
        self._held: bytes = b""

    def feed(self, data: bytes) -> bytes:
        """What aiohttp is to read. The end of a second field's name waits until the name is whole."""
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
    """How many bytes are no part of a name that may become User-Agent, or stand before its dash."""
    at = window.rfind(b"\r\n", max(0, len(window) - len(_FIELD) + 1))
    if at >= 0 and len(window) - at > _DASH and _FIELD.startswith(window[at:].lower()):
        return at + _DASH
    return len(window)
