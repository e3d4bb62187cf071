"""Anthropic's messages read in one go, where they are plain; the others one field at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from ....messages import Message, Opaque, Text, ToolCall, ToolResult
from ... import ids, seals
from ...conversations import Cut
from ...fields import as_object
from ...history import History, decoded
from ...plain import BEYOND_STRINGS, OBJECTS
from ...turns import Pairing
from ..decoder import NAME
from .plain_shapes import (
    NO_WORDS,
    UNREAD,
    UNSAID,
    AskedGiven,
    AskedMessage,
    AskedUnread,
    CallBlock,
    GivenBlock,
    ResultBlock,
    SaidMessage,
    SaidUnread,
    TextBlock,
    ThoughtsBlock,
    ToldMessage,
    is_list,
    parts_of,
    read_again,
    read_given,
    who_reads_more,
)
from .read_blocks import read_message
from .spelling import inputs

_OURS, _OURS_FROM, _OURS_TO = ids.OURS, ids.OURS_FROM, ids.OURS_TO


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, RecursionError or BadRequest for what is wrong."""
    if cut.before is None:
        history = History(NAME, _read, read_again, cut.listed, leading)
    else:
        history = cut.before.history.begun(cut.count, cut.listed, leading, unmarked=cut.unmarked)
    plain: list[Any] = cut.messages
    if history.read_more is not read_given:
        history.read_more = who_reads_more(set(map(type, plain))) or history.read_more
    unusual: dict[int, Message] = {}
    place = 0
    while place < len(plain):
        message, end = plain[place], place
        if type(message) is SaidMessage and message.content.__class__ is list:
            end = _usual_turns(plain, place, cut.count, history)
        elif type(message) in UNREAD:
            end = _strings(plain, place)
        if end > place:
            place = end
            continue
        at = cut.count + place
        if not _IS_PLAIN[type(message)](message, at, history):
            plain[place] = None
            unusual[at] = _read_unusual(history, at)
        place += 1
    history.add(plain, unusual)
    return history


def _usual_turns(plain: list[Any], start: int, count: int, history: History) -> int:
    """Where the turns from `start` on end that are one call, perhaps after thoughts and some words, and its
    result, with no cache mark but on that, and perhaps a string of the system's. Nearly all turns of an agent
    are so, and go through here with few steps; all others, and ids that may be ours, are for those who look
    closer. There are `count` messages before."""
    calls, usual = history.calls, history.usual
    place, last = start, len(plain) - 1
    while place < last:
        said, asked = plain[place], plain[place + 1]
        # To ask an attribute of one class only is quicker.
        if type(said) is not SaidMessage or not (type(asked) is AskedMessage or type(asked) is AskedGiven):
            if (
                type(said) is not ToldMessage
                or said.content >= BEYOND_STRINGS
                or said.output_config is not UNSAID
            ):
                return place
            place += 1
            continue
        parts: Any = said.content
        results: Any = asked.content
        size, at = len(parts), count + place
        if len(results) != 1 or not 0 < size < 4:
            return place
        call, result = parts[-1], results[0]
        if (
            type(call) is not CallBlock
            or not (type(result) is GivenBlock or type(result) is ResultBlock)
            or result.is_error
            or result.call_id != (id := call.id)
            or _OURS_FROM <= id < _OURS_TO
            or call.input < OBJECTS
            or call.cache_control is not UNSAID
        ):
            return place
        if size > 1 and (
            type(words := parts[-2]) is not TextBlock
            or words.text >= BEYOND_STRINGS
            or words.cache_control is not UNSAID
            or (size == 3 and not _are_thoughts(parts[0], at, history))
        ):
            return place
        content: Any = result.content
        if type(result) is ResultBlock:
            content = (
                content[0].text
                if len(content) == 1 and content[0].cache_control is UNSAID
                else BEYOND_STRINGS
            )
        if content >= BEYOND_STRINGS:
            return place
        calls.setdefault(id, at)
        usual.add(at)
        if result.cache_control is not UNSAID:
            history.marked[at + 1] = 1
        place += 2
    return place


def _strings(plain: list[Any], start: int) -> int:
    """Where the messages from `start` on end that are words, each as a string: those of who uses no tools go
    through here with few steps."""
    for place in range(start, len(plain)):
        message = plain[place]
        if type(message) not in UNREAD:
            return place
        content = message.content
        if content >= BEYOND_STRINGS or len(content) == NO_WORDS:
            return place
        force_setattr(message, "content", [TextBlock(content)])  # nobody has seen it as it was
    return len(plain)


