"""Translates one answer from the upstream's bytes to the client's bytes. This is the heart of Dragoman.

    upstream bytes → frames → decode → order → tools → block order → encode → client bytes

It is synchronous and deterministic: no clock, no socket, no randomness. The end of the stream and a failure
are inputs too. There is one code path: a body that is not streamed is a stream of one frame, and a client
that did not ask for a stream gets an encoder that writes nothing before the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..model.errors import DragomanError, UpstreamError
from ..model.events import NO_USAGE, BlockStart, End, Event, Failed, Usage, UsageSeen
from ..model.messages import Notice, Request, Search, Text, Tool
from ..model.order import Order
from ..protocols.base import ClientProtocol, Encoder
from ..protocols.common import failures
from ..protocols.common.tool_names import ToolNames
from ..protocols.registry import client_protocol, upstream_protocol
from ..tools import reask, search
from ..tools.reask import Rejected, TurnJoiner
from ..tools.receipts import CallReceipt
from ..tools.search import SearchCall
from ..tools.stage import ToolStage
from ..wire.frames import is_utf8
from ..wire.reader import FrameReader
from .block_order import BlockSequencer
from .citations import CitationStage
from .options import Options, tool_plan
from .summary import SummaryStage
from .whole_body import BodyEncoder

_STATE_EVENTS = frozenset({BlockStart, UsageSeen, End, Failed})


class Translation:
    """The translation of one answer: `feed` takes the upstream's bytes and returns the client's bytes.

    Call `close` when the upstream's stream ends.
    """

    __slots__ = (
        "_citations", "_client", "_decoder", "_encoder", "_options", "_order", "_reader",
        "_same", "_sequencer", "_stage", "_summary", "_turns", "_upstream", "failure",
        "meaningful", "over", "receipts", "started", "tap", "text_only", "usage",
    )  # fmt: skip

    failure: Failed | None
    """Set if the answer ended with an error. If not `started`, an HTTP status can still report it."""
    started: bool
    """Has `feed` or `close` returned any bytes for the client?"""
    meaningful: bool
    """Has the answer any content? Until then, another upstream can replace this one."""
    over: bool
    """The client has its whole answer. The rest of the upstream's stream is not needed."""
    tap: Callable[[list[Event]], None] | None
    """Called with the events that go to the client."""
    receipts: list[CallReceipt]
    """One receipt for each tool call."""
    usage: Usage
    text_only: bool
    """Are all blocks so far plain text?"""

    def __init__(
        self,
        upstream: str,
        client: str | ClientProtocol,
        *,
        tools: Sequence[Tool] | ToolNames = (),
        options: Options | None = None,
    ) -> None:
        self._options = options = options or Options()
        self._upstream = upstream_protocol(upstream)
        self._client = client if isinstance(client, ClientProtocol) else client_protocol(client)
        self._same = self._upstream.name == self._client.name
        names = tools if isinstance(tools, ToolNames) else ToolNames(tools, self._upstream.names)
        self._stage = ToolStage(tool_plan(options, self._client, names, same=self._same))
        self._sequencer = BlockSequencer() if self._client.serial else None
        make_encoder = self._client.stream_encoder if options.stream else partial(BodyEncoder, self._client)
        self._encoder: Encoder = make_encoder(options)
        self._turns = TurnJoiner() if options.invalid == "reask" or options.search else None
        self._citations: CitationStage | None = None
        """Set after the first search: later text may cite the found pages."""
        self._summary = self._summary_stage()
        self.failure = self.tap = None
        self.started = self.meaningful = self.over = False
        self.usage = NO_USAGE
        self.text_only = True
        self.receipts = self._stage.receipts
        self._prepare_decoder()

    def _summary_stage(self) -> SummaryStage | None:
        compaction = self._client.compaction if self._options.compact else None
        return None if compaction is None else SummaryStage(compaction.part, self._options.id)

    def _prepare_decoder(self) -> None:
        """Start reading a new answer of the upstream: the first one, or the next one under `reask`."""
        self._reader = FrameReader(self._options.max_frame)
        self._decoder = self._upstream.decoder(self._options.issuer, self._same)
        self._order = Order("upstream")

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Under `reask`: the calls that the model has to repeat. The answer does not end before that."""
        return self._stage.rejected

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notices about text that was removed from the answer so far."""
        return self._stage.notices

    @property
    def searches(self) -> tuple[SearchCall, ...]:
        """The searches to run now. The answer continues after `searched`."""
        return self._stage.searches

    def searched(self, found: Sequence[Search]) -> bytes:
        """Take the result of each of `searches`. Returns the bytes for the client.

        If the client has calls to run, this ends its answer. Otherwise continue with `again`.
        """
        self._citations = self._citations or CitationStage()
        self._citations.add(found)
        data = self._encode(self._stage.searched(found))
        self.started = self.started or bool(data)
        return data

    def again(self, request: Request, found: Sequence[Search] = ()) -> Request:
        """The request for the next turn: it rejects calls, or contains the results of searches.

        Its answer is then fed to this translation.
        """
        assert self._turns is not None
        answers = [reask.answered(item) for item in self.rejected]
        answers += search.answered(list(zip(self.searches, found, strict=True)))
        request = self._turns.next(request, answers, self.usage)
        self._prepare_decoder()
        self._stage.resume()
        return request

    def feed(self, data: bytes) -> bytes:
        """Take `data` from the upstream. Return the bytes for the client."""
        return b"" if self.over else self._read(data)

    def close(self, reason: str | None = None) -> bytes:
        """The upstream's stream ended. `reason`: why it broke off; None if it ended normally."""
        if reason is not None:
            return self.fail(failures.cut_off(reason))
        return b"" if self.over else self._read(None)

    def fail(self, failure: Failed) -> bytes:
        """End the answer with `failure`. Return the error in the client's protocol."""
        if self.over:
            return b""
        data = self._translate([failure])
        self.started = self.started or bool(data)
        return data

    def refuse(self, status: int, body: bytes) -> bytes:
        """The upstream answered with an HTTP error. Return the error body for the client."""
        self.over = True
        self.failure = failures.from_body(status, body)
        return self.error_body()

    def error_body(self) -> bytes:
        """The failure as the body of an HTTP error answer. Use it only if nothing was sent yet."""
        assert self.failure is not None
        return self._client.error_body(self.failure, self._options.id)

    def _read(self, data: bytes | None) -> bytes:
        """Translate what the upstream sent; None means the end of its stream."""
        out: list[bytes] = []
        try:
            for frame in self._reader.close() if data is None else self._reader.feed(data):
                # msgspec does not check the UTF-8 of members that stay raw, and those are copied to the
                # client.
                if not (frame.data.isascii() or is_utf8(frame.data)):
                    raise UpstreamError("the upstream sent an event that is not UTF-8")
                out.append(self._translate(self._decoder.frame(frame)))
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

    def _translate(self, decoded: list[Event]) -> bytes:
        """Translate the events of one frame, or of the end of the stream."""
        self._order.check(decoded)
        outgoing = self._stage.process(decoded if self._turns is None else self._turns.joined(decoded))
        if self._sequencer is not None:
            outgoing = self._sequencer.process(outgoing)
        if self._summary is not None:
            outgoing = self._summary.process(outgoing)
        return self._encode(outgoing)

    def _encode(self, outgoing: list[Event]) -> bytes:
        """The client's bytes for these events."""
        if self._citations is not None:
            outgoing = self._citations.process(outgoing)
        if not outgoing:
            return b""
        for event in outgoing:
            if type(event) in _STATE_EVENTS:
                self._update_state(event)
        if self.tap is not None:
            self.tap(outgoing)
        return self._encoder.encode(outgoing)

    def _update_state(self, event: Event) -> None:
        """Update the public attributes from an event for the client."""
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
