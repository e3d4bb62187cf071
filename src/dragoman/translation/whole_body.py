"""The encoder for a client that asked for no stream: it collects the events and writes one body."""

from __future__ import annotations

from ..model.events import End, Event, Failed
from ..protocols.base import ClientProtocol, Minted
from ..protocols.common.collect import collect
from ..wire.frames import Frame


class BodyEncoder:
    """One answer as one body."""

    __slots__ = ("_client", "_events", "_minted")

    def __init__(self, client: ClientProtocol, minted: Minted) -> None:
        self._client = client
        self._minted = minted
        self._events: list[Event] = []

    def encode(self, events: list[Event]) -> bytes:
        """Nothing until the answer is over; then its body."""
        self._events += events
        last = events[-1]
        if type(last) is End:
            return self._client.render(collect(self._events), self._minted)
        if type(last) is Failed:
            return self._client.error_body(last, self._minted.id)
        return b""

    def verbatim(self, frame: Frame, events: list[Event]) -> bytes:
        return frame.data
