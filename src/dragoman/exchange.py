"""The heart: one answer, from an upstream's bytes to a client's.

    upstream bytes → frames → decode → order → tools → serial → encode → client bytes

Synchronous and deterministic: no clock, no socket, no randomness. The end of the stream and its failure
are inputs too. Streamed or not makes no difference here: a body is a stream of one frame, and a client
that did not ask for a stream gets its answer when it is over. Only a body that plainly needs nothing done
goes to a client of the same protocol without all that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .alike import Alike, Run
from .body import Body, as_it_is
from .errors import DragomanError, UpstreamError
from .events import (
    DELTAS,
    NO_USAGE,
    BlockStart,
    End,
    Event,
    Failed,
    Start,
    TextDelta,
    UsageSeen,
)
from .messages import Notice, Request, Text, Tool
from .options import Options, planned
from .order import Order
from .passage import Passage
from .protocols import failures
from .protocols.base import ClientProtocol
from .protocols.names import ToolNames
from .protocols.registry import client_protocol, protocol
from .serial import Serial
from .tools.reask import Rejected, Turns
from .tools.receipts import CallReceipt
from .tools.stage import Passes, ToolStage
from .wire.frames import Frame, is_utf8
from .wire.reader import FrameReader

_NOTED = frozenset({Start, BlockStart, UsageSeen, End, Failed})
_DELTAS = frozenset(DELTAS)
_START = frozenset({Start, UsageSeen})
_NO_PART_OF_A_START = frozenset({UsageSeen, Failed})


class Exchange:
    """Feed it what the upstream sends; give the client what it returns; close it when the upstream does."""

    __slots__ = (
        "_alike", "_apart", "_block", "_body", "_client", "_decoder", "_encoder", "_frames", "_number",
        "_options", "_order", "_passage", "_passes", "_plan", "_reader", "_ready", "_same", "_serial",
        "_stage", "_turns", "_upstream", "_verbatim", "_went", "failure", "meaningful", "over", "receipts",
        "started", "tap", "usage", "wordy",
    )  # fmt: skip

    def __init__(
        self,
        upstream: str,
        client: str | ClientProtocol,
        *,
        tools: Sequence[Tool] | ToolNames = (),
        options: Options | None = None,
    ) -> None:
        options = options or Options()
        self.failure: Failed | None = None
        """Set when the answer ended in an error. Unless `started`, it can still be told by an HTTP status."""
        self.started = False
        """Has the client been given any bytes?"""
        self.meaningful = False
        """Has anything been said that is worth keeping? Until then another upstream may be tried."""
        self.over = False
        """The client has its whole answer: whatever else the upstream sends is not needed."""
        self.tap: Callable[[list[Event]], None] | None = None
        """Gets a look at the events as the client gets them."""
        self.usage = NO_USAGE
        self.wordy = True
        """Is what was said nothing but text so far?"""
        self.receipts: list[CallReceipt] = []
        """What became of each tool call."""
        self._upstream = protocol(upstream)
        self._client = client if isinstance(client, ClientProtocol) else client_protocol(client)
        self._same = self._upstream.name == self._client.name
        self._options = options
        self._turns = Turns() if options.invalid == "reask" else None
        # A call that is given in one piece, or asked for again, is not what the upstream's frames say.
        self._verbatim = self._same and self._turns is None and options.mode != "whole"
        self._apart = self._verbatim or not options.stream
        """Is each frame weighed by itself?"""
        names = tools if isinstance(tools, ToolNames) else ToolNames(tools, self._upstream.names)
        self._plan = planned(options, self._client, names, same=self._same)
        self._reader = FrameReader(options.max_frame)
        self._passes: Passes | None = None
        """What the next frame may say to be handled like the last one, in the same block."""
        self._block = self._number = -1
        """That block, and the client's number of it."""
        self._went: list[Event] = []
        """What this read's frames said, where they are not weighed one by one."""
        self._ready = False
        """Is everything there that a frame goes through? It is made for the first one."""

    def _get_ready(self) -> None:
        self._ready = True
        options = self._options
        self._listen()
        self._stage = ToolStage(self._plan)
        self.receipts = self._stage.receipts
        self._serial = Serial() if self._client.serial else None
        self._body = self._passage = None
        if not options.stream:
            self._body = Body(self._client, options, same=self._verbatim)
            return
        self._encoder = self._client.stream_encoder(options)
        if self._verbatim:
            self._passage = Passage(self._upstream.verbatim, self._encoder.follow)

    def _listen(self) -> None:
        """Get ready for an answer of the upstream's."""
        self._decoder = self._upstream.decoder(self._options.issuer, self._same)
        self._alike = Alike(self._decoder, eager=self._verbatim)
        self._passes = None
        self._order = Order("upstream")
        self._frames = 0

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Under `reask`: the calls that have to be asked for again. Until then the answer has no end."""
        return self._stage.rejected if self._ready else ()

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was left out of the answer's words so far."""
        return self._stage.notices if self._ready else ()

    def again(self, request: Request) -> Request:
        """The request that asks for the rejected calls again; its answer is then fed to this exchange."""
        assert self._turns is not None
        request = self._turns.next(request, self.rejected, self.usage)
        self._reader = FrameReader(self._options.max_frame)
        self._listen()
        self._stage.resume()
        return request

    def feed(self, data: bytes) -> bytes:
        """The upstream sent `data`; returns what the client gets now."""
        if self.over:
            return b""
        out: list[bytes] = []
        try:
            frames = self._reader.feed(data)
            if self._passes is not None:
                self._frames_alike(out)
            enough = True
            for frame in frames:
                if self.over:
                    break
                came = self._frame(frame, out)
                if came and type(came[-1]) in _DELTAS and (enough or self._passes is None):
                    enough = self._look_ahead(frame, came)
                    if enough:
                        self._frames_alike(out)
            self._hand_on(out)
        except DragomanError as error:
            self._end([failures.from_exception(error)], out)
        return self._give(out)

    def close(self, reason: str | None = None) -> bytes:
        """The upstream's stream is over: by itself, or by a failure that `reason` tells."""
        if self.over:
            return b""
        out: list[bytes] = []
        try:
            if reason is None:
                for frame in self._reader.close():
                    if self._is_plain(frame):
                        return self._give([frame.data])
                    if not self.over:
                        self._frame(frame, out)
                if not self._ready:
                    self._get_ready()
                self._end(self._decoder.close(), out)
            else:
                self._end([failures.cut_off(reason)], out)
        except DragomanError as error:
            self._end([failures.from_exception(error)], out)
        return self._give(out)

    def fail(self, failure: Failed) -> bytes:
        """The answer cannot go on; returns what tells the client so."""
        out: list[bytes] = []
        if not self.over:
            self._end([failure], out)
        return self._give(out)

    def refuse(self, status: int, body: bytes) -> bytes:
        """The upstream answered with an HTTP error; returns the error body for the client."""
        self.over = True
        self.failure = failures.from_body(status, body)
        return self.error_body()

    def error_body(self) -> bytes:
        """The failure as the body of an HTTP error answer, for when nothing was sent yet."""
        assert self.failure is not None
        return self._client.error_body(self.failure, self._options.id)

    def _is_plain(self, frame: Frame) -> bool:
        """Is this all of the answer, and such that the client gets it as it is? Then that is noted."""
        if self._ready or self._options.stream or not self._verbatim:
            return False
        found = as_it_is(frame.data, self._upstream, self._plan, usage=self._options.include_usage)
        if found is None:
            return False
        answer, self.receipts = found
        self.over = self.meaningful = True
        self.wordy = not answer.calls
        if answer.usage is not None:
            self.usage = self.usage.updated(answer.usage)
        if self.tap is not None:
            self.tap(answer.events())
        return True

    def _frame(self, frame: Frame, out: list[bytes]) -> list[Event]:
        """Read a frame; gives what it says."""
        if not self._ready:
            self._get_ready()
        data = frame.data
        if not (data.isascii() or is_utf8(data)):
            raise UpstreamError("the upstream sent an event that is not UTF-8")
        came = self._decoder.frame(frame)
        if self._passes is not None:
            if len(came) == 1 and not self._apart and self._goes_on(came[0]):
                return came
            self._passes = None
        went = self._staged(came) if came else came
        if self._apart:
            self._frames += 1
            out.append(self._weighed(frame, came, self._told(went)))
        elif went:
            # A start waits for the counts that come along with it, and for no others.
            if self._went and type(self._went[-1]) in _START and type(went[0]) in _NO_PART_OF_A_START:
                self._hand_on(out)
            self._went += went
            if self._stage.over:
                self._hand_on(out)
        return came

    def _hand_on(self, out: list[bytes]) -> None:
        """What the frames so far said goes to the client, as one."""
        if self._went:
            went, self._went = self._went, []
            out.append(self._encoder.encode(self._told(went)))

    def _weighed(self, frame: Frame | None, came: list[Event], went: list[Event]) -> bytes:
        """The bytes for one frame, or for the end that comes without: the upstream's own, if they may do."""
        if self._body is not None:
            return self._body.add(frame, came, went, self._may_pass(came))
        rebuilt = self._encoder.encode(went) if went else b""
        if self._passage is None:
            return rebuilt
        if not self._may_pass(came):
            return self._passage.shut() + rebuilt
        if frame is None:
            return self._passage.end(came, went, rebuilt)
        end = "over" if self.over else "announced" if self._decoder.ending else "open"
        return self._passage.frame(frame, came, went, rebuilt, end)

    def _goes_on(self, event: Event) -> bool:
        """Does it only go on with what was said last? Then there is nothing to check or to mend."""
        passes = self._passes
        if type(event) is not TextDelta or event.block != self._block or not callable(passes):
            return False
        if not passes(event.text):
            return False
        if self._turns is not None:
            self._turns.add(event)
        self._went.append(event if self._number == event.block else TextDelta(self._number, event.text))
        return True

    def _look_ahead(self, frame: Frame, came: list[Event]) -> bool:
        """`frame` was read, words last: do enough lie ahead that may differ from it only in their words?"""
        alike, delta = self._alike, came[-1]
        if self._passes is None and isinstance(delta, DELTAS):
            self._passes = self._stage.passes(delta)
            if type(delta) is TextDelta and self._passes is not None:
                self._block, self._number = delta.block, self._stage.passed(delta).block
        if alike.least and self._reader.ahead < alike.least * len(frame.data):
            alike.least -= alike.least > 1
            return False
        alike.seen(frame, came)
        return True

    def _frames_alike(self, out: list[bytes]) -> None:
        """Go on with those that differ from the last one only in their words."""
        delta = self._alike.delta
        pieces = None if delta is None or self._passes is None else self._alike.follow(self._reader)
        if pieces is None or delta is None:
            return
        at = 0
        while at < pieces.count and not self.over:
            run = pieces.run(at, delta, self._passes)
            if run is None:
                frame = pieces.frame(at)
                came = self._frame(frame, out)
                if came and type(came[-1]) in _DELTAS:
                    self._look_ahead(frame, came)
                at += 1
            else:
                self._hand_on(out)
                out.append(self._run(run))
                at += len(run.insides)

    def _run(self, run: Run) -> bytes:
        """Frames whose words go to the client as they are, and only go on with what was said last: their
        order is right, and they tell nobody anything new but these words."""
        self._decoder.said(run.delta, len(run.insides))
        if self._turns is not None:
            self._turns.add(run.delta)
        delta = self._stage.passed(run.delta)
        went: list[Event] = [delta]
        if self._serial is not None:
            went = self._serial.process(went)
        if went and self.tap is not None:
            self.tap(went)
        if self._body is not None:
            return self._body.add(None, [run.delta], went, False)
        passage, ending = self._passage, self._decoder.ending
        if passage is not None and (verbatim := passage.run(run, went, ending)) is not None:
            self._encoder.passed(run.delta, len(run.insides))
            return verbatim
        rebuilt = self._encoder.run(delta, run.pieces) if went else b""  # nothing: it waits for its turn
        return rebuilt if passage is None else passage.weigh_run(run, went, rebuilt, ending)

    def _end(self, came: list[Event], out: list[bytes]) -> None:
        """The last events come without a frame."""
        if not self._ready:
            self._get_ready()
        if self._apart:
            out.append(self._weighed(None, came, self._told(self._staged(came))))
        else:
            self._hand_on(out)
            self._went = self._staged(came)
            self._hand_on(out)

    def _may_pass(self, came: list[Event]) -> bool:
        if not self._decoder.clean or self.failure is not None:
            return False
        if self._reader.streaming is not self._options.stream:
            return False
        if self._frames > 1 and not self._options.stream:
            return False  # several bodies are not one
        return self._options.include_usage or not any(type(e) is UsageSeen for e in came)

    def _staged(self, events: list[Event]) -> list[Event]:
        """Events of the upstream's as the client is to get them, one way or another."""
        self._order.check(events)
        if self._turns is not None:
            events = self._turns.joined(events)
        return self._stage.process(events)

    def _told(self, events: list[Event]) -> list[Event]:
        """Those that the client gets now."""
        if self._serial is not None:
            events = self._serial.process(events)
        if events:
            self._notice(events)
            if self.tap is not None:
                self.tap(events)
        return events

    def _notice(self, events: list[Any]) -> None:
        """What of the client's events the exchange itself has to know."""
        for event in events:
            kind: type = type(event)  # pyright: ignore[reportUnknownVariableType]
            if kind not in _NOTED:
                continue
            if kind is BlockStart:
                self.meaningful = True
                if type(event.part) is not Text:
                    self.wordy = False
            elif kind is UsageSeen:
                self.usage = self.usage.updated(event.usage)
            elif kind is End:
                self.over = self.meaningful = True
            elif kind is Failed:
                self.over = True
                self.failure = event
            elif not self._same:
                # An id of another protocol would be taken for one of this one's.
                events[events.index(event)] = Start("", event.model, event.created, event.extras)

    def _give(self, out: list[bytes]) -> bytes:
        data = b"".join(out)
        if data:
            self.started = True
        return data
