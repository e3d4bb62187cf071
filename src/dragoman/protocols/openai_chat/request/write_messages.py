"""A conversation as Chat wants it: a turn's calls in one message, their results right after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....errors import BadRequest
from ....messages import Media, Message, Opaque, Part, Raw, Text, ToolCall, ToolResult
from ...breakpoints import is_marked, surplus, unmarked
from ...fields import Obj, is_array
from ...ids import for_upstream
from ...notices import Notices
from ...turns import marked_parts, missing_result, note_prefill
from .shared import Writing, is_own
from .write_assistant import assistant_message, drop_opaque
from .write_own import own_message
from .write_parts import cache_mark, content_of, media_part, text_part

_SYSTEM = ("system", "developer")


def write_messages(messages: Sequence[Message], writing: Writing) -> list[Any]:
    """The list of messages. A message that came over Chat may be `msgspec.Raw`."""
    conversation = _Conversation(writing)
    for index, message in enumerate(messages):
        conversation.add(message, index)
    written = conversation.end()
    if not writing.own:
        note_prefill(messages, writing.notices)
        if not writing.compatible:
            _trim_marks(written, writing.notices)
    return written


def _trim_marks(messages: list[Obj], notices: Notices) -> None:
    """Takes the first cache breakpoints off, if there are more than OpenAI allows."""
    marks = [sum(map(is_marked, m["content"])) if is_array(m["content"]) else 0 for m in messages]
    left = surplus(sum(marks), notices)
    for message, count in zip(messages, marks, strict=True):
        if left and count:
            message["content"], off = unmarked(message["content"], left)
            left -= off


class _Conversation:
    """Chat messages in the making."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._out: list[Any] = []
        self._spoken: list[tuple[int, Message]] = []
        """The model's messages since anybody else's: a Responses turn is one item per call."""
        self._open: dict[str, ToolCall] = {}
        """Calls without a result so far."""
        self._waiting: list[Any] = []
        """Messages that came before all results were there: nothing may stand between."""
        self._shown: list[Obj] = []
        """Pictures and documents out of results, where only text is allowed."""
        self._answered = False
        """Is the last message so far a result?"""

    def add(self, message: Message, index: int) -> None:
        """The message at `index` of the request."""
        raw = message.raw
        own = raw is not None and is_own(raw)
        if message.role == "assistant" and not own:
            self._spoken.append((index, message))
            return
        self._speak()
        if raw is not None and own:
            self._add_own(message, raw, index)
            return
        silent = bool(message.parts)
        for at, part in enumerate(message.parts):
            if part.__class__ is ToolResult:
                self._answer(part, index, at)  # pyright: ignore[reportArgumentType]
            else:
                silent = False
        if not silent:
            self._say(_said(message, self._writing, index), index, system=message.role in _SYSTEM)
        if not self._open:
            self._settle()

    def end(self) -> list[Any]:
        """The whole list."""
        self._speak()
        # Calls that the conversation ends with need no results yet.
        if self._answered or self._waiting or self._shown:
            self._settle()
        return self._out

    def _add_own(self, message: Message, raw: Raw, index: int) -> None:
        """A message that came over Chat goes back as it came."""
        written = own_message(raw, self._writing.target, self._writing.notices, f"messages[{index}]")
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "assistant":
            self._open_turn(written, _calls(message.parts))
        elif results:
            self._put(written, answer=True)
            for result in results:
                self._open.pop(result.call_id, None)
        else:
            self._say(written, index, system=message.role in _SYSTEM)

    def _speak(self) -> None:
        if self._spoken:
            spoken, self._spoken = self._spoken, []
            written = assistant_message(spoken, self._writing)
            self._open_turn(written, _calls(part for _, message in spoken for part in message.parts))

    def _open_turn(self, message: Any, calls: dict[str, ToolCall]) -> None:
        if message is not None:
            self._settle()
            self._put(message)
            self._open = calls

    def _say(self, message: Any, index: int, *, system: bool) -> None:
        if message is None:
            return
        if self._open:
            if system:
                text = "moved behind the results of the calls before it"
                self._writing.notices.say("system-moved", f"messages[{index}]", text)
            self._waiting.append(message)
        else:
            self._settle()
            self._put(message)

    def _put(self, message: Any, *, answer: bool = False) -> None:
        self._out.append(message)
        self._answered = answer

    def _answer(self, result: ToolResult, index: int, at: int) -> None:
        """A result as text; what else it holds is shown behind it (row 18)."""
        writing = self._writing
        id = for_upstream(result.call_id, writing.ids)
        texts: list[Obj] = []
        shown: list[Obj] = []
        for part in marked_parts(result):
            if part.__class__ is Text:
                texts.append(text_part(part, writing, index, at))  # pyright: ignore[reportArgumentType]
            elif isinstance(part, Media):
                texts.append({"type": "text", "text": f"[{part.kind}: in the next user message]"})
                shown.append(media_part(part, writing, f"messages[{index}].parts[{at}]"))
        if texts and result.cache:
            texts[-1] |= cache_mark(result.cache, writing)
        if shown:
            shown.insert(0, {"type": "text", "text": f"From the result of the tool call {id}:"})
        self._open.pop(result.call_id, None)
        self._put({"role": "tool", "tool_call_id": id, "content": content_of(texts, writing)}, answer=True)
        self._shown += shown

    def _settle(self) -> None:
        """Everything about the last calls is said: answer what nobody answered, then go on."""
        for call in list(self._open.values()):
            self._answer(missing_result(call, self._writing.notices), 0, 0)
        if self._shown:
            self._out.append({"role": "user", "content": self._shown})
            self._shown = []
        if self._waiting:
            self._out += self._waiting
            self._waiting = []


def _calls(parts: Iterable[Part]) -> dict[str, ToolCall]:
    return {part.id: part for part in parts if isinstance(part, ToolCall)}


def _said(message: Message, writing: Writing, index: int) -> Obj | None:
    """A system's or user's message without its results; None if nothing of it can be said."""
    parts: list[Obj] = []
    for at, part in enumerate(message.parts):
        if isinstance(part, Text):
            parts.append(text_part(part, writing, index, at))
        elif not isinstance(part, ToolResult):
            _add_rare(part, parts, message, writing, f"messages[{index}].parts[{at}]")
    if message.parts and not parts:
        return None
    role = "system" if message.role == "developer" and writing.compatible else message.role
    result: Obj = {"role": role, "content": content_of(parts, writing)}
    if message.name:
        result["name"] = message.name
    return result


def _add_rare(part: Part, parts: list[Obj], message: Message, writing: Writing, where: str) -> None:
    match part:
        case Media():
            if message.role != "user":
                raise BadRequest(f"openai-chat takes no {part.kind} in a system prompt", where)
            parts.append(media_part(part, writing, where))
        case Opaque(raw) if is_own(raw):
            parts.append(raw.parsed)
        case _:
            drop_opaque(part, writing, where)
