"""Write a conversation for Chat: the calls of a turn in one message, their results directly after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Extras, Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from ...common import inline_media
from ...common.cache_breakpoints import is_marked, surplus, unmarked
from ...common.fields import Obj, is_array
from ...common.notices import Notices
from ...common.turns import marked_parts, missing_result, note_prefill
from ...common.typed_json import LazyArray, unchanged_array
from ..own import is_own
from .read_pairs import LEGACY
from .shared import Writing
from .unwrap import MessageExtras, is_legacy, unwrapped
from .write_assistant import assistant_message, drop_opaque
from .write_parts import Content, content_of, drop_citations, given_part, media_part

_SYSTEM = ("system", "developer")


def write_messages(messages: Sequence[Message], writing: Writing) -> list[Any] | msgspec.Raw:
    """Write the list of messages. The messages of a Chat client are copied if nothing changes in them."""
    if writing.own and not (writing.keeps_ids and writing.keeps_legacy):
        messages = [_fitting(message, writing) for message in messages]
    whole = unchanged_array([message.raw for message in messages])
    if whole is not None and is_own(messages[0].raw):
        return whole
    conversation = _MessageList(writing)
    for index, message in enumerate(messages):
        conversation.add(message, index)
    written = conversation.end()
    if writing.own:
        return _spaced(messages, written)
    note_prefill(messages, writing.notices)
    if not writing.compatible:
        _trim_marks(written, writing.notices)
    return written


def _spaced(messages: Sequence[Message], written: list[Any]) -> list[Any] | msgspec.Raw:
    """The list with the client's white space: one message written anew changes no byte before it."""
    lists = (message.raw.held for message in messages if is_own(message.raw))
    listed = next(lists, None)
    return listed.spaced(written) if isinstance(listed, LazyArray) else written


def _fitting(message: Message, writing: Writing) -> Message:
    """A Chat client's message without `raw`, if the upstream does not take its ids or its deprecated form."""
    raw = message.raw
    ids = [part.id for part in message.parts if isinstance(part, ToolCall)]
    ids += [part.call_id for part in message.parts if isinstance(part, ToolResult)]
    if not ids or not is_own(raw):
        return message
    if not writing.keeps_legacy and any(id.startswith(LEGACY) for id in ids) and is_legacy(raw):
        return msgspec.structs.replace(message, raw=None)
    return message if all(writing.id(id) == id for id in ids) else unwrapped(message, raw)


def _trim_marks(messages: list[Obj], notices: Notices) -> None:
    """Remove the first cache breakpoints if there are more than OpenAI allows."""
    marks = [sum(map(is_marked, m["content"])) if is_array(m["content"]) else 0 for m in messages]
    left = surplus(sum(marks), notices)
    for message, count in zip(messages, marks, strict=True):
        if left and count:
            message["content"], off = unmarked(message["content"], left)
            left -= off


