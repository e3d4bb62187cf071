"""The arguments of a call, for wires on which they are a JSON object and not text."""

from __future__ import annotations

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def spelled(arguments: msgspec.Raw) -> str:
    r"""The arguments as the client spelled them, except for needless escapes.

    A number that is decoded and encoded again may become another number, and a new spelling in one turn
    breaks the upstream's prompt cache. Needless escapes go: Go writes `\u003c` for `<`, Python `\u00fc` for
    `ü`. The model takes what it reads here for its own words, and would write like that.
    """
    text = str(arguments, "utf-8")
    if text.rfind("\\u") < 0:  # from the end, which is twice as fast in a text with many backslashes
        return text
    try:
        return _encode(_decode(arguments)).decode()
    except msgspec.ValidationError:
        return text  # it holds a number out of range
