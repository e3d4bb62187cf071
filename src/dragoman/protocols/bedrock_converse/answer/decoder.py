"""Decode Converse's answers, streamed or whole, into events.

The name of an event is in a header of its message (`wire/event_stream.py`). Only calls have a start event:
the first delta of another block opens it.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from ....model.messages import Citation, Media, Opaque, Part, Seal, Text, Thinking, ToolCall
from ....wire.frames import Frame
from ....wire.structs import JsonReader
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ..own import NAME
from . import wire

_read = JsonReader(wire.ConverseEvent, frozenset({"text", "input"}))


class _OpenBlock:
    """An open content block of the upstream."""

    __slots__ = ("kind", "number", "part", "pieces")

    def __init__(self, kind: type[Part], number: int = -1, part: Part | None = None) -> None:
        self.kind = kind
        self.number = number
        """Negative: the client has not got it yet, or gets nothing of it."""
        self.part = part
        """What the client gets when the block is complete: hidden reasoning, an image. Else None."""
        self.pieces: list[str] = []
        """The base64 of `part`, as it comes."""


class Decoder(AnswerDecoder):
    """Decodes one answer."""

    __slots__ = ("_blocks", "_failure", "_open", "_sequence", "_stop")

    def __init__(self, issuer: str = "", keep: bool = False) -> None:
        """`keep` changes nothing: no client speaks this protocol."""
        super().__init__(issuer)
        self._open: dict[int, _OpenBlock] = {}
        self._blocks = 0
        self._stop: Stop | None = None
        self._failure: Failed | None = None
        """Set when the stop reason is a failure."""
        self._sequence: str | None = None
        """The stop sequence that matched."""

    def frame(self, frame: Frame) -> list[Event]:
        if self._over or frame.data[:1] != b"{":
            return []
        try:
            event = _read.strict(frame.data)
        except (ValueError, RecursionError) as error:
            event = self._read_lenient(_read, frame.data, error)
        out: list[Event] = []
        self._event(event, frame, out)
        if self._failure is not None and not self._over:
            out += self._fail(self._failure)
        return out if self._joiner is None else self._joiner.join(out)

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._stop is None:
            return self._cut_off(begun=self._started)
        out: list[Event] = []
        self._end(out)
        return out if self._joiner is None else self._joiner.join(out)

    def _event(self, event: wire.ConverseEvent, frame: Frame, out: list[Event]) -> None:
        if event.error or frame.event == "error":
            out += self._fail(failures.from_body(None, frame.data))
            return
        if event.output is not None:
            self._whole(event, out)
            return
        match frame.event:
            case "contentBlockDelta":
                self._delta(event.contentBlockIndex or 0, event.delta or wire.ConverseDelta(), out)
            case "contentBlockStart":
                self._block_start(event.contentBlockIndex or 0, event.start or wire.ConverseBlock(), out)
            case "contentBlockStop":
                self._close_block(event.contentBlockIndex or 0, out)
            case "messageStart":
                self._start(out)
            case "messageStop":
                self._stopped(event)
            case "metadata":
                self._metadata(event, out)
            case _:
                pass  # a kind of event that is newer than this decoder

    def _whole(self, event: wire.ConverseEvent, out: list[Event]) -> None:
        self._start(out)
        message = event.output.message if event.output else None
        for index, block in enumerate((message.content if message else None) or ()):
            self._block(index, block, out)
            self._close_block(index, out)
        self._stopped(event)
        if self._failure is None:
            self._metadata(event, out)

    def _block(self, index: int, block: wire.ConverseBlock, out: list[Event]) -> None:
        if block.toolUse is not None:
            opened = self._call(index, block.toolUse, out)
            if opened.kind is ToolCall and (given := bytes(block.toolUse.input)):
                out.append(ArgumentsDelta(opened.number, given.decode()))
        elif block.image is not None:
            self._block_start(index, block, out)
            self._delta(index, wire.ConverseDelta(image=block.image), out)
        elif block.reasoningContent is not None:
            reasoning = block.reasoningContent
            whole = reasoning.reasoningText or wire.ReasoningText()
            piece = wire.ConverseReasoning(None, whole.text, None, reasoning.redactedContent)
            self._delta(index, wire.ConverseDelta(reasoningContent=piece), out)
            if whole.signature:
                piece = wire.ConverseReasoning(signature=whole.signature)
                self._delta(index, wire.ConverseDelta(reasoningContent=piece), out)
        elif block.citationsContent is not None:
            for text in block.citationsContent.content or ():
                self._delta(index, wire.ConverseDelta(text=text.text), out)
            for citation in block.citationsContent.citations or ():
                self._delta(index, wire.ConverseDelta(citation=citation), out)
        elif block.text is not None:
            self._delta(index, wire.ConverseDelta(text=block.text), out)

    def _start(self, out: list[Event]) -> None:
        if not self._started:
            self._started = True
            out.append(Start())

    def _block_start(self, index: int, start: wire.ConverseBlock, out: list[Event]) -> None:
        if start.toolUse is not None:
            self._call(index, start.toolUse, out)
        elif start.image is not None:
            self._collect(index, Media(kind="image", media_type=f"image/{start.image.format or 'png'}"), out)

    def _call(self, index: int, call: wire.ToolUse, out: list[Event]) -> _OpenBlock:
        self._close_block(index, out)
        if call.type == "server_tool_use":  # Bedrock runs it: the client must not
            block = self._open[index] = _OpenBlock(Opaque)
            return block
        return self._begin(index, ToolCall(id=call.toolUseId or "", name=call.name or ""), out)

    def _begin(self, index: int, part: Part, out: list[Event]) -> _OpenBlock:
        self._start(out)
        block = self._open[index] = _OpenBlock(type(part), self._blocks)
        self._blocks += 1
        out.append(BlockStart(block.number, part))
        return block

    def _collect(self, index: int, part: Part, out: list[Event]) -> _OpenBlock:
        """The open block of a part that is given to the client when it is complete."""
        block = self._open.get(index)
        if block is None or block.part != part:
            self._close_block(index, out)
            block = self._open[index] = _OpenBlock(type(part), part=part)
        return block

    def _at(self, index: int, kind: type[Text | Thinking], out: list[Event]) -> _OpenBlock:
        """The open block of this kind. A delta of another kind ends the block before it."""
        block = self._open.get(index)
        if block is not None and block.kind is kind:
            return block
        self._close_block(index, out)
        return self._begin(index, kind(), out)

    def _delta(self, index: int, delta: wire.ConverseDelta, out: list[Event]) -> None:
        if delta.text:
            out.append(TextDelta(self._at(index, Text, out).number, delta.text))
        elif delta.toolUse is not None:
            block = self._open.get(index)
            if block is None or block.kind not in (ToolCall, Opaque):
                block = self._call(index, wire.ToolUse(), out)
            if delta.toolUse.input and block.kind is ToolCall:
                out.append(ArgumentsDelta(block.number, delta.toolUse.input))
        elif delta.reasoningContent is not None:
            self._reasoning(index, delta.reasoningContent, out)
        elif delta.image is not None:
            block = self._open.get(index)
            if block is not None and block.kind is Media and delta.image.source is not None:
                block.pieces.append(delta.image.source.bytes or "")
        elif delta.citation is not None:
            out.append(CitationAdded(self._at(index, Text, out).number, _citation(delta.citation)))

    def _reasoning(self, index: int, piece: wire.ConverseReasoning, out: list[Event]) -> None:
        if piece.text:
            out.append(TextDelta(self._at(index, Thinking, out).number, piece.text))
        elif piece.signature:
            seal = Seal(NAME, piece.signature, issuer=self._issuer)
            out.append(Sealed(self._at(index, Thinking, out).number, seal))
        elif piece.redactedContent:
            hidden = Thinking(seal=Seal(NAME, "", issuer=self._issuer, redacted=True))
            self._collect(index, hidden, out).pieces.append(piece.redactedContent)

    def _close_block(self, index: int, out: list[Event]) -> None:
        block = self._open.pop(index, None)
        if block is None:
            return
        if block.part is not None:
            if not any(block.pieces):
                return
            block = self._begin(index, _completed(block.part, _joined(block.pieces)), out)
            del self._open[index]
        if block.number >= 0:
            out.append(BlockEnd(block.number))

    def _stopped(self, event: wire.ConverseEvent) -> None:
        reason = event.stopReason
        if not reason:
            return
        more = event.additionalModelResponseFields or {}
        sequence = more.get("stop_sequence")
        self._sequence = sequence if isinstance(sequence, str) else None
        meant = stop_reasons.meaning(reason) or Stop.END
        if isinstance(meant, FailureKind):
            self._failure = stop_reasons.failure(meant, reason)
        else:
            # `messageStop` comes before `metadata`, which has the usage. So the answer does not end here.
            self._stop = meant

    def _metadata(self, event: wire.ConverseEvent, out: list[Event]) -> None:
        """Usage, which is the last event of an answer."""
        if event.usage is not None:
            out.append(UsageSeen(read_usage(event.usage)))
        if self._stop is not None:
            self._end(out)

    def _end(self, out: list[Event]) -> None:
        for index in list(self._open):
            self._close_block(index, out)
        self._over = True
        out.append(End(self._stop or Stop.END, self._sequence))


def _joined(pieces: list[str]) -> str:
    """Base64 of the bytes of all pieces. AWS encodes each delta by itself, so the texts cannot be joined."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(map(base64.b64decode, pieces))).decode()
    except binascii.Error:
        return pieces[0]


def _completed(part: Part, data: str) -> Part:
    """A part that was collected, with its data."""
    if isinstance(part, Thinking):
        assert part.seal is not None
        return Thinking(seal=msgspec.structs.replace(part.seal, data=data))
    assert isinstance(part, Media)
    return msgspec.structs.replace(part, data=data)


def _citation(citation: dict[str, Any]) -> Citation:
    """Read a citation. Only a web page has an address."""
    location: Any = citation.get("location") or {}
    web: Any = location.get("web") or {}
    quoted: Any = citation.get("sourceContent") or [{}]
    return Citation(
        url=str(web.get("url") or ""),
        title=str(citation.get("title") or ""),
        text=str(quoted[0].get("text") or ""),
    )


def read_usage(usage: wire.ConverseUsage) -> Usage:
    """Read token counts. The input excludes cached tokens, like the neutral one."""
    return Usage(
        input=usage.inputTokens,
        cache_read=usage.cacheReadInputTokens,
        cache_write=usage.cacheWriteInputTokens,
        output=usage.outputTokens,
    )
