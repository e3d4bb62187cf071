"""Write a whole answer as one body: the response that its stream would end with."""

from __future__ import annotations

from typing import Any

import msgspec

from ....wire.frames import escape_separators
from ...base import AnswerContext
from ...common.collect import Answer
from ...common.fields import Obj
from .encoder import StreamEncoder
from .open_item import OpenItem

_json = msgspec.json.Encoder().encode


class _SilentEncoder(StreamEncoder):
    """Builds the response without its stream. It has no cut calls, unless the upstream's own one has them."""

    def _emit(self, kind: str, out: list[bytes], own: Obj | None = None, **fields: Any) -> None:
        pass

    def _keep(self, item: OpenItem, written: Obj) -> None:
        if item.complete or item.origin is not None:
            super()._keep(item, written)


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole response."""
    encoder = _SilentEncoder(context)
    encoder.encode(answer.events)
    return escape_separators(_json(encoder.response))