def _read_unusual(history: History, at: int) -> Message:
    history.marked.pop(at, None)
    history.thoughts.pop(at, None)
    read = _read(history.item(at), at)
    check_pairs(read, at, Pairing(history.calls))
    if read.role == "system":
        history.told = at
    return read


def _is_told(message: ToldMessage, at: int, history: History) -> bool:
    """Does a system say words and nothing else?"""
    if message.output_config is not UNSAID:
        return False
    if message.content < BEYOND_STRINGS:
        return True
    if not is_list(message):
        return False
    content: Any = message.content
    marks = sum([words.cache_control is not UNSAID for words in content])
    if marks:
        history.marked[at] = marks
    return all(words.text < BEYOND_STRINGS for words in content)


def _is_said(message: SaidMessage, at: int, history: History) -> bool:
    """Is every part of a message of the model's plain? What has a cache mark may be, but that is `marked`."""
    content: Any = message.content
    if content.__class__ is not list and (content := parts_of(message)) is None:
        return False
    for part in content:
        # To ask an attribute of one class only is quicker.
        kind: Any = part.__class__
        if kind is CallBlock:
            id = part.id
            if part.input < OBJECTS or (_OURS_FROM <= id < _OURS_TO and id.startswith(_OURS)):
                return False
            history.calls.setdefault(id, at)
            if part.cache_control is not UNSAID:
                _mark(history, at)
        elif kind is TextBlock and part.text < BEYOND_STRINGS:
            if part.cache_control is not UNSAID:
                _mark(history, at)
        elif not _are_thoughts(part, at, history):
            return False
    return True


def _are_thoughts(part: Any, at: int, history: History) -> bool:
    if type(part) is not ThoughtsBlock:
        return False
    signature = part.signature
    if signature and signature.startswith(seals.OURS):
        return False
    history.thoughts[at] = history.thoughts.get(at, True) and bool(signature)
    return part.text < BEYOND_STRINGS


def _is_asked(message: AskedMessage, at: int, history: History) -> bool:
    """The same for one of the user's."""
    content: Any = message.content
    if content.__class__ is not list and (content := parts_of(message)) is None:
        return False
    for part in content:
        kind: Any = part.__class__
        if kind is TextBlock:
            if part.text >= BEYOND_STRINGS:
                return False
        elif kind is GivenBlock or kind is ResultBlock:
            id = part.call_id
            if id not in history.calls or (_OURS_FROM <= id < _OURS_TO and id.startswith(_OURS)):
                return False
            if (kind is ResultBlock or part.content >= BEYOND_STRINGS) and not _are_words(part):
                return False
        else:
            return False
        if part.cache_control is not UNSAID:
            _mark(history, at)
    return True


def _mark(history: History, at: int) -> None:
    history.marked[at] = history.marked.get(at, 0) + 1


def _is_none(message: None, at: int, history: History) -> bool:
    return False


_IS_PLAIN: dict[type, Callable[[Any, int, History], bool]] = {
    SaidMessage: _is_said,
    SaidUnread: _is_said,
    AskedMessage: _is_asked,
    AskedGiven: _is_asked,
    AskedUnread: _is_asked,
    ToldMessage: _is_told,
    type(None): _is_none,
}


def _are_words(result: ResultBlock) -> bool:
    """Is the content of a result, which is no string, words and nothing else?"""
    if type(result) is GivenBlock and not is_list(result):
        return False
    content: Any = result.content
    if len(content) != 1:
        return all(map(_is_text, content))
    return content[0].text < BEYOND_STRINGS and content[0].cache_control is UNSAID


def _is_text(words: TextBlock) -> bool:
    return words.text < BEYOND_STRINGS and words.cache_control is UNSAID


def check_pairs(message: Message, at: int, pairing: Pairing) -> None:
    for index, part in enumerate(message.parts):
        if type(part) is Text:
            continue
        if isinstance(part, ToolCall):
            pairing.call(part.id, at)
        elif isinstance(part, ToolResult):
            # In a user message every block is a part, so the positions are the client's.
            pairing.result(part.call_id, f"messages[{at}].content[{index}].tool_use_id")
        elif isinstance(part, Opaque):
            # Kinds of call yet unknown may be answered like any other.
            id = part.raw.value.get("id")
            if isinstance(id, str):
                pairing.call(id, at)


def _read(item: bytes | msgspec.Raw, at: int) -> Message:
    where = f"messages[{at}]"
    return read_message(as_object(decoded(item, at), where), where, inputs(item))
