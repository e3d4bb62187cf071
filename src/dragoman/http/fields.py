"""The lines of a head, as they are written: nothing in a value can become a line of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Every control character but the tab (RFC 9110, 5.5).
_CONTROLS = bytes([*range(9), *range(10, 32), 127])
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_MOST_NAMES = 1024
_good_names: set[str] = set()


def written(fields: Mapping[str, str]) -> bytes:
    """`name: value` lines. A ValueError never shows what cannot be sent: it may be a key."""
    if not fields.keys() <= _good_names:
        _learn(fields)
    try:
        data = "".join([f"{name}: {value}\r\n" for name, value in fields.items()]).encode()
    except UnicodeEncodeError:
        raise ValueError("a header holds half a character, which cannot be sent") from None
    # The only control characters are the ends of the lines that were just written.
    if len(data) - len(data.translate(None, _CONTROLS)) != 2 * len(fields):
        raise ValueError("a header holds a line break or another control character, which cannot be sent")
    return data


def _learn(fields: Mapping[str, str]) -> None:
    if not all(map(_TOKEN.fullmatch, fields)):
        raise ValueError("a header has a name that no header can have")
    if len(_good_names) > _MOST_NAMES:
        _good_names.clear()
    _good_names.update(fields)
