"""Plain messages for Chat, without a neutral message in between: the same as the long way would give.

All of a long history goes through here the first time it comes, so each message is looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import msgspec

from ....messages import Thinking
from ...history import History
from ...ids import for_upstream
from ...plain import BEYOND_STRINGS, Asked, Call, Plain, Result, Said, Told, arguments, joined, texts
from ...turns import ERROR_MARK, FAILED_SILENTLY
from . import reasoning
from .shared import Writing

Json = bytes | msgspec.Raw
"""Some of the JSON of messages without cache marks, each of which begins with a comma. Once all is there, it
is put together: so nothing is made for a message but what it does not have already."""

_SAID = b',{"role":"assistant","content":'
_NOTHING = b"null"
_FIRST_CALL, _NEXT_CALL = b',"tool_calls":[{"id":', b',{"id":'
_FUNCTION = b',"type":"function","function":{"name":'
_ARGUMENTS = b',"arguments":'
_CALL_ENDS, _CALLS_END = b"}}", b"]}"
_ANSWERED, _WITH = b',{"role":"tool","tool_call_id":', b',"content":'
_ASKED = b',{"role":"user","content":'
_TOLD = b',{"role":"system","content":'
_ENDS = b"}"
_CALLS_AND_ANSWERED = _CALL_ENDS + _CALLS_END + _ANSWERED

_encode = msgspec.json.Encoder().encode

_NO_WORDS = bytearray(b'""')
_FAILED = _encode(ERROR_MARK)[:-1]
_SILENTLY = _encode(ERROR_MARK + FAILED_SILENTLY)


class PlainWriter:
    """Writes the plain messages of one conversation; nothing that has to be said can happen to them."""

    def __init__(self, writing: Writing) -> None:
        self._own = writing.own
        self._compatible = writing.compatible
        self._rule = writing.ids
        # No longer ones, where that is all the upstream asks of an id.
        self._longest = writing.ids.longest if writing.ids.free else 0
        self._out = writing.names.out
        self._names: dict[str, bytes] = {}
        self._target = writing.target
        # What a turn with calls says of its thoughts where it has none.
        self._no_thoughts = reasoning.write((), writing.target, calls=True)

    def assistant(self, said: Said) -> tuple[list[Json], list[Call]]:
        """What the model said, which may be nothing, and its calls."""
        words: list[msgspec.Raw] = []
        thoughts: list[msgspec.Raw] = []
        calls: list[Call] = []
        written: list[Json] = []
        part: Any
        for part in said.content:
            kind = part.kind
            if kind == "words":
                words.append(part.text)
                continue
            if kind == "thoughts":
                thoughts.append(part.text)
                continue
            name = self._names.get(part.name) or self._name(part.name)
            # Some wires have them as a string already.
            given = part.input
            text = given if given < BEYOND_STRINGS else _encode(arguments(given))
            begins, id = _NEXT_CALL if calls else _FIRST_CALL, part.id
            legal = id if len(id) <= self._longest else for_upstream(id, self._rule)
            written += (begins, _encode(legal), _FUNCTION, name, _ARGUMENTS, text, _CALL_ENDS)
            calls.append(part)
        if not calls and not words:
            return [], calls
        spoken = words[0] if len(words) == 1 else self._content(words) if words else _NOTHING
        fields = self._reasoning(thoughts, calls=bool(calls)) if self._no_thoughts else b""
        return [_SAID, spoken, fields, *written, _CALLS_END if calls else _ENDS], calls

    def _reasoning(self, thoughts: Sequence[msgspec.Raw], *, calls: bool) -> bytes:
        """What a turn says of its thoughts, where that is wanted."""
        fields = self._no_thoughts if calls else {}
        if thoughts:
            fields = reasoning.write([Thinking(joined(thoughts, ""))], self._target, calls=calls)
        return b"," + _encode(fields)[1:-1] if fields else b""

    def turns(self, history: History, at: int, stop: int) -> tuple[list[Json], int]:
        """The turns of the history's list from `at` on that are whole: what the model said, and behind it the
        results of its calls, all in their order, and whatever the user says then; with the system's words
        between them; and nothing has cache marks that are to be written. Gives also where they end."""
        if self._own:
            return [], at  # what came over Chat goes back as it came
        (plain, first), usual = history.plain_ones(at), history.usual
        if not self._compatible:
            stop = min((place for place in history.marked if at <= place < stop), default=stop)
        written: list[Json] = []
        while at < stop:
            if at in usual and at + 1 < stop and not self._no_thoughts:
                at = self._usual_turns(plain, first, usual, at, stop, written)
                continue
            said = plain[at - first]
            if said is not None and said.kind == "told":
                written += self.told(said)
                at += 1
                continue
            asked = plain[at + 1 - first] if at + 1 < stop else None
            turn = self._turn(said, asked)
            if not turn:
                break
            written += turn
            at += 2
        return written, at

    def _usual_turns(
        self, plain: Sequence[Any], first: int, usual: Set[int], at: int, stop: int, written: list[Json]
    ) -> int:
        """Nearly all turns of an agent go through here, with few steps, and what the system says behind them.
        Gives where they end."""
        names, longest = self._names, self._longest
        while at + 1 < stop:
            if at not in usual:
                told = plain[at - first]
                if told is None or told.kind != "told":
                    break
                written += self.told(told)
                at += 1
                continue
            parts, content = plain[at - first].content, plain[at + 1 - first].content[0].content
            call = parts[-1]
            id = call.id
            json = _encode(id if len(id) <= longest else for_upstream(id, self._rule))
            written += (
                _SAID,
                parts[-2].text if len(parts) > 1 else _NOTHING,
                _FIRST_CALL,
                json,
                _FUNCTION,
                names.get(call.name) or self._name(call.name),
                _ARGUMENTS,
                _encode(arguments(call.input)),
                _CALLS_AND_ANSWERED,
                json,
                _WITH,
                content[0].text if content.__class__ is list else content,
                _ENDS,
            )
            at += 2
        return at

    def _turn(self, said: Plain | None, asked: Plain | None) -> Sequence[Json]:
        """Any whole turn; nothing if it is none."""
        if said is None or asked is None or said.kind != "said" or asked.kind != "asked":
            return ()
        parts, results = said.content, asked.content
        if len(parts) == len(results) == 1:
            spoken, question = parts[0], results[0]
            if spoken.kind == "words" and question.kind == "words":
                return _SAID, spoken.text, _ENDS, _ASKED, question.text, _ENDS
        written, calls = self.assistant(said)
        for call, result in zip(calls, results, strict=False):
            if result.kind != "result" or result.call_id != call.id:
                return ()
            written += self.answer(result)
        if len(results) == len(calls) > 0:
            return written
        behind = results[len(calls) :]
        words = texts(behind)
        if len(results) < len(calls) or len(words) < len(behind):
            return ()
        written += (_ASKED, self._content(words), _ENDS)
        return written

    def answer(self, result: Result) -> Sequence[Json]:
        content: Any = result.content
        if result.is_error:
            content = self._failure(result)
        elif content.__class__ is list and len(content) == 1:
            content = content[0].text
        elif content.__class__ is not msgspec.Raw:
            content = self._content(texts(content))
        id = result.call_id
        legal = id if len(id) <= self._longest else for_upstream(id, self._rule)
        return _ANSWERED, _encode(legal), _WITH, content, _ENDS

    def _failure(self, result: Result) -> Json:
        """What a function that failed answered, marked as the long way marks it."""
        content: Any = result.content
        words = texts(content)
        if not words or (content.__class__ is msgspec.Raw and content == _NO_WORDS):
            return _SILENTLY
        words[0] = msgspec.Raw(b"".join((_FAILED, memoryview(words[0])[1:])))
        return self._content(words)

    def told(self, told: Told) -> Sequence[Json]:
        content: Any = told.content
        return _TOLD, self._content(texts(content)) if content.__class__ is list else content, _ENDS

    def question(self, asked: Asked) -> Sequence[Json]:
        """What the user says beside results; nothing if there are only those."""
        words = texts(asked.content)
        return (_ASKED, self._content(words), _ENDS) if words or not asked.content else ()

    def _name(self, name: str) -> bytes:
        known = self._names[name] = _encode(self._out(name))
        return known

    def _content(self, words: Sequence[msgspec.Raw]) -> Json:
        """Like `content_of`, of nothing but words."""
        if len(words) == 1:
            return words[0]
        if not words or self._compatible:
            return _encode(joined(words, "\n\n"))
        return _encode([{"type": "text", "text": text} for text in words])


def together(messages: Sequence[Plain | None]) -> Said | None:
    """What the model said in neighbouring messages, as one; None if not all of them are plain."""
    content: list[Any] = []
    for message in messages:
        if message is None or message.kind != "said":
            return None
        content += message.content
    return Said(content)