class _MessageList:
    """Builds the list of Chat messages."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._out: list[Any] = []
        self._assistant_turn: list[tuple[int, Message]] = []
        """Consecutive assistant messages. They become one: a Responses client sends one item per call."""
        self._open_calls: dict[str, ToolCall] = {}
        """Calls without a result so far."""
        self._waiting: list[Any] = []
        """Messages that wait until all results are written: nothing may come between calls and results."""
        self._held_media: list[Obj] = []
        """Images and documents of results: a Chat result may contain only text."""
        self._after_result = False
        """Is the last written message a result?"""

    def add(self, message: Message, index: int) -> None:
        """Add the message at `index` of the request."""
        own = self._writing.kept(message.extras) is not None
        if message.role != "assistant" or own or is_own(message.raw):
            self._flush_assistant()
        if is_own(message.raw):
            self._add_copy(message, message.raw.value, index)
            return
        if message.role == "assistant":
            self._assistant_turn.append((index, message))
            if own:
                self._flush_assistant()
            return
        results = 0
        for at, part in enumerate(message.parts):
            if type(part) is ToolResult:
                self._add_result(part, index, at, message.extras)
                results += 1
        if not results or results < len(message.parts):
            self._add_message(
                _without_results(message, self._writing, index), index, system=message.role in _SYSTEM
            )
        if not self._open_calls:
            self._close_turn()

    def end(self) -> list[Any]:
        """Finish and return the list."""
        self._flush_assistant()
        # Calls at the end of the conversation need no results yet.
        if self._after_result or self._waiting or self._held_media:
            self._close_turn()
        return self._out

    def _add_copy(self, message: Message, written: Any, index: int) -> None:
        """Add the message of a Chat client unchanged."""
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "assistant":
            calls = {part.id: part for part in message.parts if isinstance(part, ToolCall)}
            self._open_turn(written, calls)
        elif results:
            self._out.append(written)
            self._after_result = True
            for result in results:
                self._open_calls.pop(result.call_id, None)
        else:
            self._add_message(written, index, system=message.role in _SYSTEM)

    def _flush_assistant(self) -> None:
        if self._assistant_turn:
            written, calls = assistant_message(self._assistant_turn, self._writing)
            self._assistant_turn = []
            self._open_turn(written, calls)

    def _open_turn(self, message: Any, calls: dict[str, ToolCall]) -> None:
        if message is not None:
            self._close_turn()
            self._out.append(message)
            self._after_result = False
            self._open_calls = calls

    def _add_message(self, message: Any, index: int, *, system: bool) -> None:
        if message is None:
            return
        if self._open_calls and not self._writing.own:
            if system:
                text = "moved behind the results of the calls before it"
                self._writing.notices.warn("system-moved", f"messages[{index}]", text)
            self._waiting.append(message)
        else:
            self._close_turn()
            self._out.append(message)
            self._after_result = False

    def _add_result(self, result: ToolResult, index: int, at: int, extras: Extras | None = None) -> None:
        """Write a result as text. Its images follow in a user message.

        OpenAI's servers accept an image in a `tool` message with status 200, but the model does not see it
        (openai-openapi#523, litellm#20403).
        """
        writing = self._writing
        id, where = writing.id(result.call_id), f"messages[{index}].parts[{at}]"
        texts: list[Content] = []
        for part in marked_parts(result):
            if isinstance(part, Text):
                texts.append(part)
                if part.citations:
                    drop_citations(writing, index, at)
            elif writing.own and is_own(part.raw):
                texts.append(part.raw.value)
            elif part.kind == "document" and inline_media.text_of(part, where) is not None:
                texts.append(media_part(part, writing, where))
            else:
                texts.append(Text(f"[{part.kind}: in the next user message]"))
                self._hold_media(part, id, where)
        if result.cache is not None and texts and isinstance(last := texts[-1], Text):
            texts[-1] = msgspec.structs.replace(last, cache=result.cache)
        self._open_calls.pop(result.call_id, None)
        listed = isinstance(extras, MessageExtras) and extras.listed
        content = content_of(texts, writing, listed=listed)
        self._out.append(
            {"role": "tool", "tool_call_id": id, "content": content} | (writing.kept(extras) or {})
        )
        self._after_result = True

    def _hold_media(self, media: Media, id: str, where: str) -> None:
        """Keep an image or document of a result for the user message after all results."""
        words = {"type": "text", "text": f"From the result of the tool call {id}:"}
        if words not in self._held_media:
            self._held_media.append(words)
        self._held_media.append(media_part(media, self._writing, where))

    def _close_turn(self) -> None:
        """Finish the last calls: add missing results, then the messages that wait.

        A Chat client has no messages that wait, and its upstream judges what is missing.
        """
        if self._writing.own:
            self._open_calls = {}
        elif self._open_calls:
            for call in list(self._open_calls.values()):
                self._add_result(missing_result(call, self._writing.notices), 0, 0)
        if self._held_media:
            self._out.append({"role": "user", "content": self._held_media})
            self._held_media = []
        if self._waiting:
            self._out += self._waiting
            self._waiting = []


def _without_results(message: Message, writing: Writing, index: int) -> Obj | None:
    """A system or user message without its results; None if it would be empty."""
    parts: list[Content] = []
    for at, part in enumerate(message.parts):
        if type(part) is Text:
            if part.text:
                parts.append(part)
            if part.citations:
                drop_citations(writing, index, at)
        elif type(part) is not ToolResult:
            _add_rare(part, parts, message, writing, f"messages[{index}].parts[{at}]")
    if not parts and any(type(part) is not Text for part in message.parts):
        return None
    role = "system" if message.role == "developer" and writing.compatible else message.role
    result: Obj = {"role": role, "content": content_of(parts, writing)}
    if message.name:
        result["name"] = message.name
    return result


def _add_rare(part: Part, parts: list[Content], message: Message, writing: Writing, where: str) -> None:
    match part:
        case Media():
            if message.role != "user":
                raise BadRequest(f"openai-chat does not accept {part.kind} in a system prompt", where)
            parts.append(media_part(part, writing, where))
        case Opaque(raw) if is_own(raw):
            parts.append(given_part(raw, writing))
        case _:
            drop_opaque(part, writing, where)
