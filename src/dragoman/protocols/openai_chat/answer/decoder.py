"""Decode answers of OpenAI Chat, from OpenAI and from all compatible servers, into events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Sealed,
    Start,
    Stop,
    Unknown,
    Usage,
    UsageSeen,
)
from ....model.messages import Citation, Seal, Thinking, ToolCall
from ....wire.frames import Frame
from ....wire.structs import StructReader, read_value
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ...common.fields import is_array, is_object
from ...common.text_blocks import TextBlocks
from ..own import NAME
from . import wire
from .calls import FragmentRouter, StreamedCall
from .reasoning_text import ReasoningFields
from .verbatim import VerbatimCheck

# Stop reasons of an incomplete answer. A later `stop` does not replace them: OpenRouter sends the finish
# reason twice, the second time with the usage.
_TRUNCATING = frozenset({Stop.MAX_TOKENS, Stop.CONTEXT_FULL, Stop.FILTER, Stop.REFUSAL})

_NOTHING = wire.ChatChunk()
_OBJECT = ord("{")
_PIECES = frozenset({"content", "reasoning_content", "reasoning", "refusal", "arguments", "input"})
_read = StructReader(wire.ChatChunk, _PIECES)
_strict = _read.strict


class Decoder(AnswerDecoder):
    """Decodes one Chat answer, streamed or whole."""

    __slots__ = (
        "_blocks",
        "_calls",
        "_detail",
        "_details",
        "_done",
        "_failure",
        "_reasoning_text",
        "_refused",
        "_stop",
        "_streamed",
        "_verbatim_check",
    )

    def __init__(self, issuer: str = "", check_verbatim: bool = False) -> None:
        super().__init__(issuer)
        self._verbatim_check = VerbatimCheck() if check_verbatim else None
        self._blocks = TextBlocks()
        self._calls = FragmentRouter()
        self._done = False
        self._stop: Stop | None = None
        self._detail: str | None = None
        self._failure: Failed | None = None
        """Set when the finish reason is a failure. It is emitted after the usage of the same chunk."""
        self._refused = False
        self._streamed = False
        self._details: list[Any] = []
        self._reasoning_text = ReasoningFields()

    def frame(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        data = frame.data
        if not data or data[0] != _OBJECT:
            return self._not_json(data)
        try:
            chunk = _strict(data)
        except (ValueError, RecursionError) as error:
            chunk = self._read_lenient(_read, data, error)
        if self._verbatim_check is not None and self.clean:
            self.clean = self._verbatim_check.passes(chunk)
        choices = chunk.choices
        # A cheap check that excludes failures for nearly all chunks.
        unusual = len(choices) > 1 if choices else chunk.usage is None
        if unusual or chunk.error or chunk.base_resp or frame.event:
            events = self._possible_failure(chunk, frame)
            if events is not None:
                return events
        out: list[Event] = []
        if not self._started:
            self._start(chunk, out)
        if choices:
            self._choices(choices, frame, out)
        if chunk.usage or chunk.x_groq or self._failure is not None:
            self._counts(chunk, out)
        return out if self._joiner is None else self._joiner.join(out)

    def _possible_failure(self, chunk: wire.ChatChunk, frame: Frame) -> list[Event] | None:
        """The events of a frame that is an error or not a chunk at all; None if it is an ordinary chunk."""
        failure = _read_failure(chunk, frame)
        if failure is not None:
            return self._fail(failure)
        if chunk != _NOTHING:
            return None
        self.clean = False  # the frame has no member of a chunk, and a client expects some
        return []

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._stop is None and not self._done:
            # One of the two is enough: many servers leave out `[DONE]`, Snowflake the finish reason. Without
            # both, the stream was cut.
            return self._cut_off(begun=self._blocks.seen)
        if not self._blocks.seen and self._stop is None:
            return self._fail(failures.cut_off("the upstream's stream contained no answer"))
        if self._verbatim_check is not None and not self._verbatim_check.closed(self._done):
            self.clean = False
        out: list[Event] = []
        self._seal(out)
        self._blocks.end(out)
        for call in self._calls.all:
            self._end_call(call, out)
        self._seal_own_block(out)
        stop = self._stop or Stop.END
        refused = self._refused and stop is Stop.END and not self._calls.all
        out.append(End(Stop.REFUSAL if refused else stop, detail=self._detail))
        self._over = True
        return out if self._joiner is None else self._joiner.join(out)

    def _not_json(self, data: bytes) -> list[Event]:
        if data.strip() == b"[DONE]":
            self._done = True
            return self.close()
        self.clean = False
        return []

    def _start(self, chunk: wire.ChatChunk, out: list[Event]) -> None:
        self._started = True
        # Not every server sends a valid time.
        created = chunk.created if type(chunk.created) is int and chunk.created >= 0 else None
        out.append(Start(chunk.id or "", chunk.model or "", created))

    def _counts(self, chunk: wire.ChatChunk, out: list[Event]) -> None:
        # Groq once sent the usage of a stream only here.
        usage = chunk.usage or (chunk.x_groq and chunk.x_groq.usage)
        if usage:
            out.append(UsageSeen(read_usage(usage)))
        if self._failure is not None:
            out += self._fail(self._failure)

    def _choices(self, choices: list[wire.Choice], frame: Frame, out: list[Event]) -> None:
        for choice in choices:
            # Choices of `n > 1`. The neutral answer has one, so they only pass to Chat clients, as unknown
            # frames.
            if choice.index:
                out.append(Unknown(NAME, frame.event, frame.data))
                return
            if choice.error:
                self._failure = failures.from_error(choice.error)
            delta = choice.delta
            if delta is not None:
                self._streamed = True
                self._delta(delta, out)
            # Some servers answer a request for a stream with one whole body (litellm#14315). Others repeat
            # the whole message at the end of a stream: that one is ignored.
            elif choice.message is not None and not self._streamed:
                self._delta(choice.message, out, whole=True)
                # A body is complete without a finish reason, too (Ollama: null, Snowflake: "").
                self._finish(choice.finish_reason or "stop", choice.native_finish_reason)
                continue
            if choice.finish_reason:
                self._finish(choice.finish_reason, choice.native_finish_reason)

    def _delta(self, delta: wire.ChatDelta, out: list[Event], whole: bool = False) -> None:
        reasoning = delta.reasoning_content or delta.reasoning or delta.reasoning_text or delta.thinking
        if reasoning or delta.reasoning_details:
            self._reasoning(reasoning, delta.reasoning_details, out)
        content = delta.content
        if self._details and (content or delta.refusal or delta.tool_calls or delta.function_call):
            self._seal(out)
        if content:
            add = self._blocks.text if type(content) is str else self._content
            add(content, out)
        if delta.refusal:
            self._refused = True
            self._blocks.refusal(delta.refusal, out)
        fragments = delta.tool_calls or ()
        if delta.function_call is not None and (delta.function_call.name or self._calls.all):
            # The deprecated form of one call. Snowflake sends an empty `function_call` beside every answer.
            fragments = (*fragments, wire.CallDelta(index=0, function=delta.function_call))
        for position, fragment in enumerate(fragments):
            separate = whole or (position > 0 and _begins_call(fragment, fragments[:position]))
            call, text = self._calls.assign(fragment, separate)
            if text and call.block >= 0:
                out.append(ArgumentsDelta(call.block, text))
            elif call.name and call.block < 0:
                self._open_calls(out)
        if delta.annotations:
            self._annotations(delta.annotations, out)

    def _content(self, content: Any, out: list[Event]) -> None:
        """Read content that is a list of pieces: Mistral's reasoning models answer like that."""
        for piece in content if is_array(content) else ():
            if isinstance(piece, str):
                self._blocks.text(piece, out)
            elif is_object(piece):
                self._mistral_chunk(piece, out)

    def _mistral_chunk(self, piece: dict[str, Any], out: list[Event]) -> None:
        thinking = piece.get("thinking")
        if isinstance(piece.get("text"), str) and piece["text"]:
            self._blocks.text(piece["text"], out)
        elif is_array(thinking):
            text = "".join(t["text"] for t in thinking if is_object(t) and isinstance(t.get("text"), str))
            if text:
                self._blocks.thinking(text, out)

    def _reasoning(self, reasoning: Any, details: Any, out: list[Event]) -> None:
        text = reasoning if isinstance(reasoning, str) else ""
        kept = [detail for detail in details if is_object(detail)] if is_array(details) else []
        self._details += [detail for detail in kept if detail.get("data") or detail.get("signature")]
        text = self._reasoning_text.field(text) if reasoning else self._reasoning_text.details(kept)
        if text:
            self._blocks.thinking(text, out)

    def _open_calls(self, out: list[Event]) -> None:
        """Open the calls that have a name, in the order of their first fragments."""
        for call in self._calls.all:
            if call.block < 0:
                if not call.name:
                    return  # SGLang sends arguments before the name (opencode#32666): later calls wait, too
                self._open_call(call, out)

    def _open_call(self, call: StreamedCall, out: list[Event]) -> None:
        self._blocks.end(out)
        seal = _google_signature(call.extra, self._issuer)
        kind = "custom" if call.kind == "custom" else "function"
        part = ToolCall(
            id=call.id,
            name=call.name,
            kind=kind,
            seal=seal,
            replayed=call.replayed,
            run_by_provider="" if call.kind in ("custom", "function") else call.kind,
        )
        call.block = self._blocks.open(part, out)
        if call.pieces:
            out.append(ArgumentsDelta(call.block, "".join(call.pieces)))

    def _end_call(self, call: StreamedCall, out: list[Event]) -> None:
        if call.block < 0:
            self._open_call(call, out)  # a ghost without a name, or a call that waited behind a ghost
        out.append(BlockEnd(call.block))

    def _seal(self, out: list[Event]) -> None:
        """Attach the opaque reasoning to the open thinking block.

        It must not become a thinking block after the text: Claude Code does not show text before a thought.
        """
        if not self._details or (self._blocks.seen and self._blocks.thought is None):
            return
        if self._blocks.thought is None:
            self._seal_own_block(out)
        else:
            out.append(Sealed(self._blocks.thought, self._sealed()))

    def _seal_own_block(self, out: list[Event]) -> None:
        """Put opaque reasoning that came too late for its thinking block into a block of its own."""
        if self._details:
            block = self._blocks.open(Thinking(seal=self._sealed()), out)
            out.append(BlockEnd(block))

    def _sealed(self) -> Seal:
        """A seal with OpenRouter's `reasoning_details`, which the next request must send back unchanged."""
        data = msgspec.json.encode(self._details).decode()
        self._details.clear()
        return Seal(NAME, data, issuer=self._issuer)

    def _annotations(self, annotations: Any, out: list[Event]) -> None:
        for note in annotations if is_array(annotations) else ():
            source = note.get("url_citation") if is_object(note) else None
            block = self._blocks.block
            if block is not None and is_object(source) and isinstance(source.get("url"), str):
                citation = Citation(
                    url=source["url"],
                    title=str(source.get("title") or ""),
                    start=source.get("start_index"),
                    end=source.get("end_index"),
                )
                out.append(CitationAdded(block, citation))

    def _finish(self, reason: str, native: Any) -> None:
        self.ending = True
        meant = stop_reasons.meaning(reason)
        native_meaning = stop_reasons.known(native) if isinstance(native, str) else None
        incomplete = native_meaning in _TRUNCATING or isinstance(native_meaning, FailureKind)
        if meant not in _TRUNCATING and incomplete:
            meant, reason = native_meaning, str(native)  # OpenRouter mapped it to a milder reason
            self.clean = False
        if isinstance(meant, FailureKind):
            self._failure = self._failure or stop_reasons.failure(meant, reason)
        elif self._stop not in _TRUNCATING:
            self._stop = meant or (Stop.TOOL if self._calls.all else Stop.END)
            self._detail = reason if meant is Stop.FILTER and reason != "content_filter" else None


