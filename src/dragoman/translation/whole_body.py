"""The encoder for clients that did not ask for a stream: it collects the events and writes one body."""

from __future__ import annotations

from ..model.events import End, Event, Failed
from ..protocols.base import AnswerContext, ClientProtocol
from ..protocols.common.collect import collect


class BodyEncoder:
    """Writes one answer as one body, with the client protocol's `render`."""

    __slots__ = ("_client", "_context", "_events")

    def __init__(self, client: ClientProtocol, context: AnswerContext) -> None:
        self._client = client
        self._context = context
        self._events: list[Event] = []

    def encode(self, events: list[Event]) -> bytes:
        """Return nothing until the answer is over, then its body."""
        self._events += events
        last = events[-1]
        if type(last) is End:
            return self._client.render(collect(self._events), self._context)
        if type(last) is Failed:
            return self._client.error_body(last, self._context.id)
        return b""
