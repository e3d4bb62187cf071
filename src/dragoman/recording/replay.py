"""Playing a recording through today's code: what would the client get now?

Only the answer is played, from the upstream's bytes on: which target is asked, and when a failed one is
replaced, is not the recording's to say. Nothing here waits or asks anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ..model.errors import DragomanError
from ..model.events import Failed
from ..model.messages import Request
from ..observe.tap import Setup
from ..protocols.base import AnswerContext, ClientProtocol
from ..protocols.common import failures
from ..protocols.common.tool_names import ToolNames
from ..protocols.registry import client_protocol
from ..tools.receipts import CallReceipt
from ..translation.exchange import Exchange
from ..wire.arrays import ArrayWriter
from .format import Call, Recording, RecordingError

Mode = Literal["live", "whole"]
# Beginnings and pings are a few hundred bytes. An upstream that goes on like that for ever is not waited for.
MOST_HELD = 64 * 1024


class Step(msgspec.Struct, frozen=True):
    """Bytes on one side, and when."""

    t: float
    side: Literal["upstream", "client"]
    data: bytes


class Replayed(msgspec.Struct, frozen=True):
    """What came of it."""

    steps: tuple[Step, ...]
    receipts: tuple[CallReceipt, ...]
    failure: Failed | None
    same: bool
    """Is it what the client got then? Of an answer that its client left, the part it got."""

    @property
    def client(self) -> bytes:
        return b"".join(step.data for step in self.steps if step.side == "client")


def replay(recording: Recording, *, to: str | None = None, mode: Mode | None = None) -> Replayed:
    """Raises RecordingError where there is nothing to play."""
    calls = answering(recording)
    player = _Player(recording, calls, to, mode)
    player.play()
    result = player.result()
    sent = recording.sent
    same = result.client.startswith(sent) if is_partial(recording) else result.client == sent
    return msgspec.structs.replace(result, same=same)


def answering(recording: Recording) -> Sequence[Call]:
    """The calls whose answer the client got: the last target's, asked again or not."""
    first = max((n for n, call in enumerate(recording.calls) if not call.asked.again), default=0)
    return recording.calls[first:]


def is_partial(recording: Recording) -> bool:
    """Did the client leave, or the file break off, before the end?"""
    return recording.ended is None or recording.ended.outcome == "cancelled"


