"""One SDK sends two User-Agent headers, and aiohttp refuses a second one.

Google's Python SDK names itself beside whoever uses it. One field may hold several names (RFC 9110), so the
two are made one before aiohttp reads them.
"""

from __future__ import annotations

_FIELD = b"\r\nuser-agent:"
_END = b"\r\n\r\n"


def one_user_agent(data: bytes) -> bytes:
    r"""The bytes that a request's head begins with, with one User-Agent field at most.

    >>> one_user_agent(b"GET / HTTP/1.1\r\nUser-Agent: a\r\nHost: x\r\nuser-agent: b\r\n\r\n")
    b'GET / HTTP/1.1\r\nHost: x\r\nuser-agent: a b\r\n\r\n'
    """
    end = data.find(_END)
    if end < 0 or data[:end].lower().count(_FIELD) < 2:
        return data
    lines = data[:end].split(b"\r\n")
    names = [line.partition(b":")[2].strip() for line in lines if _names_agent(line)]
    others = [line for line in lines if not _names_agent(line)]
    return b"\r\n".join([*others, b"user-agent: " + b" ".join(names)]) + data[end:]


def _names_agent(line: bytes) -> bool:
    return line[:11].lower() == b"user-agent:"
