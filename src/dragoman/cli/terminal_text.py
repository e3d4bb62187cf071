"""Text of models, clients and upstreams, made safe for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""`text` without characters that control a terminal: escape codes, line breaks, direction marks.

    >>> printable("a\x1b[2Jb\nc")
    'a�[2Jb�c'
    """
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
