"""Plain messages for Chat, without a neutral message in between: the same as the long way would give.

All of a long history goes through here the first time it comes, so each message is looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import msgspec

from ....messages import Text, Thinking, ToolResult
from ...fields import Obj
from ...history import History
from ...ids import for_upstream
from ...plain import BEYOND_STRINGS, Asked, Call, Plain, Result, Said, Told, arguments, joined, texts
from ...turns import marked_parts
from . import reasoning
from .shared import Writing


class _Function(msgspec.Struct, frozen=True, gc=False):
    name: str
    arguments: str | msgspec.Raw


class _ToolCall(msgspec.Struct, frozen=True, gc=False):
    """One of `tool_calls`, in the order of the members that the long way gives it."""

    id: str
    type: str
    function: _Function


class Calling(msgspec.Struct, tag_field="role", tag="assistant", frozen=True, gc=False):
    """What the model said with its calls. The collector has nothing to do with such a message, as it would
    with a dict."""

    content: Any
    tool_calls: list[_ToolCall]


class Answer(msgspec.Struct, tag_field="role", tag="tool", frozen=True, gc=False):
    """What a function answered."""

    tool_call_id: str
    content: Any


Written = Calling | Answer
"""Messages that have no cache marks."""


class PlainWriter:
    """Writes the plain messages of one conversation; nothing that has to be said can happen to them."""

    def __init__(self, writing: Writing) -> None:
        self._own = writing.own
        self._compatible = writing.compatible
        self._rule = writing.ids
        # No longer ones, where that is all the upstream asks of an id.
        self._longest = writing.ids.longest if writing.ids.free else 0
        self._out = writing.names.out
        self._names: dict[str, str] = {}
        self._target = writing.target
        # What a turn with calls says of its thoughts where it has none.
        self._no_thoughts = reasoning.write((), writing.target, calls=True)

    def assistant(self, said: Said) -> tuple[Obj | Written | None, list[Call]]:
        """What the model said, None if that is nothing, and its calls."""
        content: Any = said.content
        if content.__class__ is str:
            return ({"role": "assistant", "content": content} if content else None), []
        words: list[msgspec.Raw] = []
        thoughts: list[msgspec.Raw] = []
        calls: list[Call] = []
        written: list[_ToolCall] = []
        for part in content:
            if part.kind == "words":
                words.append(part.text)
                continue
            if part.kind == "thoughts":
                thoughts.append(part.text)
                continue
            calls.append(part)
            name = self._names.get(part.name) or self._name(part.name)
            # Some wires have them as a string already.
            given = part.input
            function = _Function(name, given if given < BEYOND_STRINGS else arguments(given))
            id = part.id
            legal = id if len(id) <= self._longest else for_upstream(id, self._rule)
            written.append(_ToolCall(legal, "function", function))
        text = words[0] if len(words) == 1 else self._content(words) if words else None
        if not calls:
            said_so: Obj = {"role": "assistant", "content": text, **self._reasoning(thoughts, calls=False)}
            return (said_so if words else None), calls
        if self._no_thoughts:
            fields = self._reasoning(thoughts, calls=True)
            return {"role": "assistant", "content": text, **fields, "tool_calls": written}, calls
        return Calling(text, written), calls

    def _reasoning(self, thoughts: Sequence[msgspec.Raw], *, calls: bool) -> Obj:
        """What a turn says of its thoughts, if that is wanted."""
        if not self._no_thoughts or not thoughts:
            return self._no_thoughts if calls else {}
        return reasoning.write([Thinking(joined(thoughts, ""))], self._target, calls=calls)

    def turns(self, history: History, at: int, stop: int) -> tuple[list[Obj | Written], int]:
        """The turns of the history's list from `at` on that are whole: what the model said, and behind it the
        results of its calls, all in their order, and whatever the user says then; with the system's words
        between them; and nothing has cache marks that are to be written. Gives also where they end."""
        if self._own:
            return [], at  # what came over Chat goes back as it came
        (plain, first), usual = history.plain_ones(at), history.usual
        if not self._compatible:
            stop = min((place for place in history.marked if at <= place < stop), default=stop)
        written: list[Obj | Written] = []
        while at < stop:
            if at in usual and at + 1 < stop and not self._no_thoughts:
                at = self._usual_turns(plain, first, usual, at, stop, written)
                continue
            said = plain[at - first]
            if said is not None and said.kind == "told":
                written.append(self.told(said))
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
        self,
        plain: Sequence[Any],
        first: int,
        usual: Set[int],
        at: int,
        stop: int,
        written: list[Obj | Written],
    ) -> int:
        """Nearly all turns of an agent go through here, with few steps. Gives where they end."""
        names, longest = self._names, self._longest
        while at in usual and at + 1 < stop:
            parts, content = plain[at - first].content, plain[at + 1 - first].content[0].content
            call = parts[-1]
            id = call.id
            legal = id if len(id) <= longest else for_upstream(id, self._rule)
            function = _Function(names.get(call.name) or self._name(call.name), arguments(call.input))
            text = parts[0].text if len(parts) == 2 else None
            written.append(Calling(text, [_ToolCall(legal, "function", function)]))
            written.append(Answer(legal, content[0].text if content.__class__ is list else content))
            at += 2
        return at

    def _turn(self, said: Plain | None, asked: Plain | None) -> Sequence[Obj | Written]:
        """Any whole turn; nothing if it is none."""
        if said is None or asked is None or said.kind != "said" or asked.kind != "asked":
            return ()
        message, calls = self.assistant(said)
        written: list[Obj | Written] = [message] if message is not None else []
        results: Any = asked.content
        if results.__class__ is str:
            return () if calls else [*written, {"role": "user", "content": results}]
        for call, result in zip(calls, results, strict=False):
            if result.kind != "result" or result.call_id != call.id:
                return ()
            written.append(self.answer(result))
        behind = results[len(calls) :]
        words = texts(behind)
        if len(results) < len(calls) or len(words) < len(behind):
            return ()
        if words or not results:
            written.append({"role": "user", "content": self._content(words)})
        return written

    def answer(self, result: Result) -> Answer:
        content: Any = result.content
        if result.is_error:
            content = self._failure(result)
        elif content.__class__ is list:
            content = content[0].text if len(content) == 1 else self._content(texts(content))
        id = result.call_id
        legal = id if len(id) <= self._longest else for_upstream(id, self._rule)
        return Answer(legal, content)

    def _failure(self, result: Result) -> Any:
        """What a function that failed answered, marked as the long way marks it."""
        content: Any = result.content
        words = [joined([text], "") for text in texts(content)]
        if content.__class__ is not list and words == [""]:
            words = []
        parts = tuple(map(Text, words))
        failed = marked_parts(ToolResult(call_id=result.call_id, parts=parts, is_error=True))
        return self._content([part.text or "" for part in failed])

    def told(self, told: Told) -> Obj:
        content: Any = told.content
        return {
            "role": "system",
            "content": self._content(texts(content)) if content.__class__ is list else content,
        }

    def question(self, asked: Asked) -> Obj | None:
        """What the user says beside results; None if there are only those."""
        content = asked.content
        if isinstance(content, str):
            return {"role": "user", "content": content}
        words = texts(content)
        return {"role": "user", "content": self._content(words)} if words or not content else None

    def _name(self, name: str) -> str:
        known = self._names[name] = self._out(name)
        return known

    def _content(self, words: Sequence[str | msgspec.Raw]) -> Any:
        """Like `content_of`, of nothing but words."""
        if len(words) == 1:
            return words[0]
        if not words or self._compatible:
            return joined(words, "\n\n")
        return [{"type": "text", "text": text} for text in words]


def together(messages: Sequence[Plain | None]) -> Said | None:
    """What the model said in neighbouring messages, as one; None if not all of them are plain."""
    content: list[Any] = []
    for message in messages:
        if message is None or message.kind != "said":
            return None
        if message.content.__class__ is str:
            return None  # words that were read already stand alone nearly always
        content += message.content
    return Said(content)
