"""Decode Anthropic's answers, streamed or whole, into events."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import (
    NO_USAGE,
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
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
    UsageSeen,
)  # fmt: skip
from ....model.messages import Citation, Extras, Opaque, Part, Raw, Seal, Text, Thinking, ToolCall
from ....wire.frames import Frame
from ....wire.structs import read_value, without_lone_surrogates
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ...common.surrogate_joiner import SurrogateJoiner
from ..own import NAME
from . import wire
from .upstream_block import UpstreamBlock
from .wire import Members, take

# By type of delta: its content.
_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
    "citations_delta": "citation",
}
_IMPLIED = {"thinking_delta": "thinking", "input_json_delta": "tool_use"}
_COMPACTION = "compaction"
"""The stop reason after a compaction. Its neutral meaning is a pause, but it has a name of its own."""


class Decoder(AnswerDecoder):
    """Decodes one answer."""

    __slots__ = (
        "_blocks", "_detail", "_failure", "_keep", "_last", "_last_extras", "_open", "_rough", "_sequence",
        "_stop",
    )  # fmt: skip

    def __init__(self, issuer: str = "", keep: bool = False) -> None:
        super().__init__(issuer)
        self._keep = keep
        """The client speaks this protocol too, so it gets the members that have no neutral meaning."""
        self._last_extras: Extras | None = None
        self._rough = False
        """The frame has lone surrogates, or something else that a strict decoder refuses."""
        self._open: dict[int, UpstreamBlock] = {}
        self._last = -1
        self._blocks = 0
        self._stop: Stop | None = None
        self._sequence: str | None = None
        self._detail: str | None = None
        self._failure: Failed | None = None
        """Set when the stop reason is a failure."""

    def frame(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        if frame.event == "content_block_delta":
            try:
                plain = wire.plain_delta(frame.data)
            except (ValueError, RecursionError):
                pass  # it holds more than text
            else:
                block = self._open.get(plain.index)
                if block is not None and type(plain.delta) is block.piece and plain.delta.text:
                    block.given = None
                    out: list[Event] = [block.grown(block.number, plain.delta.text)]
                    return out if self._joiner is None else self._joiner.join(out)
        # Gateways that also serve Chat send `[DONE]`.
        return self._read(frame) if frame.data[:1] == b"{" else []

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._stop is None:
            return self._cut_off(begun=self._started)
        out = self._end(None)
        return out if self._joiner is None else self._joiner.join(out)

    def _read(self, frame: Frame) -> list[Event]:
        """Read any frame, member by member."""
        self._rough = False
        try:
            event: Members = wire.strict_members(frame.data)
        except (ValueError, RecursionError) as error:
            event = wire.lenient_members(frame.data, error)
            self._rough = True
            # One reason is half of a surrogate pair. The other half may come with the next fragment, so from
            # now on all text goes through the joiner. Most answers never need one.
            self._joiner = self._joiner or SurrogateJoiner()
        out: list[Event] = []
        self._event(event, frame, out)
        if self._failure is not None and not self._over:
            out += self._fail(self._failure)
        return out if self._joiner is None else self._joiner.join(out)

    def _event(self, event: Members, frame: Frame, out: list[Event]) -> None:
        kind = wire.named(event)
        match kind or frame.event:
            case "content_block_delta":
                self._delta(wire.index(event, self._last), event, frame, out)
            case "content_block_start":
                self._block_start(wire.index(event, self._last + 1), event, out)
            case "content_block_stop":
                self._block_stop(wire.index(event, self._last), out, self._extras(event))
            case "message_start":
                message = take(event, "message", wire.members_of) or {}
                self._message_start(message, event, out)
            case "message":
                self._message_start(event, {}, out)
            case "message_delta":
                self._message_delta(event, out)
            case "message_stop":
                out.extend(self._end(self._extras(event)))
            case "ping":
                self._aside("ping", event, Ping(self._extras(event)), out)
            # With status 200, in the middle of a stream. The SDK raises only if the SSE event is named
            # `error`.
            case "error":
                self._error(event, failures.from_body(None, frame.data), out)
            case _:
                self._unknown(kind, event, frame, out)

    def _unknown(self, kind: str, event: Members, frame: Frame, out: list[Event]) -> None:
        error = wire.given(event, "error")
        if error:
            self._error(event, failures.from_error(error), out)
        # Anthropic may add event types at any time and asks clients to ignore unknown ones. They pass to
        # Anthropic clients. Anthropic's SDK skips events without a name.
        elif kind and kind.isprintable():
            self._aside(kind, event, Unknown(NAME, kind, self._data(frame)), out)

    def _aside(self, kind: str, left: Members, event: Event, out: list[Event]) -> None:
        """Add an event that is about no block.

        The client gets a block with its first content. What came before that content goes along with the
        block, so that the frames keep their order.
        """
        block = self._open.get(self._last)
        if self._keep and block is not None and block.number >= 0 and block.given is not None:
            self._carry({"type": kind, **left}, block.number, out)
        else:
            out.append(event)

    def _data(self, frame: Frame) -> bytes:
        return without_lone_surrogates(frame.data) if self._rough else frame.data

    def _error(self, event: Members, failure: Failed, out: list[Event]) -> None:
        if self._keep and wire.is_object(wire.given(event, "error")):
            event["error"] = wire.members_of(event["error"])
        out += self._fail(msgspec.structs.replace(failure, extras=self._extras(event)))

    def _extras(self, left: Members) -> Extras | None:
        """What is left of a frame or block, for a client of this protocol."""
        if not self._keep or not left:
            return None
        if self._rough:
            left = read_value(msgspec.json.encode(left))
        last = self._last_extras
        # Members that are equal in every frame are one value: the encoder writes them once.
        if last is None or last.members != left:
            last = self._last_extras = Extras(NAME, left)
        return last

    def _carry(self, left: Members, number: int | None, out: list[Event]) -> None:
        extras = self._extras(left)
        if extras is not None:
            out.append(Carried(extras, number))

    def _end(self, extras: Extras | None) -> list[Event]:
        out: list[Event] = []
        for index in list(self._open):
            self._block_stop(index, out)
        out.append(End(self._stop or Stop.END, self._sequence, self._detail, extras))
        self._over = True
        return out

    def _message_start(self, message: Members, event: Members, out: list[Event]) -> None:
        """Read a message: `event` is the rest of the frame around it."""
        usage = take(message, "usage", wire.members_of)
        content = take(message, "content", wire.items)
        self._stopped(message)
        start = Start(take(message, "id", wire.string) or "", take(message, "model", wire.string) or "")
        extras = self._extras({**event, "message": message} if message else event)
        if not self._started:
            self._started = True
            out.append(msgspec.structs.replace(start, extras=extras))
        elif extras is not None:
            out.append(Carried(extras))
        if usage is not None:
            out.append(UsageSeen(wire.usage(usage), self._extras({"usage": usage})))
        # The content is usually empty here. A body without streaming has all of it. So has `message_start`
        # with programmatic tool calling: it is followed by `message_stop` only.
        for block in content or ():
            self._start_block(self._last + 1, wire.members_of(block), out)
            self._block_stop(self._last, out)

    def _message_delta(self, event: Members, out: list[Event]) -> None:
        usage = take(event, "usage", wire.members_of)
        delta = take(event, "delta", wire.members_of) or {}
        self._stopped(delta)
        counts = NO_USAGE if usage is None else wire.usage(usage)
        # An empty `delta` says that this is a `message_delta`, with nothing to keep.
        extras = self._extras({**event, "delta": delta, **({"usage": usage} if usage else {})})
        if extras is not None or usage is not None:
            out.append(UsageSeen(counts, extras))

    def _stopped(self, ending: Members) -> None:
        reason = take(ending, "stop_reason", wire.string)
        sequence = take(ending, "stop_sequence", wire.string)
        # A second `message_delta` without a stop reason must not erase the first one. Anthropic's SDK does
        # that.
        if not reason:
            return
        meant = stop_reasons.meaning(reason)
        if meant is None or reason == _COMPACTION:
            ending["stop_reason"] = reason  # no neutral name is as exact
        meant = meant or Stop.END
        if isinstance(meant, FailureKind):
            self._failure = stop_reasons.failure(meant, reason)
            return
        self._stop = meant
        self._sequence = sequence
        details = wire.given(ending, "stop_details")
        explanation = details.get("explanation") if wire.is_object(details) else None
        self._detail = explanation if isinstance(explanation, str) else None
        if self._stop is Stop.FILTER:
            self._detail = self._detail or reason

    def _block_start(self, index: int, event: Members, out: list[Event]) -> None:
        block = take(event, "content_block", wire.members_of) or {}
        # Some gateways repeat an index. Anthropic's SDK would append the second block to the first.
        if index in self._open:
            self._block_stop(index, out)
        self._start_block(index, block, out, self._extras(event))

    def _start_block(
        self, index: int, block: Members, out: list[Event], extras: Extras | None = None
    ) -> None:
        kind = wire.named(block)
        opened = self._open[index] = UpstreamBlock(kind, self._blocks if kind else -1)
        self._last = index
        if not kind:
            return  # no client can read a block without a type
        self._blocks += 1
        begin = len(out)
        part = self._part(opened, kind, block, out)
        out.insert(begin, BlockStart(opened.number, part, extras))

    def _part(self, opened: UpstreamBlock, kind: str, block: Members, out: list[Event]) -> Part:
        """The part of a block. Content that is in its start already goes to `out`."""
        match kind:
            case "text":
                text = take(block, "text", wire.piece)
                citations = wire.given(block, "citations")
                if citations and wire.is_array(citations):
                    del block["citations"]
                    out += [self._cited(opened, citation, None) for citation in citations]
                if text:
                    out.append(TextDelta(opened.number, text))
                return Text(extras=self._extras(block))
            case "thinking":
                signature = take(block, "signature", wire.string)
                if text := take(block, "thinking", wire.piece):
                    out.append(TextDelta(opened.number, text))
                return Thinking(seal=self._seal(signature) if signature else None, extras=self._extras(block))
            case "redacted_thinking":
                data = take(block, "data", wire.string) or ""
                seal = Seal(NAME, data, issuer=self._issuer, redacted=True)
                return Thinking(seal=seal, extras=self._extras(block))
            case "tool_use":
                given = (take(block, "input", bytes) or b"").decode()
                # `{}` is Anthropic's placeholder for arguments that follow in deltas, not an empty object.
                opened.given = given if given.strip() not in ("", "{}") else ""
                return ToolCall(
                    id=take(block, "id", wire.string) or "",
                    name=take(block, "name", wire.string) or "",
                    namespace=take(block, "toolset_name", wire.string),
                    extras=self._extras(block),
                )
            case _:
                value = {"type": kind, **block}
                return Opaque(
                    Raw(NAME, read_value(msgspec.json.encode(value)) if self._rough else value), kind
                )

    def _cited(self, block: UpstreamBlock, citation: Any, extras: Extras | None) -> CitationAdded:
        value = citation if wire.is_object(citation) else {}
        return CitationAdded(block.number, read_citation(value), extras)

    def _delta(self, index: int, event: Members, frame: Frame, out: list[Event]) -> None:
        delta = take(event, "delta", wire.members_of) or {}
        kind = wire.named(delta) or next((k for k, f in _FIELDS.items() if f in delta), "")
        block = self._open.get(index)
        if kind not in _FIELDS:
            number = None if block is None or block.number < 0 else block.number
            if kind and number is not None:
                out.append(Unknown(NAME, "content_block_delta", self._data(frame), number))
            elif kind:
                self._carry({**event, "delta": {"type": kind, **delta}}, None, out)
            return
        if block is None:
            # The upstream did not start it.
            self._start_block(index, {"type": _text(_IMPLIED.get(kind, "text"))}, out)
            block = self._open[index]
        if block.number >= 0:
            self._grow(block, kind, event, delta, out)

    def _grow(
        self, block: UpstreamBlock, kind: str, event: Members, delta: Members, out: list[Event]
    ) -> None:
        """Add a delta to its block. The content of a delta that does not fit the kind of block is dropped.

        LiteLLM has sent thinking deltas in text blocks (litellm#33224). Claude Code stops with an error.
        """
        field = _FIELDS[kind]
        number = block.number
        if kind == block.growing:
            text = take(delta, field, wire.piece)
            if not text:
                # An empty delta stays a frame of its own.
                self._carry({**event, "delta": {"type": kind, field: "", **delta}}, number, out)
                return
            block.given = None
            out.append(block.grown(number, text, extras=self._extras(_around(event, delta))))
        elif block.kind == "text" and kind == "citations_delta":
            citation = take(delta, field, wire.any_object)
            extras = self._extras(_around(event, delta))
            if citation:
                out.append(self._cited(block, citation, extras))
            elif extras is not None:
                out.append(Carried(extras, number))
        else:
            content = take(delta, field, wire.string) if kind == "signature_delta" else None
            delta.pop(field, None)
            if content and block.kind == "thinking":
                out.append(Sealed(number, self._seal(content), self._extras(_around(event, delta))))
            else:
                self._carry(_around(event, delta), number, out)

    def _block_stop(self, index: int, out: list[Event], extras: Extras | None = None) -> None:
        block = self._open.pop(index, None)
        if block is None or block.number < 0:
            if extras is not None:
                out.append(Carried(extras))
            return
        if block.given:
            out.append(ArgumentsDelta(block.number, block.given))
        out.append(BlockEnd(block.number, extras=extras))

    def _seal(self, signature: str) -> Seal:
        return Seal(NAME, signature, issuer=self._issuer)


def _around(event: Members, delta: Members) -> Members:
    """What is left of a frame with a delta."""
    return {**event, "delta": delta} if delta else event


def _text(value: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def read_citation(value: dict[str, Any]) -> Citation:
    """Read a citation. Kinds that refer to documents have a meaning only in `raw`."""
    return Citation(
        url=str(value.get("url") or ""),
        title=str(value.get("title") or value.get("document_title") or ""),
        text=str(value.get("cited_text") or ""),
        raw=Raw(NAME, value),
    )