class _Player:
    def __init__(
        self, recording: Recording, calls: Sequence[Call], to: str | None, mode: Mode | None
    ) -> None:
        if recording.read is None:
            raise RecordingError("the recording has no request of a client: there is nothing to play")
        if recording.ended is not None and recording.ended.dropped:
            raise RecordingError(
                f"{recording.ended.dropped} records of this recording are missing: it was written too slowly"
            )
        self._recording = recording
        self._calls = calls
        self._asked_by = client_protocol(recording.begun.client, recording.read.path)
        setup = calls[-1].asked.setup if calls else None
        self._setup = setup
        self._client = client_protocol(to) if to else self._asked_by
        self._array = ArrayWriter() if setup and setup.array and to is None else None
        self._mode = mode
        self._exchange: Exchange | None = None
        self._failure: Failed | None = None
        self._held: list[Step] = []
        """What is not sent before something is worth it."""
        self._told = False
        self._steps: list[Step] = []

    def play(self) -> None:
        assert self._recording.read is not None
        t = self._recording.read.t
        try:
            request = self._asked_by.read_request(self._recording.read.body, self._recording.read.path)
        except DragomanError as error:
            self._refuse(t, failures.from_request_error(error))
            return
        if self._setup is None:
            ended = self._recording.ended
            if ended is not None and ended.failure is not None:
                self._refuse(ended.t, ended.failure)
            return
        exchange = self._exchange = self._begun(request, self._setup)
        for number, call in enumerate(self._calls):
            if number:
                if not exchange.rejected:
                    break
                request = exchange.again(request)
            if not self._played(call, exchange):
                break
        if self._told and not is_partial(self._recording) and self._array is not None:
            self._steps.append(Step(self._last_time(), "client", self._array.close()))

    def result(self) -> Replayed:
        exchange = self._exchange
        return Replayed(
            steps=tuple(self._steps),
            receipts=tuple(exchange.receipts) if exchange else (),
            failure=self._failure,
            same=False,
        )

    def _begun(self, request: Request, setup: Setup) -> Exchange:
        began = self._calls[0].asked.t
        options = msgspec.structs.replace(
            setup.options,
            mode=self._mode or setup.options.mode,
            echo=self._client.echo(request),
            elapsed=lambda: max(0.0, self._last_time() - began),
        )
        names = ToolNames(request.tools, setup.names)
        return Exchange(self._calls[0].asked.protocol, self._client, tools=names, options=options)

    def _played(self, call: Call, exchange: Exchange) -> bool:
        """One call's answer. Gives whether another may follow."""
        if call.status is not None and not 200 <= call.status < 300:
            self._refused(call, call.status)
            return False
        for chunk in call.came:
            self._steps.append(Step(chunk.t, "upstream", chunk.data))
            if not self._give(chunk.t, exchange.feed(chunk.data), exchange):
                return False
            if exchange.over:
                return True
        if call.broke is not None and not call.broke.own:
            return self._broke(call.broke.t, call.broke.failure, exchange)
        if is_partial(self._recording) and call is self._calls[-1]:
            return False
        return self._give(self._last_time(), exchange.close(), exchange)

    def _refused(self, call: Call, status: int) -> None:
        body = b"".join(chunk.data for chunk in call.came)
        self._steps += [Step(chunk.t, "upstream", chunk.data) for chunk in call.came]
        if call.broke is None:
            return
        if 300 <= status < 400:
            self._refuse(call.broke.t, call.broke.failure)
            return
        failure = failures.from_body(status, body)
        wait = call.broke.failure.retry_after
        self._refuse(call.broke.t, msgspec.structs.replace(failure, retry_after=wait))

    def _broke(self, t: float, failure: Failed, exchange: Exchange) -> bool:
        if not self._untold(exchange):
            return self._give(t, exchange.fail(failure), exchange)
        self._refuse(t, failure)
        return False

    def _give(self, t: float, data: bytes, exchange: Exchange) -> bool:
        """Gives whether the answer is still this one: it is not, if it failed before anything was said."""
        if exchange.failure is not None:
            self._failure = exchange.failure
            if self._untold(exchange):
                self._refuse(t, exchange.failure)
                return False
        if data:
            self._held.append(Step(t, "client", data))
        held = sum(len(step.data) for step in self._held)
        streams = exchange.meaningful or held > MOST_HELD
        if self._told or streams or exchange.over:
            self._told = True
            # Sent together, as it was: what was held goes out with what made it worth sending.
            together = b"".join(step.data for step in self._held)
            self._held.clear()
            if self._array is not None and together:
                together = self._array.feed(together)
            if together:
                self._steps.append(Step(t, "client", together))
        return True

    def _untold(self, exchange: Exchange) -> bool:
        assert self._setup is not None
        return not self._setup.options.stream or not (self._told or exchange.meaningful)

    def _refuse(self, t: float, failure: Failed) -> None:
        """By a body of its own; in the stream, where the client had been told to go on waiting."""
        self._failure = failure
        ended = self._recording.ended
        if ended is None or ended.status != 200 or self._setup is None:
            body = self._client.error_body(failure, self._recording.begun.id)
        else:
            body = _in_stream(self._client, failure, self._setup)
            if self._array is not None:
                body = self._array.feed(body) + self._array.close()
        self._steps.append(Step(t, "client", body))

    def _last_time(self) -> float:
        return self._steps[-1].t if self._steps else 0.0


def _in_stream(client: ClientProtocol, failure: Failed, setup: Setup) -> bytes:
    options = setup.options
    context = AnswerContext(id=options.id, created=options.created, model=options.model)
    return client.stream_encoder(context).encode([failure])
