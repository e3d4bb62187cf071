"""A conversation as Chat wants it: a turn's calls in one message, their results right after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, TypeVar, cast

import msgspec

from ....errors import BadRequest
from ....messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from ...breakpoints import is_marked, surplus, unmarked
from ...fields import Obj, is_array, is_object
from ...history import History
from ...ids import for_upstream
from ...memory import MEMORY
from ...notices import Notices
from ...plain import Call, Plain
from ...turns import marked_parts, missing_result, note_prefill
from .shared import Writing, is_own
from .write_assistant import assistant_message, drop_opaque
from .write_own import own_message
from .write_parts import cache_mark, content_of, media_part, text_part
from .write_plain import Json, PlainWriter, together

T = TypeVar("T")

Piece = Obj | Json | memoryview
"""A message, or JSON of one or more that have no cache marks, each after a comma."""

_SYSTEM = ("system", "developer")

_encode = msgspec.json.Encoder().encode


def write_messages(messages: Sequence[Message], writing: Writing) -> list[Obj]:
    """The list of messages."""
    conversation = Conversation(writing)
    for index, message in enumerate(messages):
        conversation.add(message, messages, index)
    written = conversation.end(messages)
    if not writing.own:
        note_prefill(messages, writing.notices)
        written = with_few_marks(written, writing.notices)
    return cast("list[Obj]", written)


def with_few_marks(messages: list[Piece], notices: Notices) -> list[Piece]:
    """No more cache breakpoints than are allowed. Messages may be remembered: they are not changed."""
    marks = [_marks(message) for message in messages]
    left = surplus(sum(marks), notices)
    if not left:
        return messages
    result = list(messages)
    for index, (message, count) in enumerate(zip(messages, marks, strict=True)):
        if left and count and isinstance(message, dict):
            content, off = unmarked(message["content"], left)
            result[index] = {**message, "content": content}
            left -= off
    return result


def _marks(message: Piece) -> int:
    content = message["content"] if isinstance(message, dict) else None
    return sum(map(is_marked, content)) if is_array(content) else 0


def packed(written: Sequence[Any], *, marks: bool) -> list[Piece]:
    """What was written in one piece, but for messages with cache `marks`, if there are such."""
    if not marks:
        return [memoryview(b"".join(written))]
    pieces: list[Piece] = []
    for is_message, several in groupby(written, is_object):
        if is_message:
            pieces += several
        else:
            pieces.append(memoryview(b"".join(several)))
    return pieces


class Conversation:
    """Chat messages in the making."""

    def __init__(self, writing: Writing, plain: PlainWriter | None = None, *, packs: bool = False) -> None:
        """`packs`: all becomes JSON but what has cache marks."""
        self._writing = writing
        self._packs = packs
        self._own = writing.own
        self._compatible = writing.compatible
        if plain is not None:
            self._plain = plain
        self.settled = True
        """Is nothing left open, so that what follows depends on nothing before it? For who goes on."""
        self._out: list[Piece] = []
        """What was said since the last time that it was packed."""
        self._answered = False
        """Is the last of them a result?"""
        self._spoken: list[int] = []
        """Where the model's messages since anybody else's stand: a Responses turn is one item per call."""
        self._open: dict[str, ToolCall | Call] = {}
        """Calls without a result so far."""
        self._waiting: list[Obj | Sequence[Json]] = []
        """What was said before all results were there: nothing may stand between."""
        self._shown: list[Obj] = []
        """Pictures and documents out of results, where only text is allowed."""

    @cached_property
    def _plain(self) -> PlainWriter:
        return PlainWriter(self._writing)

    def packed(self) -> list[Piece]:
        """What was said since the last time, as `packed` gives it."""
        fresh, self._out = self._out, []
        return packed(fresh, marks=not self._compatible) if fresh else []

    def go_on(self, history: History, index: int, stop: int, size: int) -> int:
        """The turns of `history` from `index` to `stop` about which nothing has to be thought, or else one
        message, where there are `size`. Gives the end of what was written."""
        leading = len(history.leading)
        if index >= leading and self.settled and stop <= size:
            written, end = self._plain.turns(history, index - leading, stop - leading)
            if written:
                self._out += written
                return end + leading
        plain = self._plain_one(history, index)
        if plain is None:
            self.add(history[index], history, index)
        else:
            self._add_plain(plain, history, index)
        self.settled = not (self._spoken or self._open or self._waiting or self._shown)
        return index + 1

    def _plain_one(self, history: History, index: int) -> Plain | None:
        """The message at `index`, where it is plain, and has no cache marks that are to be written. What came
        over Chat goes back as it came."""
        if self._own:
            return None
        if not self._compatible and index - len(history.leading) in history.marked:
            return None
        return history.plain(index)

    def add(self, message: Message, messages: Sequence[Message], index: int) -> None:
        """The message at `index` of the request's `messages`."""
        if message.role == "assistant" and not is_own(message.raw):
            self._spoken.append(index)
            return
        self._speak(messages)
        where = f"messages[{index}]"
        if message.raw is not None and is_own(message.raw):
            self._add_own(message, message.raw.value, where)
            return
        written = self._noted(message, lambda: _written(message, self._writing, where))
        for answer in written.answers:
            self._answer(answer)
        if written.said is not None:
            self._say(written.said, where, system=written.said["role"] in _SYSTEM)
        if not self._open:
            self._settle()

    def _add_plain(self, plain: Plain, history: History, index: int) -> None:
        """The message at `index` of the request's `history`."""
        if plain.kind == "said":
            self._spoken.append(index)
            return
        if self._spoken:
            self._speak(history)
        if plain.kind == "told":
            self._say(self._plain.told(plain), f"messages[{index}]", system=True)
            return
        content: Any = plain.content
        silent = bool(content)
        for part in content:
            if part.kind == "result":
                self._open.pop(part.call_id, None)
                self._put(self._plain.answer(part), answer=True)
            else:
                silent = False
        if not silent:
            self._say(self._plain.question(plain), f"messages[{index}]")
        if not self._open:
            self._settle()

    def end(self, messages: Sequence[Message]) -> list[Piece]:
        if self._spoken:
            self._speak(messages)
        if self._waiting or self._shown or self._answered:
            self._settle()
        return self._out

    def _add_own(self, message: Message, raw: Obj, where: str) -> None:
        raw = own_message(raw, self._writing.target, self._writing.notices, where)
        if message.role == "assistant":
            self._open_turn(raw, _calls(message.parts))
        elif raw["role"] == "tool":
            self._put(raw, answer=True)
            for part in message.parts:
                if isinstance(part, ToolResult):
                    self._open.pop(part.call_id, None)
        else:
            self._say(raw, where, system=raw["role"] in _SYSTEM)

    def _speak(self, messages: Sequence[Message]) -> None:
        if not self._spoken:
            return
        spoken, self._spoken = self._spoken, []
        alone = len(spoken) == 1
        if type(messages) is History:
            plain = self._plain_one(messages, spoken[0])
            if plain is not None and not alone:
                plain = together([plain, *(self._plain_one(messages, index) for index in spoken[1:])])
            if plain is not None and plain.kind == "said":
                message, calls = self._plain.assistant(plain)
                self._open_turn(message, {call.id: call for call in calls})
                return
        said = [(messages[index], f"messages[{index}]") for index in spoken]
        if alone:
            message = self._noted(said[0][0], lambda: assistant_message(said, self._writing))
        else:
            message = assistant_message(said, self._writing)
        self._open_turn(message, _calls(part for one, _ in said for part in one.parts))

    def _noted(self, message: Message, write: Callable[[], T]) -> T:
        known = MEMORY.known(message.raw.value) if message.raw is not None else None
        if known is None:
            return write()
        # Gemini's calls may have come without ids: then those are not told by its bytes.
        ids = (part.id for part in message.parts if isinstance(part, ToolCall))
        answered = (part.call_id for part in message.parts if isinstance(part, ToolResult))
        return self._writing.noted(known, "message", (self._writing.key, *ids, *answered), write)

    def _open_turn(self, message: Obj | Sequence[Json] | None, calls: Mapping[str, ToolCall | Call]) -> None:
        if not message:
            return
        self._settle()
        self._put(message)
        self._open = dict(calls)

    def _say(self, message: Obj | Sequence[Json], where: str, *, system: bool = False) -> None:
        if not message:
            return
        if self._open:
            if system:
                text = "moved behind the results of the calls before it"
                self._writing.notices.say("system-moved", where, text)
            self._waiting.append(message)
        else:
            self._settle()
            self._put(message)

    def _put(self, message: Obj | Sequence[Json], *, answer: bool = False) -> None:
        if not isinstance(message, dict):
            self._out += message
        elif self._packs and (self._compatible or not _marks(message)):
            self._out += (b",", _encode(message))
        else:
            self._out.append(message)
        self._answered = answer

    def _answer(self, answer: _Answer) -> None:
        self._open.pop(answer.call_id, None)
        self._put(answer.message, answer=True)
        self._shown += answer.shown

    def _settle(self) -> None:
        """Everything about the last calls is said: answer what nobody answered, then go on."""
        if not (self._open or self._shown or self._waiting):
            return
        for call in list(self._open.values()):
            call = call if isinstance(call, ToolCall) else ToolCall(id=call.id, name=call.name)
            self._answer(_answer(missing_result(call, self._writing.notices), self._writing, ""))
        if self._shown:
            self._put({"role": "user", "content": self._shown})
        for message in self._waiting:
            self._put(message)
        self._shown, self._waiting = [], []


