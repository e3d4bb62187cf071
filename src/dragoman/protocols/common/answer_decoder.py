"""The state and the steps that the decoders of all protocols share."""

from __future__ import annotations

from typing import TypeVar

from ...model.events import Event, Failed
from ...wire.structs import JsonReader
from . import failures
from .surrogate_joiner import SurrogateJoiner

T = TypeVar("T")


class AnswerDecoder:
    """Base of a decoder."""

    __slots__ = ("_issuer", "_joiner", "_over", "_started")

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._started = False
        self._over = False
        self._joiner: SurrogateJoiner | None = None

    def _read_lenient(self, reader: JsonReader[T], data: bytes, error: Exception) -> T:
        """Read a frame that the strict reader refused with `error`."""
        frame = reader.lenient(data, error)
        # One reason is half of a surrogate pair. The other half may come with the next fragment, so from now
        # on all text goes through the joiner. Most answers never need one.
        self._joiner = self._joiner or SurrogateJoiner()
        return frame

    def _fail(self, failure: Failed) -> list[Event]:
        self._over = True
        return [failure]

    def _cut_off(self, *, begun: bool) -> list[Event]:
        """The stream ended without a sign of its end. A proxy that gives up also ends a stream like this."""
        when = "in the middle of the answer" if begun else "without an answer"
        return self._fail(failures.cut_off(f"the upstream's stream ended {when}"))
