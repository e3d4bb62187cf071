"""Decode answers of OpenAI Responses, streamed or whole, into events."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import (
    Carried,
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
from ....model.messages import Extras
from ....wire.frames import Frame
from ....wire.structs import JsonReader
from ...common import failures, stop_reasons
from ...common.answer_decoder import AnswerDecoder
from ...common.fields import Obj, is_array, is_object
from ..own import NAME
from .forms import (
    ADDED,
    ANNOTATED,
    BY_DELTA,
    BY_DONE,
    CREATED,
    DONE,
    FAILED,
    IN_PROGRESS,
    PARTS_ADDED,
    PARTS_DONE,
    QUEUED,
    UNFINISHED,
    number,
    string,
)
from .items import Blocks, OpenItem

# `response.done` is the name that OpenAI's Realtime API and some servers use for the last event.
_FINAL = frozenset({"response.completed", "response.incomplete", FAILED, "response.done"})
_BEGINNING = frozenset({CREATED, IN_PROGRESS, QUEUED})

# The year 5138. A later `created_at`, such as infinity, is not a valid time and is ignored.
_LATEST = 100_000_000_000

_read = JsonReader(dict[str, Any], frozenset({"delta"}))


class Decoder(AnswerDecoder):
    """Decodes one answer.

    `output_index` identifies an item, not its id: GitHub Copilot sends other ids in every event.
    """

    def __init__(self, issuer: str = "", keep: bool = False) -> None:
        super().__init__(issuer)
        self._keep = keep
        self._blocks = Blocks(issuer, keep)
        self._items: dict[int, OpenItem] = {}

    def frame(self, frame: Frame) -> list[Event]:
        if self._over or frame.data[:1] != b"{":
            return []  # OpenRouter sends `[DONE]`, OpenAI does not
        try:
            members = _read.strict(frame.data)
        except (ValueError, RecursionError) as error:
            members = self._read_lenient(_read, frame.data, error)
        out: list[Event] = []
        kind = members.get("type")
        form = BY_DELTA.get(kind) if type(kind) is str else None
        if form is None or not self._started:
            self._event(string(members, "type") or frame.event, members, frame, out)
        else:
            index = members.get("output_index")
            item = self._items.get(index) if type(index) is int else None
            (item or self._item(members, form.item)).delta(form, members, out)
        return out if self._joiner is None else self._joiner.join(out)

    def close(self) -> list[Event]:
        if self._over:
            return []
        return self._cut_off(begun=bool(self._items))

    def _event(self, kind: str, members: Obj, frame: Frame, out: list[Event]) -> None:
        if members.get("object") == "response":
            self._start({}, members, out)
            self._body(members, out)
            return
        if kind:
            members["type"] = kind
        if kind in _FINAL:
            response = _object(members, "response")
            self._start({}, response, out)
            self._finish(members, response, out)
        elif kind in _BEGINNING:
            self._begin(members, out)
        # OpenAI documents a flat error event, and sends a nested one, followed by `response.failed`.
        # `from_body` reads both forms. The first of the two events ends the answer.
        elif kind == "error" or (members.get("error") and not kind):
            self._failed(failures.from_body(None, frame.data), members, out)
        elif kind and kind.isprintable():  # no client can read an event without a type
            if not self._started and kind.startswith("response."):
                self._started = True
                out.append(Start())
            if not self._in_item(kind, members, out):
                self._unknown(Unknown(NAME, kind, frame.data), members, out)

    def _in_item(self, kind: str, members: Obj, out: list[Event]) -> bool:
        """Read an event of an item. Returns False for an unknown one."""
        if kind in BY_DELTA:
            self._item(members, BY_DELTA[kind].item).delta(BY_DELTA[kind], members, out)
        elif kind in BY_DONE:
            self._item(members, BY_DONE[kind].item).text_done(BY_DONE[kind], members, out)
        elif kind in PARTS_ADDED:
            self._item(members, PARTS_ADDED[kind].item).part_added(PARTS_ADDED[kind], members, out)
        elif kind in PARTS_DONE:
            self._item(members, PARTS_DONE[kind].item).part_done(members, out)
        elif kind == ANNOTATED:
            self._item(members, "message").cite(members, out)
        elif kind == ADDED:
            if is_object(members.get("item")):
                self._item(members, "", new=True).added(members, out)
        elif kind == DONE:
            self._item(members, "").finish(members, out)
        else:
            return False
        return True

    def _unknown(self, event: Unknown, members: Obj, out: list[Event]) -> None:
        index = number(members.get("output_index"))
        item = None if index is None else self._items.get(index)
        if item is None or not self._keep:
            out.append(event)
        else:
            item.unknown(event, out)

    def _item(self, members: Obj, kind: str, *, new: bool = False) -> OpenItem:
        """The item that an event names. `kind` is its type if the event is the first one of the item."""
        index = number(members.get("output_index"))
        if index is None:
            index = max(self._items, default=0)
            index += new and index in self._items
        item = self._items.get(index)
        if item is None:
            item = self._items[index] = OpenItem(index, self._blocks, kind, string(members, "item_id"))
        return item

    def _begin(self, members: Obj, out: list[Event]) -> None:
        if not self._started:
            self._start(members, _object(members, "response"), out)
        elif self._keep:
            out.append(Carried(Extras(NAME, members)))

    def _start(self, members: Obj, response: Obj, out: list[Event]) -> None:
        """Start the answer with its first frame; with no `members` if that is also the last one."""
        if self._started:
            return
        self._started = True
        created = response.get("created_at")
        out.append(
            Start(
                string(response, "id") or "",
                string(response, "model") or "",
                int(created) if isinstance(created, (int, float)) and 0 <= created < _LATEST else None,
                Extras(NAME, members) if self._keep and members else None,
            )
        )

    def _body(self, response: Obj, out: list[Event]) -> None:
        """Read a whole body. A response that runs in the background only passes to a Responses client."""
        status = response.get("status")
        if status in UNFINISHED and not response.get("output") and not self._keep:
            message = f"the upstream has no answer yet: its response is {status}"
            out.extend(self._fail(Failed(FailureKind.UPSTREAM, message, 502, "response_not_finished")))
        else:
            self._finish({"response": response}, response, out)

    def _finish(self, members: Obj, response: Obj, out: list[Event]) -> None:
        status = string(response, "status") or "completed"
        if is_object(usage := response.get("usage")):
            out.append(UsageSeen(_usage(usage), Extras(NAME, usage) if self._keep else None))
        if status in ("failed", "cancelled"):
            failure = failures.from_error(response.get("error") or f"the upstream's response was {status}")
            self._failed(failure, members, out)
            return
        output = self._snapshot(response.get("output"), out)
        for _, item in sorted(self._items.items()):
            item.close(out)
        reason = str(_object(response, "incomplete_details").get("reason"))
        stop = self._stop(status, reason)
        if isinstance(stop, FailureKind):
            self._failed(stop_reasons.failure(stop, reason), members, out)
            return
        detailed = stop is Stop.FILTER and reason != "content_filter"
        extras = Extras(NAME, {**members, "response": {**response, "output": output}}) if self._keep else None
        out.append(End(stop, detail=reason if detailed else None, extras=extras))
        self._over = True

    def _failed(self, failure: Failed, members: Obj, out: list[Event]) -> None:
        extras = Extras(NAME, members) if self._keep else None
        out.extend(self._fail(msgspec.structs.replace(failure, extras=extras)))

    def _snapshot(self, output: Any, out: list[Event]) -> dict[int, Obj]:
        """Emit content of the final response that no event contained. Returns its items by their index.

        Items are matched by position: OpenRouter's final ids differ from those of its events, but the order
        does not.
        """
        seen = [item for _, item in sorted(self._items.items())]
        found: dict[int, Obj] = {}
        for position, members in enumerate(output if is_array(output) else ()):
            if not is_object(members):
                continue
            if position < len(seen):
                item = seen[position]
            else:
                index = max(self._items, default=-1) + 1
                item = self._items[index] = OpenItem(index, self._blocks)
            item.finish({"type": DONE, "item": members}, out)
            found[item.index] = members
        return found

    def _stop(self, status: str, reason: str) -> Stop | FailureKind:
        if status == "incomplete":
            return stop_reasons.meaning(reason) or Stop.MAX_TOKENS
        # Responses has no stop reason for calls: the items show it.
        if any(item.is_call for item in self._items.values()):
            return Stop.TOOL
        return Stop.REFUSAL if any(item.refused for item in self._items.values()) else Stop.END


def _object(members: Obj, name: str) -> Obj:
    value = members.get(name)
    return value if is_object(value) else {}


def _usage(usage: Obj) -> Usage:
    details = _object(usage, "input_tokens_details")
    total, cached, written = (
        number(count)
        for count in (
            usage.get("input_tokens"),
            details.get("cached_tokens"),
            details.get("cache_write_tokens"),
        )
    )
    return Usage(
        input=None if total is None else max(0, total - (cached or 0) - (written or 0)),
        cache_read=cached,
        cache_write=written,
        output=number(usage.get("output_tokens")),
        reasoning=number(_object(usage, "output_tokens_details").get("reasoning_tokens")),
    )
