"""The heart: one answer, from an upstream's bytes to a client's.

    upstream bytes → frames → decode → order → tools → serial → encode → client bytes

Synchronous and deterministic: no clock, no socket, no randomness. The end of the stream and its failure
are inputs too. There is one path: a body that is not streamed is a stream of one frame, and a client that did
not ask for a stream gets its answer from an encoder that writes nothing before the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..model.errors import DragomanError, UpstreamError
from ..model.events import NO_USAGE, BlockStart, End, Event, Failed, UsageSeen
from ..model.messages import Notice, Request, Text, Tool
from ..model.order import Order
from ..protocols.base import ClientProtocol, Encoder
from ..protocols.common import failures
from ..protocols.common.tool_names import ToolNames
from ..protocols.registry import client_protocol, protocol
from ..tools.reask import Rejected, Turns
from ..tools.stage import ToolStage
from ..wire.frames import Frame, is_utf8
from ..wire.reader import FrameReader
from .block_order import Serial
from .options import Options, planned
from .summary import SummaryStage
from .verbatim import Passage
from .whole_body import BodyEncoder

_NOTED = frozenset({BlockStart, UsageSeen, End, Failed})


class Exchange:
    """Feed it what the upstream sends; give the client what it returns; close it when the upstream does."""

    __slots__ = (
        "_client", "_decoder", "_encoder", "_frames", "_options", "_order", "_passage", "_reader", "_same",
        "_serial", "_stage", "_summary", "_turns", "_upstream", "failure", "meaningful", "over", "receipts",
        "started", "tap", "text_only", "usage",
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
        self.text_only = True
        """Are all blocks so far plain text?"""
        self._upstream = protocol(upstream)
        self._client = client if isinstance(client, ClientProtocol) else client_protocol(client)
        self._same = self._upstream.name == self._client.name
        self._options = options
        self._turns = Turns() if options.invalid == "reask" else None
        names = tools if isinstance(tools, ToolNames) else ToolNames(tools, self._upstream.names)
        self._stage = ToolStage(planned(options, self._client, names, same=self._same))
        self.receipts = self._stage.receipts
        """What became of each tool call."""
        self._serial = Serial() if self._client.serial else None
        stream = options.stream
        self._encoder: Encoder = (
            self._client.stream_encoder(options) if stream else BodyEncoder(self._client, options)
        )
        self._passage: Passage | None = None
        """Set as long as the upstream's own frames may go out."""
        # A call that is given in one piece, or asked for again, is not what the upstream's frames say.
        self._summary: SummaryStage | None = None
        if options.compact and self._client.compaction is not None:
            self._summary = SummaryStage(self._client.compaction.part, options.id)
        elif self._same and self._turns is None and options.mode != "whole" and options.freeform == "custom":
            self._passage = Passage(self._encoder)
        self._listen()

    def _listen(self) -> None:
        """Get ready for an answer of the upstream's."""
        self._reader = FrameReader(self._options.max_frame)
        self._decoder = self._upstream.decoder(self._options.issuer, self._same)
        self._order = Order("upstream")
        self._frames = 0

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Under `reask`: the calls that have to be asked for again. Until then the answer has no end."""
        return self._stage.rejected

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was left out of the answer's words so far."""
        return self._stage.notices

    def again(self, request: Request) -> Request:
        """The request that asks for the rejected calls again; its answer is then fed to this exchange."""
        assert self._turns is not None
        request = self._turns.next(request, self.rejected, self.usage)
        self._listen()
        self._stage.resume()
        return request

    def feed(self, data: bytes) -> bytes:
        """The upstream sent `data`; returns what the client gets now."""
        return b"" if self.over else self._read(data)

    def close(self, reason: str | None = None) -> bytes:
        """The upstream's stream is over: by itself, or by a failure that `reason` tells."""
        if reason is not None:
            return self.fail(failures.cut_off(reason))
        return b"" if self.over else self._read(None)

    def fail(self, failure: Failed) -> bytes:
        """The answer cannot go on; returns what tells the client so."""
        if self.over:
            return b""
        data = self._translate([failure])
        self.started = self.started or bool(data)
        return data

    def refuse(self, status: int, body: bytes) -> bytes:
        """The upstream answered with an HTTP error; returns the error body for the client."""
        self.over = True
        self.failure = failures.from_body(status, body)
        return self.error_body()

    def error_body(self) -> bytes:
        """The failure as the body of an HTTP error answer, for when nothing was sent yet."""
        assert self.failure is not None
        return self._client.error_body(self.failure, self._options.id)

    def _read(self, data: bytes | None) -> bytes:
        """The client's bytes for what the upstream sent; None is the end of its stream."""
        out: list[bytes] = []
        try:
            for frame in self._reader.close() if data is None else self._reader.feed(data):
                if not (frame.data.isascii() or is_utf8(frame.data)):
                    raise UpstreamError("the upstream sent an event that is not UTF-8")
                self._frames += 1
                out.append(self._translate(self._decoder.frame(frame), frame))
                if self.over:
                    break
            if data is None and not self.over:
                out.append(self._translate(self._decoder.close()))
        except DragomanError as error:
            out.append(self._translate([failures.from_exception(error)]))
        given = b"".join(out)
        if given:
            self.started = True
        return given

    def _translate(self, came: list[Event], frame: Frame | None = None) -> bytes:
        """The client's bytes for `came`, which `frame` said; the last events come without a frame."""
        self._order.check(came)
        went = self._stage.process(came if self._turns is None else self._turns.joined(came))
        if self._serial is not None:
            went = self._serial.process(went)
        if self._summary is not None:
            went = self._summary.process(went)
        if went:
            for event in went:
                if type(event) in _NOTED:
                    self._notice(event)
            if self.tap is not None:
                self.tap(went)
        if self._passage is not None:
            return self._chosen(self._passage, frame, came, went)
        return self._encoder.encode(went) if went else b""

    def _chosen(self, passage: Passage, frame: Frame | None, came: list[Event], went: list[Event]) -> bytes:
        """The upstream's own frame, if it may pass; otherwise what the encoder writes."""
        if self._may_pass(came):
            # A body goes out when the answer is over, and not before.
            unsure = self._decoder.ending or not self._options.stream
            end = "over" if self.over or frame is None else "announced" if unsure else "open"
            data = passage.choose(frame, came, went, end)
        else:
            data = passage.shut() + (self._encoder.encode(went) if went else b"")
        if not passage.open:
            self._passage = None
        return data

    def _may_pass(self, came: list[Event]) -> bool:
        """May a frame that said `came` go out as it is, if the client is to get just these events?"""
        if not self._decoder.clean or self.failure is not None:
            return False
        if not (self._options.include_usage or all(type(event) is not UsageSeen for event in came)):
            return False
        stream = self._options.stream
        return self._reader.streaming is stream and (
            stream or self._frames == 1
        )  # several bodies are not one

    def _notice(self, event: Event) -> None:
        """What of the client's events the exchange itself has to know."""
        if type(event) is BlockStart:
            self.meaningful = True
            if type(event.part) is not Text:
                self.text_only = False
        elif type(event) is UsageSeen:
            self.usage = self.usage.updated(event.usage)
        elif type(event) is End:
            self.over = self.meaningful = True
        elif type(event) is Failed:
            self.over = True
            self.failure = event
