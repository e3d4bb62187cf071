"""Decode answers of OpenAI Chat, from OpenAI and from all compatible servers, into events.

A chunk is read as plain JSON. The decoder takes out what it understands. What is left goes to a Chat client,
in the shape of the chunk: with the first event of the chunk, with the end if the chunk has the finish reason,
or in a `Carried` if the chunk has no event. `message` of a whole body stands as `delta` there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.errors import UpstreamError
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
)
from ....model.messages import Citation, Extras, Seal, Thinking, ToolCall
from ....wire.frames import Frame
from ....wire.structs import JsonReader
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ...common.extras import kept
from ...common.fields import Obj, is_array, is_object
from ...common.text_blocks import TextBlocks
from ..own import NAME
from .calls import FragmentRouter, StreamedCall, is_further, read_fragment
from .left import NO_MEMBERS, LeftMembers, left_of_failure
from .members import (
    counted,
    google_signature,
    mistral_pieces,
    read_citation,
    read_failure,
    read_sources,
)
from .reasoning_text import TEXT_FIELDS, ReasoningFields

# Stop reasons of an incomplete answer. A later `stop` does not replace them: OpenRouter sends the finish
# reason twice, the second time with the usage.
_TRUNCATING = frozenset({Stop.MAX_TOKENS, Stop.CONTEXT_FULL, Stop.FILTER, Stop.REFUSAL})

_NO_CHOICE: Obj = {}
# Any of these begins the answer.
_BEGINS = ("choices", "id", "usage", "x_groq")
_TEXTS = frozenset({*TEXT_FIELDS, "content", "refusal"})
_reader = JsonReader(dict[str, Any], _TEXTS | {"arguments", "input"})
_strict = _reader.strict


class Decoder(AnswerDecoder):
    """Decodes one Chat answer, streamed or whole."""

    def __init__(self, issuer: str = "", keep: bool = False) -> None:
        super().__init__(issuer)
        self._left = LeftMembers() if keep else None
        self._blocks = TextBlocks()
        self._calls = FragmentRouter()
        self._sources: list[Citation] = []
        """Pages that the server searched (Perplexity). They belong to the text as a whole."""
        self._cited: list[Citation] = []
        """Citations that came before their text."""
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
        try:
            chunk = _strict(frame.data)
        except (ValueError, RecursionError) as error:
            if frame.data[:1] != b"{":
                return self._not_json(frame.data)
            chunk = self._read_lenient(_reader, frame.data, error)
        choices: list[Any] | None = chunk.get("choices")
        if choices is None:
            choices = []
        if type(choices) is not list:
            raise _unreadable("its choices are no list")
        # A cheap check that excludes failures for nearly all chunks.
        unusual = not choices or len(choices) > 1 or "error" in chunk or "base_resp" in chunk
        if unusual or frame.event:
            failure = read_failure(chunk, frame)
            if failure is not None:
                extras = None if self._left is None else left_of_failure(chunk)
                return self._fail(msgspec.structs.replace(failure, extras=extras))
        out: list[Event] = []
        if self._started or self._begin(chunk, out):
            self._chunk(chunk, choices, out)
        return out if self._joiner is None else self._joiner.join(out)

    def close(self) -> list[Event]:
        if self._over:
            return []
        if self._stop is None and not self._done:
            # One of the two is enough: many servers leave out `[DONE]`, Snowflake the finish reason. Without
            # both, the stream was cut.
            return self._cut_off(begun=self._blocks.seen)
        if not self._blocks.seen and self._stop is None:
            return self._fail(failures.cut_off("the upstream's stream contained no answer"))
        out: list[Event] = []
        self._seal(out)
        self._cite(out)
        self._blocks.end(out)
        for call in self._calls.all:
            self._end_call(call, out)
        self._seal_own_block(out)
        stop = self._stop or Stop.END
        refused = self._refused and stop is Stop.END and not self._calls.all
        extras = None if self._left is None else self._left.of_end
        out.append(End(Stop.REFUSAL if refused else stop, detail=self._detail, extras=extras))
        self._over = True
        return out if self._joiner is None else self._joiner.join(out)

    def _not_json(self, data: bytes) -> list[Event]:
        if data.strip() == b"[DONE]":
            self._done = True
            return self.close()
        return []

    def _begin(self, chunk: Obj, out: list[Event]) -> bool:
        """Start the answer. False if this frame is none of its chunks."""
        if not any(map(chunk.get, _BEGINS)):
            if self._left is not None:
                self._left.keep_before_start(chunk)
            return False
        self._started = True
        id, model, created = chunk.get("id"), chunk.get("model"), chunk.get("created")
        # Not every server sends a valid time.
        time = created if type(created) is int and created >= 0 else None
        out.append(
            Start(
                id if isinstance(id, str) else "", model if isinstance(model, str) else "", time, self._shown
            )
        )
        return True

    def _chunk(self, chunk: Obj, choices: list[Any], out: list[Event]) -> None:
        began, finished = len(out) > 0, False
        choice: Obj = choices[0] if choices else _NO_CHOICE
        if type(choice) is not dict or not all(map(is_object, choices[1:])):
            raise _unreadable("a choice is no object")
        if choice is not _NO_CHOICE:
            index = choice.pop("index", None)
            if index and not began and "message" not in choice and is_further(index):
                choice["index"] = index  # it passes as it is
            else:
                finished = self._choice(choice, out)
        if chunk.get("usage") is not None or "x_groq" in chunk:
            out += counted(chunk)
        if self._left is not None:
            self._left.keep(chunk, out, began=began, finished=finished)
        elif finished:
            self._sources = read_sources(chunk)  # every chunk has them
        if finished and self._failure is not None:
            out += self._fail(self._failure)

    def _choice(self, choice: Obj, out: list[Event]) -> bool:
        """Take what is understood out of the choice. Returns whether it has a finish reason."""
        reason = choice.pop("finish_reason", None)
        delta: Any = choice.get("delta")
        if type(delta) is dict:
            self._streamed = True
            self._delta(delta, out)  # pyright: ignore[reportUnknownArgumentType]
            if not delta:
                del choice["delta"]
        # Some servers answer a request for a stream with one whole body (litellm#14315). Others repeat the
        # whole message at the end of a stream: that one is ignored.
        elif is_object(message := choice.pop("message", None)) and not self._streamed:
            choice["delta"] = message
            self._delta(message, out, whole=True)
            # A body is complete without a finish reason, too (Ollama: null, Snowflake: "").
            reason = reason or "stop"
        elif delta is not None:
            raise _unreadable("a delta is no object")
        if reason or "error" in choice:
            return self._ended(choice, reason)
        return False

    def _ended(self, choice: Obj, reason: Any) -> bool:
        """Read why the choice ended. False if it did not."""
        if error := choice.pop("error", None):
            self._failure = failures.from_error(error)
        if isinstance(reason, str) and reason:
            self._finish(reason, choice.get("native_finish_reason"))
        return self._failure is not None or isinstance(reason, str)

    def _delta(self, delta: Obj, out: list[Event], *, whole: bool = False) -> None:
        """Take what is understood out of a delta, or of the message of a body."""
        content: Any = delta.get("content")
        if content:
            del delta["content"]
        calls: Any = delta.pop("tool_calls", None)
        refusal = None
        if delta or self._details:
            calls, refusal = self._rare_members(delta, content, calls, out)
        if content:
            if type(content) is str:
                self._blocks.text(content, out)
            elif is_array(content):
                self._pieces(content, out)
            if self._cited:
                self._cite_early(out)
        if refusal:
            self._refused = True
            self._blocks.refusal(refusal, out)
        if calls and is_array(calls):
            self._fragments(calls, delta, out, whole=whole)
        if delta and self._left is None and "annotations" in delta:
            self._annotations(delta["annotations"], out)

    def _rare_members(self, delta: Obj, content: Any, calls: Any, out: list[Event]) -> tuple[Any, str]:
        """Read the reasoning of a delta. Returns its calls and its refusal."""
        delta.pop("role", None)
        for name in _TEXTS.intersection(delta):
            if delta[name] is not None and not isinstance(delta[name], str):
                del delta[name]  # agents read text or null
        self._reasoning(delta, out)
        function = delta.pop("function_call", None)
        if is_object(function) and (function.get("name") or self._calls.all):
            # The deprecated form of one call. Snowflake sends an empty `function_call` beside every answer.
            calls = [*(calls or ()), {"index": 0, "function": function}]
        refusal = delta.get("refusal")
        if not isinstance(refusal, str) or not refusal:
            refusal = ""
        else:
            del delta["refusal"]
        if self._details and (content or refusal or calls):
            self._seal(out)
        return calls, refusal

    def _cite_early(self, out: list[Event]) -> None:
        """Cite what came before the text that it belongs to."""
        block = self._blocks.text_block
        if block is not None:
            out += [CitationAdded(block, citation) for citation in self._cited]
            self._cited = []

    def _pieces(self, content: list[Any], out: list[Event]) -> None:
        """Read content that is a list of pieces: Mistral's reasoning models answer like that."""
        for text, is_thinking in mistral_pieces(content):
            (self._blocks.thinking if is_thinking else self._blocks.text)(text, out)

    def _reasoning(self, delta: Obj, out: list[Event]) -> None:
        """Read reasoning. Its field stays, empty: the encoder writes the text into it."""
        text = next((v for field in TEXT_FIELDS if isinstance(v := delta.get(field), str) and v), "")
        details: Any = delta.get("reasoning_details")
        if not text and not details:
            return
        listed = [detail for detail in details if is_object(detail)] if is_array(details) else []
        self._details += [detail for detail in listed if detail.get("data") or detail.get("signature")]
        new = self._reasoning_text.field(text) if text else self._reasoning_text.details(listed)
        if new:
            delta.update({field: "" for field in TEXT_FIELDS if text and delta.get(field) == text})
            self._blocks.thinking(new, out)

    def _fragments(self, entries: list[Any], delta: Obj, out: list[Event], *, whole: bool) -> None:
        """Read the fragments of calls."""
        if len(entries) == 1 and not whole:
            call = self._calls.continued(entries[0])
            if call is not None:
                out.append(ArgumentsDelta(call.block, call.pieces[-1]))
                return
        before: list[Any] = []
        left: list[Obj] = []
        for entry in entries:
            if not is_object(entry):
                continue
            fragment = read_fragment(entry)
            # A separate call has a name, and no index of its own.
            separate = before and fragment.name and (fragment.index is None or fragment.index in before)
            call = self._calls.assign(fragment, separate=whole or bool(separate))
            before.append(fragment.index)
            left.append(fragment.left)
            if fragment.text and call.block >= 0:
                out.append(ArgumentsDelta(call.block, fragment.text))
            elif call.name and call.block < 0:
                self._open_calls(out)
        if any(left):
            delta["tool_calls"] = left

    def _open_calls(self, out: list[Event]) -> None:
        """Open the calls that have a name, in the order of their first fragments."""
        for call in self._calls.all:
            if call.block < 0:
                if not call.name:
                    return  # SGLang sends arguments before the name (opencode#32666): later calls wait, too
                self._open_call(call, out)

    def _open_call(self, call: StreamedCall, out: list[Event]) -> None:
        self._cite(out)
        self._blocks.end(out)
        part = ToolCall(
            id=call.id,
            name=call.name,
            kind="custom" if call.kind == "custom" else "function",
            seal=google_signature(call.left.get("extra_content"), self._issuer),
            replayed=call.replayed,
            run_by_provider="" if call.kind in ("custom", "function") else call.kind,
            extras=None if self._left is None else kept(NAME, call.left),
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
            out.append(Sealed(self._blocks.thought, self._sealed(), self._shown))

    def _seal_own_block(self, out: list[Event]) -> None:
        """Put opaque reasoning that came too late for its thinking block into a block of its own."""
        if self._details:
            block = self._blocks.open(Thinking(seal=self._sealed(), extras=self._shown), out)
            out.append(BlockEnd(block))

    @property
    def _shown(self) -> Extras | None:
        """Marks what a Chat client has from the upstream's own chunks."""
        return None if self._left is None else NO_MEMBERS

    def _sealed(self) -> Seal:
        """A seal with OpenRouter's `reasoning_details`, which the next request must send back unchanged."""
        data = msgspec.json.encode(self._details).decode()
        self._details.clear()
        return Seal(NAME, data, issuer=self._issuer)

    def _annotations(self, annotations: Any, out: list[Event]) -> None:
        found = map(read_citation, annotations if is_array(annotations) else ())
        self._cited += [citation for citation in found if citation is not None]
        self._cite_early(out)

    def _cite(self, out: list[Event]) -> None:
        """Cite the pages that the server searched, at the end of the text."""
        block = self._blocks.text_block
        if block is not None:
            out += [CitationAdded(block, citation) for citation in self._sources]
            self._sources = []

    def _finish(self, reason: str, native: Any) -> None:
        meant = stop_reasons.meaning(reason)
        native_meaning = stop_reasons.known(native) if isinstance(native, str) else None
        incomplete = native_meaning in _TRUNCATING or isinstance(native_meaning, FailureKind)
        if meant not in _TRUNCATING and incomplete:
            meant, reason = native_meaning, str(native)  # OpenRouter mapped it to a milder reason
        if isinstance(meant, FailureKind):
            self._failure = self._failure or stop_reasons.failure(meant, reason)
        elif self._stop not in _TRUNCATING:
            self._stop = meant or (Stop.TOOL if self._calls.all else Stop.END)
            self._detail = reason if meant is Stop.FILTER and reason != "content_filter" else None


def _unreadable(why: str) -> UpstreamError:
    return UpstreamError(f"the upstream sent a chunk that cannot be read: {why}")
