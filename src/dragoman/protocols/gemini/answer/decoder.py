"""Decode Gemini's answers, streamed or whole, into events."""

from __future__ import annotations

from typing import Any

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Start,
    Stop,
    Unknown,
    Usage,
    UsageSeen,
)
from ....model.messages import Citation, Media, Opaque, Raw, Seal, Thinking, ToolCall
from ....wire.frames import Frame
from ....wire.structs import StructReader, read_value
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ...common.fields import is_array, is_object
from ...common.text_blocks import TextBlocks
from ..own import NAME
from . import wire
from .partial_args import PartialArguments
from .verbatim import VerbatimCheck

_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"

_read = StructReader(wire.GeminiChunk)
_read_part = StructReader(wire.GeminiPart, frozenset({"text"}))


class Decoder(AnswerDecoder):
    """Decodes one answer. Gemini has no end marker: it ends with a finish reason and the stream."""

    def __init__(self, issuer: str = "", check_verbatim: bool = False) -> None:
        super().__init__(issuer)
        self._verbatim_check = VerbatimCheck() if check_verbatim else None
        self._blocks = TextBlocks()
        self._stop: Stop | None = None
        self._detail: str | None = None
        self._call: int | None = None
        """The block of a call whose arguments continue: Vertex streams them as `partialArgs`, or in parts
        without a name."""
        self._partial: PartialArguments | None = None

    def frame(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        if frame.data[:1] != b"{":
            self.clean = False  # gateways that also serve Chat send `[DONE]`, which google-genai rejects
            return []
        try:
            chunk = _read.strict(frame.data)
        except (ValueError, RecursionError) as error:
            chunk = self._read_lenient(_read, frame.data, error)
        if self._verbatim_check is not None and self.clean:
            self.clean = self._verbatim_check.passes(chunk)
        if chunk.error:
            return self._fail(failures.from_error(chunk.error))
        out: list[Event] = []
        if not self._started:
            self._started = True
            out.append(Start(chunk.responseId or "", chunk.modelVersion or ""))
        self._chunk(chunk, frame, out)
        return out if self._joiner is None else self._joiner.join(out)

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._stop is None:
            return self._cut_off(begun=self._started)
        out: list[Event] = []
        self._end_call(out)
        self._blocks.end(out)
        out.append(End(self._stop, detail=self._detail))
        self._over = True
        return out if self._joiner is None else self._joiner.join(out)

    def _chunk(self, chunk: wire.GeminiChunk, frame: Frame, out: list[Event]) -> None:
        for candidate in chunk.candidates or ():
            if candidate.index:
                # A further candidate (`candidateCount`). The neutral answer has one.
                out.append(Unknown(NAME, frame.event, frame.data))
                return
            self._candidate(candidate, out)
            if self._over:
                return
        # Vertex sends `usageMetadata` with only `trafficType` on most chunks.
        if chunk.usageMetadata is not None and (usage := _usage(chunk.usageMetadata)).known:
            out.append(UsageSeen(usage))
        # A blocked prompt has no candidate and no finish reason. It must not become an empty success.
        blocked = (chunk.promptFeedback or {}).get("blockReason")
        if blocked and not chunk.candidates:
            self._finish(Stop.FILTER, str(blocked))

    def _candidate(self, candidate: wire.Candidate, out: list[Event]) -> None:
        if candidate.content is not None:
            for raw in candidate.content.parts or ():
                self._part(bytes(raw), out)
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
        else:
            self._finish(stop, reason if stop is Stop.FILTER else None)

    def _finish(self, stop: Stop, detail: str | None) -> None:
        self._stop = stop
        self._detail = detail
        self.ending = True

    def _part(self, raw: bytes, out: list[Event]) -> None:
        part = _read_part(raw)
        if isinstance(part.functionCall, wire.GeminiCall):
            self._function_call(part.functionCall, part.thoughtSignature or None, out)
            return
        self._end_call(out)
        if isinstance(part.text, str):
            if part.text:
                (self._blocks.thinking if part.thought else self._blocks.text)(part.text, out)
        elif part.inlineData is not None or part.fileData is not None:
            self._whole(_media(part.inlineData or part.fileData or wire.Blob()), out)
        else:
            self._opaque(raw, out)
        if part.thoughtSignature:
            # A signature may come late, on a last part with empty text. It becomes a separate thinking block,
            # so that the client sends it back.
            self._whole(Thinking(seal=self._seal(part.thoughtSignature)), out)

    def _opaque(self, raw: bytes, out: list[Event]) -> None:
        value: dict[str, Any] = {k: v for k, v in read_value(raw).items() if v is not None}
        kind = next((key for key in value if key not in ("thought", "thoughtSignature")), "")
        if kind:
            self._whole(Opaque(Raw(NAME, value), kind), out)

    def _whole(self, part: Media | Opaque | Thinking, out: list[Event]) -> None:
        self._blocks.end(out)
        out.append(BlockEnd(self._blocks.open(part, out)))

    def _function_call(self, call: wire.GeminiCall, signature: str | None, out: list[Event]) -> None:
        if call.name:
            self._end_call(out)
            self._blocks.end(out)
            seal = self._seal(signature) if signature else None
            self._call = self._blocks.open(ToolCall(id=call.id or "", name=call.name, seal=seal), out)
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
        block = self._blocks.block
        if block is not None:
            out.extend(CitationAdded(block, citation) for citation in _sources(candidate))

    def _seal(self, signature: str) -> Seal:
        return Seal(NAME, signature, issuer=self._issuer)


def _media(blob: wire.Blob) -> Media:
    kind = blob.mimeType.partition("/")[0]
    known = kind if kind in ("image", "audio", "video") else "document"
    return Media(kind=known, media_type=blob.mimeType, data=blob.data, url=blob.fileUri)


def _sources(candidate: wire.Candidate) -> list[Citation]:
    sources: list[Citation] = []
    cited = candidate.citationMetadata
    for source in cited.get("citationSources") or cited.get("citations") or () if is_object(cited) else ():
        if is_object(source) and source.get("uri"):
            start, end = source.get("startIndex"), source.get("endIndex")
            title = str(source.get("title") or "")
            sources.append(Citation(url=str(source["uri"]), title=title, start=start, end=end))
    grounding = candidate.groundingMetadata
    chunks = grounding.get("groundingChunks") if is_object(grounding) else None
    for chunk in chunks if is_array(chunks) else ():
        web = chunk.get("web") if is_object(chunk) else None
        if is_object(web) and web.get("uri"):
            sources.append(Citation(url=str(web["uri"]), title=str(web.get("title") or "")))
    return sources


def _count(value: wire.Count) -> int | None:
    return value if isinstance(value, int) else None


def _usage(usage: wire.UsageMetadata) -> Usage:
    prompt, cached = _count(usage.promptTokenCount), _count(usage.cachedContentTokenCount)
    candidates, thoughts = _count(usage.candidatesTokenCount), _count(usage.thoughtsTokenCount)
    # Gemini counts differently from the neutral usage: `candidatesTokenCount` excludes thoughts, and
    # `promptTokenCount` includes cached tokens.
    counted = candidates is not None or thoughts is not None
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        cache_read=cached,
        output=(candidates or 0) + (thoughts or 0) if counted else None,
        reasoning=thoughts,
        tool_prompt=_count(usage.toolUsePromptTokenCount),
    )
