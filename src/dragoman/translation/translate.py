"""Translate an answer from one protocol to another, for callers that already have its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..model.messages import Tool
from .translation import Options, Translation


def translate(
    chunks: Iterable[bytes],
    source: str,
    target: str,
    *,
    tools: Sequence[Tool] = (),
    options: Options | None = None,
) -> Iterator[bytes]:
    """Translate `chunks`, the answer of a `source` upstream, for a client that speaks `target`.

    The generator yields bytes as soon as they are known. The last ones come when `chunks` is exhausted.
    """
    exchange = Translation(source, target, tools=tools, options=options)
    for chunk in chunks:
        if data := exchange.feed(chunk):
            yield data
        if exchange.over:
            return
    if data := exchange.close():
        yield data
