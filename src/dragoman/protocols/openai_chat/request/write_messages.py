"""A conversation as Chat wants it: a turn's calls in one message, their results right after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from ....errors import BadRequest
from ....messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from ...breakpoints import is_marked, surplus, unmarked
from ...fields import Obj, is_array
from ...ids import for_upstream
from ...memory import MEMORY, keep_beginning, longest_known
from ...notices import Notices
from ...turns import marked_parts, missing_result, note_prefill
from .shared import NAME, Writing, is_own
from .write_assistant import assistant_message, drop_opaque
from .write_own import own_message
from .write_parts import cache_mark, content_of, media_part, text_part

T = TypeVar("T")

_BEGINNING = f"the beginning of a conversation, written for {NAME}"


def write_messages(messages: Sequence[Message], writing: Writing) -> list[Obj]:
    values = [message.raw.value if message.raw is not None else None for message in messages]
    start, before = longest_known(values, _BEGINNING, writing.key)
    conversation = before.copy(writing) if before is not None else _Conversation(writing)
    said = len(writing.notices)
    for index in range(start, len(messages)):
        conversation.add(messages[index], f"messages[{index}]")
        if len(writing.notices) == said:  # what has to be said is said every time
            keep_beginning(values, index + 1, _BEGINNING, writing.key, lambda: conversation.copy(writing))
    written = conversation.end()
    if not writing.own:
        note_prefill(messages, writing.notices)
        written = _with_few_marks(written, writing.notices)
    return written


def _with_few_marks(messages: list[Obj], notices: Notices) -> list[Obj]:
    """No more cache breakpoints than are allowed. Messages may be remembered: they are not changed."""
    marks = [_marks(message) for message in messages]
    left = surplus(sum(marks), notices)
    result = list(messages)
    for index, count in enumerate(marks):
        if left and count:
            content, off = unmarked(messages[index]["content"], left)
            result[index] = {**messages[index], "content": content}
            left -= off
    return result


def _marks(message: Obj) -> int:
    content = message["content"]
    return sum(map(is_marked, content)) if is_array(content) else 0


class _Conversation:
    """Chat messages in the making."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._key = writing.key
        self._out: list[Obj] = []
        self._spoken: list[tuple[Message, str]] = []
        """The model's messages since anybody else's: a Responses turn is one item per call."""
        self._open: dict[str, ToolCall] = {}
        """Calls without a result so far."""
        self._waiting: list[Obj] = []
        """What was said before all results were there: nothing may stand between."""
        self._shown: list[Obj] = []
        """Pictures and documents out of results, where only text is allowed."""

    def copy(self, writing: Writing) -> _Conversation:
        """As far as it has come, to go on with in another request that begins with the same messages."""
        other = _Conversation(writing)
        other._out = self._out.copy()
        other._spoken = self._spoken.copy()
        other._open = self._open.copy()
        other._waiting = self._waiting.copy()
        other._shown = self._shown.copy()
        return other

    def add(self, message: Message, where: str) -> None:
        if message.role == "assistant" and not is_own(message.raw):
            self._spoken.append((message, where))
            return
        self._speak()
        if message.raw is not None and is_own(message.raw):
            self._add_own(message, message.raw.value, where)
            return
        written = self._noted(message, lambda: _written(message, self._writing, where))
        for answer in written.answers:
            self._answer(answer)
        self._say(written.said, where)

    def end(self) -> list[Obj]:
        self._speak()
        if self._waiting or self._shown or (self._out and self._out[-1]["role"] == "tool"):
            self._settle()
        return self._out

    def _add_own(self, message: Message, raw: Obj, where: str) -> None:
        raw = own_message(raw, self._writing.target, self._writing.notices, where)
        if message.role == "assistant":
            self._open_turn(raw, message.parts)
        elif raw["role"] == "tool":
            self._out.append(raw)
            for part in message.parts:
                if isinstance(part, ToolResult):
                    self._open.pop(part.call_id, None)
        else:
            self._say(raw, where)

    def _speak(self) -> None:
        if not self._spoken:
            return
        if len(self._spoken) == 1:
            message = self._noted(self._spoken[0][0], lambda: assistant_message(self._spoken, self._writing))
        else:
            message = assistant_message(self._spoken, self._writing)
        if message is not None:
            self._open_turn(message, [part for said, _ in self._spoken for part in said.parts])
        self._spoken = []

    def _noted(self, message: Message, write: Callable[[], T]) -> T:
        known = MEMORY.known(message.raw.value) if message.raw is not None else None
        return self._writing.noted(known, "message", self._key, write)

    def _open_turn(self, message: Obj, parts: Sequence[Part]) -> None:
        self._settle()
        self._out.append(message)
        self._open = {part.id: part for part in parts if isinstance(part, ToolCall)}

    def _say(self, message: Obj | None, where: str) -> None:
        if message is None:
            return
        if self._open:
            if message["role"] in ("system", "developer"):
                text = "moved behind the results of the calls before it"
                self._writing.notices.say("system-moved", where, text)
            self._waiting.append(message)
        else:
            self._settle()
            self._out.append(message)

    def _answer(self, answer: _Answer) -> None:
        self._open.pop(answer.call_id, None)
        self._out.append(answer.message)
        self._shown += answer.shown

    def _settle(self) -> None:
        """Everything about the last calls is said: answer what nobody answered, then go on."""
        for call in list(self._open.values()):
            self._answer(_answer(missing_result(call, self._writing.notices), self._writing, ""))
        if self._shown:
            self._out.append({"role": "user", "content": self._shown})
        self._out += self._waiting
        self._shown, self._waiting = [], []


