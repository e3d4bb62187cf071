"""The lines of a head, as they are written: nothing in a value can become a line of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Every control character but the tab (RFC 9110, 5.5) becomes the end of a line, which can be counted.
_CONTROLS = bytes([*range(9), *range(10, 32), 127])
_AS_LINE_ENDS = bytes.maketrans(_CONTROLS, b"\n" * len(_CONTROLS))
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_MOST_TEMPLATES = 256
_templates: dict[tuple[str, ...], str] = {}
"""What is written around the values of fields with these names, in this order."""


def written(fields: Mapping[str, str]) -> bytes:
    """`name: value` lines. A ValueError never shows what cannot be sent: it may be a key."""
    names = tuple(fields)
    template = _templates.get(names)
    if template is None:
        template = _learn(names)
    try:
        data = (template % tuple(fields.values())).encode()
    except UnicodeEncodeError:
        raise ValueError("a header holds half a character, which cannot be sent") from None
    # The only control characters are the ends of the lines that were just written.
    if data.translate(_AS_LINE_ENDS).count(b"\n") != 2 * len(names):
        raise ValueError("a header holds a line break or another control character, which cannot be sent")
    return data


def _learn(names: tuple[str, ...]) -> str:
    if not all(map(_TOKEN.fullmatch, names)):
        raise ValueError("a header has a name that no header can have")
    if len(_templates) >= _MOST_TEMPLATES:
        _templates.clear()
    lines = [name.replace("%", "%%") + ": %s\r\n" for name in names]
    template = _templates[names] = "".join(lines)
    return template