def _calls(parts: Iterable[Part]) -> dict[str, ToolCall]:
    return {part.id: part for part in parts if isinstance(part, ToolCall)}


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
    if ToolResult not in map(type, message.parts):
        return _Written([], _said(message, writing, where))
    answers = [
        _answer(part, writing, f"{where}.parts[{index}]")
        for index, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    ]
    silent = len(answers) == len(message.parts)
    return _Written(answers, None if silent else _said(message, writing, where))


def _said(message: Message, writing: Writing, where: str) -> Obj | None:
    """A system's or user's message without its results; None if nothing of it can be said."""
    content = _only_words(message) or _content(message, writing, where)
    if content is None:
        return None
    role = "system" if message.role == "developer" and writing.compatible else message.role
    result: Obj = {"role": role, "content": content}
    return {**result, "name": message.name} if message.name else result


def _only_words(message: Message) -> str:
    """The words of a message that is nothing but one plain text."""
    if len(message.parts) != 1:
        return ""
    part = message.parts[0]
    return part.text if type(part) is Text and part.cache is None and not part.citations else ""


def _content(message: Message, writing: Writing, where: str) -> str | list[Obj] | None:
    parts: list[Obj] = []
    for index, part in enumerate(message.parts):
        at = f"{where}.parts[{index}]"
        match part:
            case Text():
                parts.append(text_part(part, writing, at))
            case ToolResult():
                pass
            case Media():
                if message.role != "user":
                    raise BadRequest(f"openai-chat takes no {part.kind} in a system prompt", at)
                parts.append(media_part(part, writing, at))
            case Opaque(raw) if is_own(raw):
                parts.append(raw.value)
            case _:
                drop_opaque(part, writing, at)
    return None if message.parts and not parts else content_of(parts, writing)


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
