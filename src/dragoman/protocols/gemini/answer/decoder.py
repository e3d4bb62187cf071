"""Decode Gemini's answers, streamed or whole, into events."""

from __future__ import annotations

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Start,
    Stop,
    TextDelta,
    UsageSeen,
)
from ....model.messages import Citation, Extras, Media, Opaque, Raw, Seal, Text, Thinking, ToolCall
from ....wire.frames import Frame
from ....wire.structs import JsonReader, read_value
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ...common.extras import kept
from ...common.fields import Obj
from ...common.sealed_reasoning import is_base64
from ...common.text_blocks import TextBlocks
from ..own import NAME
from . import left, wire
from .partial_args import PartialArguments
from .sources import CitedText, read_sources
from .usage import read_usage

_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"

_read = JsonReader(wire.GeminiChunk)
_read_part = JsonReader(wire.GeminiPart, frozenset({"text"}))


class Decoder(AnswerDecoder):
    """Decodes one answer. Gemini has no end marker: it ends with a finish reason and the stream."""

    def __init__(self, issuer: str = "", keep: bool = False) -> None:
        super().__init__(issuer)
        self._keep = keep
        self._blocks = TextBlocks()
        self._stop: Stop | None = None
        self._detail: str | None = None
        self._reason: str | None = None
        """The finish reason as it came, while the client has not got it."""
        self._call: int | None = None
        """The block of a call whose arguments continue: Vertex streams them as `partialArgs`, or in parts
        without a name."""
        self._partial: PartialArguments | None = None
        self._seals: list[Seal] = []
        """The signatures of the newest text. They end its block, so they wait: its sources may follow."""
        self._cited: CitedText | None = None
        """The newest text block."""
        self._sources: set[Citation] = set()
        """The citations so far. Gemini may repeat them in a later chunk."""
        self._last: list[Event] = []
        """The events of a chunk with a finish reason, for a client that gets it as it came. They wait until
        it is certain that nothing follows."""
        self._finished: Obj = {}
        """The members of that chunk's candidate."""

    def frame(self, frame: Frame) -> list[Event]:
        # Gateways that also serve Chat send `[DONE]`.
        if self._over or frame.data[:1] != b"{":
            return []
        try:
            chunk = _read.strict(frame.data)
        except (ValueError, RecursionError) as error:
            chunk = self._read_lenient(_read, frame.data, error)
        if chunk.error:
            return self._released(chunk) + self._fail(self._error(chunk, frame.data))
        out: list[Event] = []
        if not self._started:
            self._started = True
            out.append(Start(chunk.responseId or "", chunk.modelVersion or ""))
        self._chunk(chunk, frame.data, out)
        out = out if self._joiner is None else self._joiner.join(out)
        if not self._keep or (self._stop is None and not self._over):
            return out
        before = self._released(chunk)
        if self._over:
            return before + out
        self._last = out
        return before

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._stop is None:
            return self._cut_off(begun=self._started)
        out, self._last = self._last, []
        self._end_call(out)
        self._end_text(out)
        extras = None if self._reason is None else Extras(NAME, {"finishReason": self._reason})
        out.append(End(self._stop, detail=self._detail, extras=extras))
        self._over = True
        return out if self._joiner is None else self._joiner.join(out)

    def _released(self, chunk: wire.GeminiChunk) -> list[Event]:
        """The events that waited, because `chunk` follows."""
        last, self._last = self._last, []
        if last and chunk.candidates and all((candidate.index or 0) > 0 for candidate in chunk.candidates):
            # The answer is over, but other candidates are not.
            self._finished["finishReason"], self._reason = self._reason, None
        return last

    def _error(self, chunk: wire.GeminiChunk, data: bytes) -> Failed:
        failed = failures.from_error(chunk.error)
        return msgspec.structs.replace(failed, extras=kept(NAME, read_value(data))) if self._keep else failed

    def _chunk(self, chunk: wire.GeminiChunk, data: bytes, out: list[Event]) -> None:
        candidates = chunk.candidates or ()
        # With `candidateCount` there are further candidates. The neutral answer has one.
        place = next((place for place, one in enumerate(candidates) if (one.index or 0) <= 0), None)
        members = left.LeftMembers(data, candidates, place) if self._keep else None
        if members is not None:
            out.append(Carried(members.extras))
        if place is not None:
            self._candidate(candidates[place], members, out)
            if self._over:
                return
        # Vertex sends `usageMetadata` with only `trafficType` on most chunks.
        if chunk.usageMetadata is not None:
            if (usage := read_usage(chunk.usageMetadata)).known:
                out.append(UsageSeen(usage))
            elif members is not None:
                members.drop_null_counts()
        # A blocked prompt has no candidate and no finish reason. It must not become an empty success.
        blocked = (chunk.promptFeedback or {}).get("blockReason")
        if blocked and not candidates:
            self._stop, self._detail = Stop.FILTER, str(blocked)

    def _candidate(
        self, candidate: wire.Candidate, members: left.LeftMembers | None, out: list[Event]
    ) -> None:
        parts = candidate.content.parts if candidate.content is not None else None
        for place, raw in enumerate(parts or ()):
            self._part(bytes(raw), None if members is None else members.parts[place], place == 0, out)
        if members is None:
            self._citations(candidate, out)
        reason = candidate.finishReason
        if not reason:
            return
        # `OTHER` and unknown reasons count as a filter: Google stops answers for them without an explanation.
        stop = Stop.END if reason == _UNSPECIFIED else stop_reasons.meaning(reason) or Stop.FILTER
        if isinstance(stop, FailureKind):
            # `MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`: Gemini may send a call beside it. The call
            # must not run, so the whole answer fails (gemini-cli#12674, hermes-agent#83886).
            message = candidate.finishMessage or f"the model's tool call failed: {reason}"
            out.extend(self._fail(stop_reasons.failure(stop, reason, message)))
            return
        self._stop, self._detail = stop, reason if stop is Stop.FILTER else None
        if members is not None:
            self._reason, self._finished = reason, members.candidate

    def _part(self, raw: bytes, rest: Obj | None, first: bool, out: list[Event]) -> None:
        part = _read_part(raw)
        signature = part.thoughtSignature or None
        if isinstance(part.functionCall, wire.GeminiCall):
            members = None if rest is None else left.call_members(rest, signature)
            self._function_call(part.functionCall, signature, members, out)
            return
        self._end_call(out)
        if rest is not None and signature and is_base64(signature):
            signature = None  # it stays on its part
        elif rest is not None and signature:
            del rest["thoughtSignature"]
        blob = part.inlineData or part.fileData
        if isinstance(part.text, str) and rest is not None:
            self._own_text(part.text, part, left.text_members(rest, part), first, out)
        elif isinstance(part.text, str):
            self._text(part.text, bool(part.thought), out)
        elif blob is not None and (blob.data or blob.fileUri):
            key = "inlineData" if part.inlineData else "fileData"
            self._whole(_media(blob, None if rest is None else left.media_members(rest, key)), out)
        else:
            self._opaque(_present(read_value(raw)) if rest is None else left.other_members(rest), out)
        if signature:
            # A signature may come late, on a last part with empty text. It becomes a separate thinking block,
            # so that the client sends it back.
            self._seals.append(self._seal(signature))

    def _text(self, text: str, thought: bool, out: list[Event]) -> None:
        if not text:
            return
        if self._seals:
            self._end_text(out)
        if thought:
            self._blocks.thinking(text, out)
            return
        opened = len(out)
        self._blocks.text(text, out)
        if self._cited is None or len(out) > opened + 1:
            assert self._blocks.block is not None
            self._cited = CitedText(self._blocks.block)
        self._cited.add(text)

    def _own_text(
        self, text: str, part: wire.GeminiPart, members: Obj, first: bool, out: list[Event]
    ) -> None:
        """Text for a client that gets each part as it came: only the first part of a chunk may continue the
        text of the chunk before."""
        thought = bool(part.thought)
        block = self._blocks.block
        if self._seals or not (first and block is not None and (self._blocks.thought is not None) == thought):
            self._end_text(out)
            block = None
        kind = Thinking if thought else Text
        if block is None and text:
            opened = len(out)
            (self._blocks.thinking if thought else self._blocks.text)(text, out)
            if members:
                block = self._blocks.block or 0
                out[opened] = BlockStart(block, kind(extras=Extras(NAME, members)))
        elif block is None or (members and not text):
            self._whole(kind(extras=Extras(NAME, members)), out)
        elif text:
            out.append(TextDelta(block, text, extras=left.in_chunk(members) if members else None))
        else:
            empty = {"text": "", "thought": True} if thought else {"text": ""}
            out.append(Carried(left.in_chunk(empty), block))

    def _opaque(self, part: Obj, out: list[Event]) -> None:
        kind = next((key for key in _present(part) if key not in ("thought", "thoughtSignature")), "")
        if kind or self._keep:
            self._whole(Opaque(Raw(NAME, part), kind), out)

    def _whole(self, part: Media | Opaque | Text | Thinking, out: list[Event]) -> None:
        self._end_text(out)
        out.append(BlockEnd(self._blocks.open(part, out)))

    def _end_text(self, out: list[Event]) -> None:
        """End the open text block, and give its signatures."""
        self._blocks.end(out)
        if self._seals:
            for seal in self._seals:
                out.append(BlockEnd(self._blocks.open(Thinking(seal=seal), out)))
            self._seals.clear()

    def _function_call(
        self, call: wire.GeminiCall, signature: str | None, members: Obj | None, out: list[Event]
    ) -> None:
        if call.name:
            self._end_call(out)
            self._end_text(out)
            seal = self._seal(signature) if signature else None
            extras = kept(NAME, members) if members else None
            part = ToolCall(id=call.id or "", name=call.name, seal=seal, extras=extras)
            self._call = self._blocks.open(part, out)
        elif members and self._call is not None:
            out.append(Carried(left.in_chunk(members), self._call))
        elif members and (beside := {name: v for name, v in members.items() if name != "functionCall"}):
            out.append(Carried(left.in_chunk(beside)))  # a call without a name is none
        if self._call is None:
            return  # Vertex ends a streamed call with `functionCall: {}`; this call has ended before
        if call.partialArgs is not None:
            self._partial_arguments(call, out)
            return
        args = bytes(call.args).decode()
        if args.strip() not in ("", "{}", "null"):
            out.append(ArgumentsDelta(self._call, args))
            self._end_call(out)
        elif not call.name and not call.willContinue:
            self._end_call(out)

    def _partial_arguments(self, call: wire.GeminiCall, out: list[Event]) -> None:
        self._partial = self._partial or PartialArguments()
        try:
            self._partial.add(call.partialArgs or [])
        except ValueError as error:
            out.extend(self._fail(Failed(FailureKind.UPSTREAM, str(error))))
            return
        if not call.willContinue:
            self._end_call(out)

    def _end_call(self, out: list[Event]) -> None:
        if self._call is None:
            return
        if self._partial is not None:
            out.append(ArgumentsDelta(self._call, self._partial.text()))
            self._partial = None
        out.append(BlockEnd(self._call))
        self._call = None

    def _citations(self, candidate: wire.Candidate, out: list[Event]) -> None:
        """Add the sources to the newest text block: it is open, or this chunk ended it."""
        if self._cited is None or not (candidate.citationMetadata or candidate.groundingMetadata):
            return
        block = self._cited.block
        end = BlockEnd(block)
        if end in out:
            place = out.index(end)
        elif block == self._blocks.block:
            place = len(out)
        else:
            return
        found = [source for source in read_sources(candidate, self._cited) if source not in self._sources]
        self._sources.update(found)
        out[place:place] = [CitationAdded(block, source) for source in found]

    def _seal(self, signature: str) -> Seal:
        return Seal(NAME, signature, issuer=self._issuer)


def _present(part: Obj) -> Obj:
    return {key: member for key, member in part.items() if member is not None}


def _media(blob: wire.Blob, members: Obj | None) -> Media:
    kind = blob.mimeType.partition("/")[0]
    known = kind if kind in ("image", "audio", "video") else "document"
    extras = kept(NAME, members) if members else None
    return Media(kind=known, media_type=blob.mimeType, data=blob.data, url=blob.fileUri, extras=extras)
