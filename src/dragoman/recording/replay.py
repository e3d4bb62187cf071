"""Replay a recording: translate the recorded upstream bytes with the installed version.

Only the last target's answer is replayed. Routing and retries are not part of a replay. A replay does no I/O
and does not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ..model.errors import DragomanError
from ..model.events import Failed
from ..model.messages import Request, Search
from ..observe.tap import ReplaySetup
from ..protocols.base import AnswerContext, ClientProtocol
from ..protocols.common import failures
from ..protocols.common.tool_names import ToolNames
from ..protocols.registry import client_protocol
from ..tools.receipts import CallReceipt
from ..tools.search import as_function
from ..translation.translation import Translation
from .format import RecordedCall, Recording, RecordingError

Mode = Literal["live", "whole"]
# Start events and pings take a few hundred bytes. After this many bytes without content the answer starts
# anyway, like in the gateway.
MAX_HELD = 64 * 1024
_decode_found = msgspec.json.Decoder(list[Search]).decode


class ReplayStep(msgspec.Struct, frozen=True):
    """Bytes on one side, and their time."""

    t: float
    side: Literal["upstream", "client"]
    data: bytes


class Replayed(msgspec.Struct, frozen=True):
    """What a client would get now, and whether it equals the recorded answer."""

    steps: tuple[ReplayStep, ...]
    receipts: tuple[CallReceipt, ...]
    failure: Failed | None
    same: bool
    """The bytes are those of the recording. For a cancelled answer, only the received part counts."""

    @property
    def client(self) -> bytes:
        return b"".join(step.data for step in self.steps if step.side == "client")


def replay(recording: Recording, *, to: str | None = None, mode: Mode | None = None) -> Replayed:
    """Replay a recording. Raises RecordingError if it has no answer to replay."""
    calls = answering_calls(recording)
    player = _Player(recording, calls, to, mode)
    player.play()
    result = player.result()
    sent = recording.sent
    same = result.client.startswith(sent) if is_partial(recording) else result.client == sent
    return msgspec.structs.replace(result, same=same)


def answering_calls(recording: Recording) -> Sequence[RecordedCall]:
    """The calls that made up the client's answer: the last target's, with its re-asked calls."""
    first = max((n for n, call in enumerate(recording.calls) if not call.request.again), default=0)
    return recording.calls[first:]


def is_partial(recording: Recording) -> bool:
    """Did the client cancel, or is the file cut off?"""
    return recording.ended is None or recording.ended.outcome == "cancelled"


class _Player:
    def __init__(
        self, recording: Recording, calls: Sequence[RecordedCall], to: str | None, mode: Mode | None
    ) -> None:
        if recording.request is None:
            raise RecordingError("the recording has no client request: there is nothing to replay")
        if recording.ended is not None and recording.ended.dropped:
            raise RecordingError(
                f"the recording lacks {recording.ended.dropped} records (the disk was too slow): "
                "it cannot be replayed"
            )
        self._recording = recording
        self._calls = calls
        self._original_client = client_protocol(recording.begun.client, recording.request.path)
        setup = calls[-1].request.setup if calls else None
        if calls and setup is None:
            raise RecordingError("the request passed to the upstream as it is: there is nothing to replay")
        self._setup = setup
        self._client = client_protocol(to) if to else self._original_client
        self._writer = self._client.endpoints.writer() if setup and setup.array and to is None else None
        self._mode = mode
        self._exchange: Translation | None = None
        self._failure: Failed | None = None
        self._held: list[ReplayStep] = []
        """Bytes that wait for the first content, like in the gateway."""
        self._started = False
        self._steps: list[ReplayStep] = []

    def play(self) -> None:
        assert self._recording.request is not None
        t = self._recording.request.t
        try:
            request = self._original_client.read_request(
                self._recording.request.body, self._recording.request.path
            )
        except DragomanError as error:
            self._refuse(t, failures.from_request_error(error))
            return
        if self._setup is None:
            ended = self._recording.ended
            if ended is not None and ended.failure is not None:
                self._refuse(ended.t, ended.failure)
            return
        exchange = self._exchange = self._new_exchange(request, self._setup)
        found: list[Search] = []
        for number, call in enumerate(self._calls):
            if number:
                if not exchange.rejected and (not found or len(found) != len(exchange.searches)):
                    break
                request = exchange.again(request, found)
            if not self._play_call(call, exchange):
                break
            found = self._play_searches(call, exchange)
        if self._started and not is_partial(self._recording) and self._writer is not None:
            self._steps.append(ReplayStep(self._last_time(), "client", self._writer.close()))

    def result(self) -> Replayed:
        exchange = self._exchange
        return Replayed(
            steps=tuple(self._steps),
            receipts=tuple(exchange.receipts) if exchange else (),
            failure=self._failure,
            same=False,
        )

    def _new_exchange(self, request: Request, setup: ReplaySetup) -> Translation:
        began = self._calls[0].request.t
        options = msgspec.structs.replace(
            setup.options,
            mode=self._mode or setup.options.mode,
            echo=self._client.echo(request),
            elapsed=lambda: max(0.0, self._last_time() - began),
        )
        if setup.options.search:
            request, _ = as_function(request)
        names = ToolNames(request.tools, setup.names)
        return Translation(self._calls[0].request.protocol, self._client, tools=names, options=options)

    def _play_call(self, call: RecordedCall, exchange: Translation) -> bool:
        """Replay one call's answer. Returns whether another call may follow."""
        if call.status is not None and not 200 <= call.status < 300:
            self._play_refusal(call, call.status)
            return False
        for chunk in call.received:
            self._steps.append(ReplayStep(chunk.t, "upstream", chunk.data))
            if not self._send(chunk.t, exchange.feed(chunk.data), exchange):
                return False
            if exchange.over:
                return True
        if call.failed is not None and not call.failed.own:
            return self._fail(call.failed.t, call.failed.failure, exchange)
        if is_partial(self._recording) and call is self._calls[-1]:
            return False
        return self._send(self._last_time(), exchange.close(), exchange)

    def _play_searches(self, call: RecordedCall, exchange: Translation) -> list[Search]:
        """The recorded results of the searches that the call's answer asks for."""
        if not exchange.searches or call.searched is None:
            return []
        found = _decode_found(call.searched.found)
        self._send(call.searched.t, exchange.searched(found), exchange)
        return found

    def _play_refusal(self, call: RecordedCall, status: int) -> None:
        body = b"".join(chunk.data for chunk in call.received)
        self._steps += [ReplayStep(chunk.t, "upstream", chunk.data) for chunk in call.received]
        if call.failed is None:
            return
        if 300 <= status < 400:
            self._refuse(call.failed.t, call.failed.failure)
            return
        failure = failures.from_body(status, body)
        wait = call.failed.failure.retry_after
        self._refuse(call.failed.t, msgspec.structs.replace(failure, retry_after=wait))

    def _fail(self, t: float, failure: Failed, exchange: Translation) -> bool:
        if not self._nothing_sent(exchange):
            return self._send(t, exchange.fail(failure), exchange)
        self._refuse(t, failure)
        return False

    def _send(self, t: float, data: bytes, exchange: Translation) -> bool:
        """Send bytes to the client. Returns False if the answer failed before any content."""
        if exchange.failure is not None:
            self._failure = exchange.failure
            if self._nothing_sent(exchange):
                self._refuse(t, exchange.failure)
                return False
        if data:
            self._held.append(ReplayStep(t, "client", data))
        held = sum(len(step.data) for step in self._held)
        streams = exchange.meaningful or held > MAX_HELD
        if self._started or streams or exchange.over:
            self._started = True
            # The gateway sends the held bytes together with the first content.
            together = b"".join(step.data for step in self._held)
            self._held.clear()
            if self._writer is not None and together:
                together = self._writer.feed(together)
            if together:
                self._steps.append(ReplayStep(t, "client", together))
        return True

    def _nothing_sent(self, exchange: Translation) -> bool:
        assert self._setup is not None
        return not self._setup.options.stream or not (self._started or exchange.meaningful)

    def _refuse(self, t: float, failure: Failed) -> None:
        """Send the failure as an error body, or in the stream if the gateway had already started one."""
        self._failure = failure
        ended = self._recording.ended
        if ended is None or ended.status != 200 or self._setup is None:
            body = self._client.error_body(failure, self._recording.begun.id)
        else:
            body = _in_stream(self._client, failure, self._setup)
            if self._writer is not None:
                body = self._writer.feed(body) + self._writer.close()
        self._steps.append(ReplayStep(t, "client", body))

    def _last_time(self) -> float:
        return self._steps[-1].t if self._steps else 0.0


def _in_stream(client: ClientProtocol, failure: Failed, setup: ReplaySetup) -> bytes:
    options = setup.options
    context = AnswerContext(id=options.id, created=options.created, model=options.model)
    return client.stream_encoder(context).encode([failure])
