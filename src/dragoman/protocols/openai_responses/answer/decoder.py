"""Decode answers of OpenAI Responses, streamed or whole, into events."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import End, Event, Failed, FailureKind, Start, Stop, Unknown, Usage, UsageSeen
from ....wire.frames import Frame
from ....wire.structs import StructReader, present
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ..own import NAME
from . import wire
from .items import BlockNumbers, OpenItem
from .verbatim import UNFINISHED, VerbatimCheck

_OPENED = frozenset(
    {
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_summary_part.added",
    }
)

# The year 5138. A later `created_at`, such as infinity, is not a valid time and is ignored.
_LATEST = 100_000_000_000

_read = StructReader(wire.ResponsesEvent, frozenset({"delta"}))
_read_response = StructReader(wire.ResponseObject)


class Decoder(AnswerDecoder):
    """Decodes one answer.

    `output_index` identifies an item, not its id: GitHub Copilot sends other ids in every event.
    """

    def __init__(self, issuer: str = "", check_verbatim: bool = False) -> None:
        super().__init__(issuer)
        self._verbatim_check = VerbatimCheck() if check_verbatim else None
        self._numbers = BlockNumbers()
        self._items: dict[int, OpenItem] = {}
        self._added = OpenItem(self._numbers, issuer)
        """The item that was added last."""
        self._refused = False

    def frame(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        if frame.data[:1] != b"{":
            self.clean = False  # OpenRouter sends `[DONE]`, OpenAI does not
            return []
        try:
            event = _read.strict(frame.data)
        except (ValueError, RecursionError) as error:
            event = self._read_lenient(_read, frame.data, error)
        if self._verbatim_check is not None and self.clean:
            self.clean = self._verbatim_check.passes(event, frame)
        out: list[Event] = []
        kind = event.type or frame.event
        self._event(kind, event, frame, out)
        # A `.done` event waits for the end of its item, and an opened item waits for its first content.
        # Otherwise the encoder could not take over between them.
        done = kind.endswith(".done") and kind != "response.output_item.done"
        self.ending = done or kind in _OPENED or self._added.silent
        return out if self._joiner is None else self._joiner.join(out)

    def close(self) -> list[Event]:
        if self._over:
            return []
        return self._cut_off(begun=bool(self._items))

    def _event(self, kind: str, event: wire.ResponsesEvent, frame: Frame, out: list[Event]) -> None:
        if event.object == "response":
            self._response(frame.data, out)
            self._body(frame.data, out)
        elif kind in (
            "response.completed",
            "response.incomplete",
            "response.failed",
            # The name that OpenAI's Realtime API and some servers use for the last event.
            "response.done",
        ):
            self._response(present(event.response), out)
            self._finish(present(event.response), out)
        elif kind in ("response.created", "response.in_progress", "response.queued"):
            self._response(present(event.response), out)
        # OpenAI documents a flat error event, and sends a nested one, followed by `response.failed`.
        # `from_body` reads both forms. The first of the two events ends the answer.
        elif kind == "error" or (event.error and not kind):
            out.extend(self._fail(failures.from_body(None, frame.data)))
        else:
            self._start_without_response(kind, out)
            self._in_response(kind, event, frame, out)

    def _start_without_response(self, kind: str, out: list[Event]) -> None:
        if not self._started and kind.startswith("response."):
            self._started = True
            out.append(Start())

    def _in_response(self, kind: str, event: wire.ResponsesEvent, frame: Frame, out: list[Event]) -> None:
        if kind.endswith(".delta") and self._delta(kind, event, out):
            return
        match kind:
            case "response.function_call_arguments.done":
                self._item(event, "function_call").all_arguments(event.arguments, out)
            case "response.custom_tool_call_input.done":
                self._item(event, "custom_tool_call").all_arguments(event.input, out)
            case "response.output_text.annotation.added":
                self._item(event, "message").cite(event.content_index or 0, event.annotation, out)
            case "response.output_item.added":
                if raw := present(event.item):
                    self._added = self._item(event, "")
                    self._added.begin(raw, out)
            case "response.output_item.done":
                self._item_done(self._item(event, ""), present(event.item), out)
            case _:
                self._unknown(kind, frame, out)

    def _delta(self, kind: str, event: wire.ResponsesEvent, out: list[Event]) -> bool:
        """Read a delta event. Returns False for an unknown one."""
        piece = event.delta if isinstance(event.delta, str) else ""
        match kind:
            case "response.output_text.delta":
                self._item(event, "message").text(event.content_index or 0, piece, out)
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                self._item(event, _call_type(kind)).arguments(piece, out)
            case "response.reasoning_summary_text.delta":
                self._item(event, "reasoning").thinking("summary", event.summary_index or 0, piece, out)
            case "response.reasoning_text.delta":
                self._item(event, "reasoning").thinking("content", event.content_index or 0, piece, out)
            case "response.refusal.delta":
                self._refused = True
                self._item(event, "message").refusal(event.content_index or 0, piece, out)
            case _:
                return False
        return True

    def _unknown(self, kind: str, frame: Frame, out: list[Event]) -> None:
        if not kind or not kind.isprintable():
            self.clean = False  # no client can read an event without a type
        elif not _known(kind):
            out.append(Unknown(NAME, kind, frame.data))

    def _item(self, event: wire.ResponsesEvent, kind: str) -> OpenItem:
        index = event.output_index
        if index is None:
            index = max(self._items, default=0)
        if index not in self._items:
            self._items[index] = OpenItem(self._numbers, self._issuer)
            self._items[index].item = wire.AnswerItem(type=kind, id=event.item_id)
        return self._items[index]

    def _item_done(self, item: OpenItem, raw: bytes, out: list[Event]) -> None:
        if raw and not item.done:
            item.update(raw, out)
            self._refused = self._refused or any(c.refusal for c in item.item.content or ())
        item.finish(out)

    def _response(self, raw: bytes, out: list[Event]) -> None:
        if self._started:
            return
        response = _read_response(raw) if raw else wire.ResponseObject()
        self._started = True
        created = response.created_at
        out.append(
            Start(
                response.id or "",
                response.model or "",
                int(created) if isinstance(created, (int, float)) and 0 <= created < _LATEST else None,
            )
        )

    def _body(self, raw: bytes, out: list[Event]) -> None:
        """Read a whole body. A response that runs in the background only passes to a Responses client."""
        response, passes = _read_response(raw), self._verbatim_check is not None and self.clean
        if response.status in UNFINISHED and not response.output and not passes:
            message = f"the upstream has no answer yet: its response is {response.status}"
            out.extend(self._fail(Failed(FailureKind.UPSTREAM, message, 502, "response_not_finished")))
        else:
            self._finish(raw, out)

    def _finish(self, raw: bytes, out: list[Event]) -> None:
        response = _read_response(raw) if raw else wire.ResponseObject()
        status = response.status or "completed"
        if response.usage:
            out.append(UsageSeen(_usage(response.usage)))
        if status in ("failed", "cancelled"):
            failure = failures.from_error(response.error or f"the upstream's response was {status}")
            out.extend(self._fail(failure))
            return
        self._snapshot(response.output or [], out)
        for _, item in sorted(self._items.items()):
            item.close(out)
        reason = str((response.incomplete_details or {}).get("reason"))
        stop = self._stop(status, reason)
        if isinstance(stop, FailureKind):
            out.extend(self._fail(stop_reasons.failure(stop, reason)))
            return
        detailed = stop is Stop.FILTER and reason != "content_filter"
        out.append(End(stop, detail=reason if detailed else None))
        self._over = True

    def _snapshot(self, output: list[msgspec.Raw], out: list[Event]) -> None:
        """Emit content of the final response that no event contained.

        Items are matched by position: OpenRouter's final ids differ from those of its events, but the order
        does not.
        """
        seen = [item for _, item in sorted(self._items.items())]
        for position, raw in enumerate(output):
            if position < len(seen):
                item = seen[position]
            else:
                item = OpenItem(self._numbers, self._issuer)
                self._items[max(self._items, default=-1) + 1] = item
            self._item_done(item, bytes(raw), out)

    def _stop(self, status: str, reason: str) -> Stop | FailureKind:
        if status == "incomplete":
            return stop_reasons.meaning(reason) or Stop.MAX_TOKENS
        # Responses has no stop reason for calls: the items show it.
        if any(item.is_call for item in self._items.values()):
            return Stop.TOOL
        return Stop.REFUSAL if self._refused else Stop.END


def _call_type(kind: str) -> str:
    return "custom_tool_call" if "custom" in kind else "function_call"


def _known(kind: str) -> bool:
    """Is this an event without new content, such as the end of a text, a part or a summary?"""
    return kind.startswith(
        (
            "response.content_part.",
            "response.reasoning_",
            "response.output_text.",
            "response.refusal.",
        )
    )


def _usage(usage: wire.ResponsesUsage) -> Usage:
    total = usage.input_tokens
    details: Any = usage.input_tokens_details
    cached = details.cached_tokens if details else None
    written = details.cache_write_tokens if details else None
    reasoning = usage.output_tokens_details.reasoning_tokens if usage.output_tokens_details else None
    return Usage(
        input=None if total is None else max(0, total - (cached or 0) - (written or 0)),
        cache_read=cached,
        cache_write=written,
        output=usage.output_tokens,
        reasoning=reasoning,
    )
