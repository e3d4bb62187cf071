"""An answer of one protocol as an answer of another, for whoever has the bytes already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..model.messages import Tool
from .exchange import Exchange, Options


def translate(
    chunks: Iterable[bytes],
    source: str,
    target: str,
    *,
    tools: Sequence[Tool] = (),
    options: Options | None = None,
) -> Iterator[bytes]:
    """What a client that speaks `target` gets when an upstream that speaks `source` sends `chunks`.

    Pieces are given out as soon as they are known; the last one comes when `chunks` is exhausted.
    """
    exchange = Exchange(source, target, tools=tools, options=options)
    for chunk in chunks:
        if data := exchange.feed(chunk):
            yield data
        if exchange.over:
            return
    if data := exchange.close():
        yield data