class _Answer(msgspec.Struct, frozen=True):
    """A tool's result, written."""

    call_id: str
    message: Obj
    shown: list[Obj]
    """What of it must follow in a message of the user."""


class _Written(msgspec.Struct, frozen=True):
    """A message that is not the model's."""

    answers: list[_Answer]
    said: Obj | None


def _written(message: Message, writing: Writing, where: str) -> _Written:
    answers = [
        _answer(part, writing, f"{where}.parts[{index}]")
        for index, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    ]
    silent = answers and len(answers) == len(message.parts)
    return _Written(answers, None if silent else _said(message, writing, where))


def _said(message: Message, writing: Writing, where: str) -> Obj | None:
    """A system's or user's message without its results; None if nothing of it can be said."""
    parts: list[Obj] = []
    for index, part in enumerate(message.parts):
        at = f"{where}.parts[{index}]"
        match part:
            case ToolResult():
                pass
            case Text():
                parts.append(text_part(part, writing, at))
            case Media():
                if message.role != "user":
                    raise BadRequest(f"openai-chat takes no {part.kind} in a system prompt", at)
                parts.append(media_part(part, writing, at))
            case Opaque(raw) if is_own(raw):
                parts.append(raw.value)
            case _:
                drop_opaque(part, writing, at)
    if message.parts and not parts:
        return None
    role = "system" if message.role == "developer" and writing.compatible else message.role
    result: Obj = {"role": role, "content": content_of(parts, writing)}
    return {**result, "name": message.name} if message.name else result


def _answer(result: ToolResult, writing: Writing, where: str) -> _Answer:
    """A result as text; what else it holds is shown behind it (row 18)."""
    id = for_upstream(result.call_id, writing.ids)
    texts: list[Obj] = []
    shown: list[Obj] = []
    for part in marked_parts(result):
        if isinstance(part, Text):
            texts.append(text_part(part, writing, where))
        else:
            texts.append({"type": "text", "text": f"[{part.kind}: in the next user message]"})
            shown.append(media_part(part, writing, where))
    if texts and result.cache:
        texts[-1] |= cache_mark(result.cache, writing)
    if shown:
        shown.insert(0, {"type": "text", "text": f"From the result of the tool call {id}:"})
    message: Obj = {"role": "tool", "tool_call_id": id, "content": content_of(texts, writing)}
    return _Answer(result.call_id, message, shown)