def _begins_call(fragment: wire.CallDelta, before: Sequence[wire.CallDelta]) -> bool:
    """Is this entry of a list a separate call? It is if it has a name, and no distinct index."""
    named = (fragment.function and fragment.function.name) or (fragment.custom and fragment.custom.name)
    return bool(named) and (fragment.index is None or any(b.index == fragment.index for b in before))


def _read_failure(chunk: wire.ChatChunk, frame: Frame) -> Failed | None:
    """Read an error in an answer with status 200. OpenAI sends `error` in a frame.

    MiniMax sends `base_resp`, Groq the SSE event `error`, Mistral `"object": "error"`. OpenRouter sends
    `error` beside `choices` with the finish reason `error`. Such an answer must not end as a success.
    """
    if chunk.error:
        return failures.from_error(chunk.error)
    base = chunk.base_resp
    if is_object(base) and base.get("status_code"):
        return failures.from_error(base)
    if frame.event == "error" or chunk.object == "error" or (chunk == _NOTHING and _has_error_message(frame)):
        return failures.from_body(None, frame.data)
    return None


def _has_error_message(frame: Frame) -> bool:
    """Servers answer so even with status 200: FastAPI with `detail`, Cloudflare with a list of `errors`."""
    body = read_value(frame.data)
    return is_object(body) and any(body.get(key) for key in ("message", "detail", "msg", "errors"))


def read_usage(usage: wire.ChatUsage) -> Usage:
    """Read token counts. OpenAI's prompt count includes cached tokens, the neutral one does not."""
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    cached = usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens
    written = usage.prompt_tokens_details and usage.prompt_tokens_details.cache_write_tokens
    if prompt is not None and written and (cached or 0) + written > prompt:
        written = max(0, prompt - (cached or 0))  # OpenRouter counts Gemini's cached tokens as written, too
    details = usage.completion_tokens_details
    reasoning = details.reasoning_tokens if details else None
    apart = reasoning and usage.total_tokens == (prompt or 0) + (completion or 0) + reasoning
    if apart and completion is not None and reasoning is not None:
        completion += reasoning  # xAI excludes reasoning from the completion; the total shows it
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0) - (written or 0)),
        cache_read=cached,
        cache_write=written,
        output=completion,
        reasoning=reasoning,
    )


def _google_signature(extra: Any, issuer: str) -> Seal | None:
    """Gemini's OpenAI endpoint signs calls in `extra_content.google.thought_signature`."""
    google = extra.get("google") if is_object(extra) else None
    signature = google.get("thought_signature") if is_object(google) else None
    return Seal(NAME, signature, issuer=issuer) if isinstance(signature, str) else None
