"""Decode Anthropic's answers, streamed or whole, into events."""

from __future__ import annotations

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
    Ping,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Unknown,
    Usage,
    UsageSeen,
)
from ....model.messages import Citation, Opaque, Part, Raw, Seal, Text, Thinking, ToolCall
from ....wire.frames import Frame
from ....wire.structs import StructReader, present, read_value, without_lone_surrogates
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ..own import NAME
from . import wire
from .verbatim import VerbatimCheck

_read = StructReader(wire.AnthropicEvent, frozenset({"text", "thinking", "partial_json"}))
_read_message = StructReader(wire.AnthropicMessage)
_read_block = StructReader(wire.AnthropicBlock)


class UpstreamBlock:
    """An open content block of the upstream."""

    __slots__ = ("given", "kind", "number", "pieces", "raw")

    def __init__(self, kind: str, raw: bytes = b"") -> None:
        self.kind = kind
        self.raw = raw
        self.number = -1
        self.given = ""
        """The arguments in `content_block_start`. Anthropic sends them there, without deltas, if a program of
        the model made the call (`caller`: code execution). Deltas replace them."""
        self.pieces: list[str] = []


class Decoder(AnswerDecoder):
    """Decodes one answer."""

    __slots__ = (
        "_blocks",
        "_detail",
        "_failure",
        "_last",
        "_open",
        "_sequence",
        "_stop",
        "_verbatim_check",
        "_waits_for_stop",
    )

    def __init__(self, issuer: str = "", check_verbatim: bool = False) -> None:
        super().__init__(issuer)
        self._verbatim_check = VerbatimCheck() if check_verbatim else None
        self._open: dict[int, UpstreamBlock] = {}
        self._last = -1
        self._blocks = 0
        self._waits_for_stop = False
        """Is a block open whose frames must go out together with its end? A block without neutral meaning
        becomes an event only at its end. A signature is written by the encoder at the end of its block: an
        encoder that takes over in between would write it again."""
        self._stop: Stop | None = None
        self._sequence: str | None = None
        self._detail: str | None = None
        self._failure: Failed | None = None
        """Set when the stop reason is a failure."""

    def frame(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        if frame.data[:1] != b"{":
            self.clean = False  # gateways that also serve Chat send `[DONE]`, which Anthropic does not
            return []
        try:
            event = _read.strict(frame.data)
        except (ValueError, RecursionError) as error:
            event = self._read_lenient(_read, frame.data, error)
        if self._verbatim_check is not None and self.clean:
            self.clean = self._verbatim_check.passes(event, frame)
        out: list[Event] = []
        self._event(event, frame, out)
        if self._failure is not None and not self._over:
            out += self._fail(self._failure)
        self.ending = self._stop is not None or self._waits_for_stop
        return out if self._joiner is None else self._joiner.join(out)

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._stop is None:
            return self._cut_off(begun=self._started)
        # A stop reason is enough for us, but a client of the original stream needs `message_stop`.
        self.clean = self.clean and self._verbatim_check is not None and self._verbatim_check.closed()
        out = self._end()
        return out if self._joiner is None else self._joiner.join(out)

    def _event(self, event: wire.AnthropicEvent, frame: Frame, out: list[Event]) -> None:
        match event.type or frame.event:
            case "content_block_delta":
                delta = event.delta or wire.AnthropicDelta()
                self._delta(delta, self._at(event, delta.type, out), out)
            case "content_block_start":
                self._block_start(event, out)
            case "content_block_stop":
                self._block_stop(self._last if event.index is None else event.index, out)
            case "message_start":
                self._message_start(present(event.message), out)
            case "message":
                self._message_start(frame.data, out)
            case "message_delta":
                self._message_delta(event, out)
            case "message_stop":
                out.extend(self._end())
            case "ping":
                out.append(Ping())
            # With status 200, in the middle of a stream. The SDK raises only if the SSE event is named
            # `error`.
            case "error":
                out.extend(self._fail(failures.from_body(None, frame.data)))
            case _:
                self._unknown(event, frame, out)

    def _unknown(self, event: wire.AnthropicEvent, frame: Frame, out: list[Event]) -> None:
        if event.error:
            out.extend(self._fail(failures.from_error(event.error)))
        # Anthropic may add event types at any time and asks clients to ignore unknown ones. They pass to
        # Anthropic clients.
        elif event.type and event.type.isprintable():
            out.append(
                Unknown(NAME, event.type, frame.data if self.clean else without_lone_surrogates(frame.data))
            )
        else:
            self.clean = False  # Anthropic's SDK skips events without a name

    def _end(self) -> list[Event]:
        out: list[Event] = []
        for index in list(self._open):
            self._block_stop(index, out)
        out.append(End(self._stop or Stop.END, self._sequence, self._detail))
        self._over = True
        return out

    def _message_start(self, raw: bytes, out: list[Event]) -> None:
        message = _read_message(raw) if raw else wire.AnthropicMessage()
        if not self._started:
            self._started = True
            out.append(Start(message.id or "", message.model or ""))
        if message.usage:
            out.append(UsageSeen(read_usage(message.usage)))
        # The content is usually empty here. A body without streaming has all of it. So has `message_start`
        # with programmatic tool calling: it is followed by `message_stop` only.
        for block in message.content or ():
            self._start_block(self._last + 1, bytes(block), out)
            self._block_stop(self._last, out)
        self._stopped(message.stop_reason or None, message.stop_sequence or None, message.stop_details)

    def _message_delta(self, event: wire.AnthropicEvent, out: list[Event]) -> None:
        if event.usage:
            out.append(UsageSeen(read_usage(event.usage)))
        if event.delta:
            self._stopped(event.delta.stop_reason, event.delta.stop_sequence, event.delta.stop_details)

    def _stopped(self, reason: str | None, sequence: str | None, details: dict[str, Any] | None) -> None:
        # A second `message_delta` without a stop reason must not erase the first one. Anthropic's SDK does
        # that.
        if not reason:
            return
        meant = stop_reasons.meaning(reason) or Stop.END
        if isinstance(meant, FailureKind):
            self._failure = stop_reasons.failure(meant, reason)
            return
        self._stop = meant
        self._sequence = sequence
        explanation = (details or {}).get("explanation")
        self._detail = explanation if isinstance(explanation, str) else None
        if self._stop is Stop.FILTER:
            self._detail = self._detail or reason

    def _block_start(self, event: wire.AnthropicEvent, out: list[Event]) -> None:
        index = self._last + 1 if event.index is None else event.index
        # Some gateways repeat an index. Anthropic's SDK would append the second block to the first.
        if index in self._open:
            self._block_stop(index, out)
        self._start_block(index, present(event.content_block), out)

    def _start_block(self, index: int, raw: bytes, out: list[Event]) -> None:
        block = _read_block(raw) if raw else wire.AnthropicBlock()
        opened = UpstreamBlock(block.type, raw)
        self._open[index] = opened
        self._last = index
        match block.type:
            case "text":
                self._begin(opened, Text(), out)
                for citation in block.citations or ():
                    self._cite(opened, citation, out)
                if block.text:
                    out.append(TextDelta(opened.number, block.text))
            case "thinking":
                seal = self._seal(block.signature) if block.signature else None
                self._begin(opened, Thinking(seal=seal), out)
                if block.thinking:
                    out.append(TextDelta(opened.number, block.thinking))
            case "redacted_thinking":
                seal = Seal(NAME, block.data or "", issuer=self._issuer, redacted=True)
                self._begin(opened, Thinking(seal=seal), out)
            case "tool_use":
                given = bytes(block.input).decode()
                # `{}` is Anthropic's placeholder for arguments that follow in deltas, not an empty object.
                opened.given = given if given.strip() not in ("", "{}", "null") else ""
                call = ToolCall(id=block.id or "", name=block.name or "", namespace=block.toolset_name)
                self._begin(opened, call, out)
            case _:
                self._waits_for_stop = True  # emitted as one part when the block stops

    def _begin(self, block: UpstreamBlock, part: Part, out: list[Event]) -> None:
        block.number = self._blocks
        self._blocks += 1
        out.append(BlockStart(block.number, part))

    def _cite(self, block: UpstreamBlock, citation: dict[str, Any], out: list[Event]) -> None:
        out.append(CitationAdded(block.number, read_citation(citation)))

    def _at(self, event: wire.AnthropicEvent, kind: str, out: list[Event]) -> UpstreamBlock:
        """The block of a delta. If the upstream did not start it, start it now."""
        index = self._last if event.index is None else event.index
        if index not in self._open:
            implied = {
                "thinking_delta": b'{"type":"thinking"}',
                "input_json_delta": b'{"type":"tool_use"}',
            }
            self._start_block(index, implied.get(kind, b'{"type":"text"}'), out)
        return self._open[index]

    def _delta(self, delta: wire.AnthropicDelta, block: UpstreamBlock, out: list[Event]) -> None:
        """Add a delta to its block. A delta that does not fit the kind of block is dropped.

        LiteLLM has sent thinking deltas in text blocks (litellm#33224). Claude Code stops with an error.
        """
        # `server_tool_use` and `mcp_tool_use` stream their input, too.
        if delta.type == "input_json_delta" and block.kind != "tool_use":
            block.pieces.append(delta.partial_json or "")
        elif block.kind == "text" and delta.text:
            out.append(TextDelta(block.number, delta.text))
        elif block.kind == "text" and delta.citation:
            self._cite(block, delta.citation, out)
        elif block.kind == "thinking" and delta.thinking:
            out.append(TextDelta(block.number, delta.thinking))
        elif block.kind == "thinking" and delta.signature is not None:
            self._waits_for_stop = True
            if delta.signature:
                out.append(Sealed(block.number, self._seal(delta.signature)))
        elif block.kind == "tool_use" and delta.partial_json:
            block.given = ""
            out.append(ArgumentsDelta(block.number, delta.partial_json))

    def _block_stop(self, index: int, out: list[Event]) -> None:
        block = self._open.pop(index, None)
        if block is None:
            return
        if block.given:
            out.append(ArgumentsDelta(block.number, block.given))
        self._waits_for_stop = False
        if block.number < 0:
            if not block.kind:
                self.clean = False  # a block without a type: no client can read it
                return
            self._begin(block, self._opaque(block), out)
        out.append(BlockEnd(block.number))

    def _opaque(self, block: UpstreamBlock) -> Opaque:
        value: dict[str, Any] = read_value(block.raw) if block.raw else {"type": block.kind}
        if block.pieces:
            try:
                value["input"] = msgspec.json.decode("".join(block.pieces).encode())
            except msgspec.DecodeError:
                self.clean = False
        return Opaque(Raw(NAME, value), block.kind)

    def _seal(self, signature: str) -> Seal:
        return Seal(NAME, signature, issuer=self._issuer)


def read_citation(citation: dict[str, Any]) -> Citation:
    """Read a citation. Kinds that refer to documents have a meaning only in `raw`."""
    return Citation(
        url=str(citation.get("url") or ""),
        title=str(citation.get("title") or citation.get("document_title") or ""),
        text=str(citation.get("cited_text") or ""),
        raw=Raw(NAME, citation),
    )


def read_usage(usage: wire.AnthropicUsage) -> Usage:
    """Read token counts. Like the neutral count, Anthropic's input excludes cached reads and writes."""
    # The counts of `message_delta` are cumulative and replace those of `message_start`. With server tools
    # they are much larger, after compaction smaller.
    thinking = (usage.output_tokens_details or {}).get("thinking_tokens")
    return Usage(
        input=usage.input_tokens,
        cache_read=usage.cache_read_input_tokens,
        cache_write=usage.cache_creation_input_tokens,
        output=usage.output_tokens,
        reasoning=thinking if type(thinking) is int else None,
    )
