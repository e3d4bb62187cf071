"""The arguments of a call in protocols where they are a JSON object, not text (Anthropic, Gemini)."""

from __future__ import annotations

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def spelled(arguments: msgspec.Raw) -> str:
    r"""The text of the arguments as the client wrote it, except for unnecessary escapes.

    Decoding and encoding could change numbers, and a new spelling in a later turn would invalidate
    the upstream's prompt cache. Unnecessary escapes are removed: Go writes `\u003c` for `<`, Python `\u00fc`
    for `ü`. The model treats this text as its own output and would start to write such escapes itself.
    """
    text = str(arguments, "utf-8")
    if text.rfind("\\u") < 0:  # `rfind` is twice as fast as `find` in a text with many backslashes
        return text
    try:
        return _encode(_decode(arguments)).decode()
    except msgspec.ValidationError:
        return text  # a number is out of msgspec's range
