"""What is done about an agent that goes in circles. The history itself says how often it went round.

By default it is only noticed. A note for the model, or an end, are asked for by number. The note is words
at the end of the last turn, so that every call keeps its result and every result its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import msgspec

from ..errors import BadRequest
from ..messages import Message, Request, Text, ToolCall, ToolResult
from ..protocols.history import History
from ..protocols.plain import Call, Result, arguments, joined, texts
from .loops import Repetition, Turn, canonical, repeated

_decode = msgspec.json.Decoder().decode

_Answered = tuple[ToolCall | Call, ToolResult | Result]

# Usually the last few calls tell that there is no circle: three of them, if they are the last.
_FEW = 6
_LATELY = 16
# Bytes of a result, which may have been cut in the middle of `\u003c` or of `\/`.
_HEAD = 64
_NOTE = "how the last results begin"
"""Of the last three, or of all since one that nobody knows: where each stands, and how it begins."""


def noticed(request: Request) -> Repetition | None:
    """The circle the conversation ends in, if it ends in one."""
    messages = request.messages
    if type(messages) is History and _gets_somewhere(messages):
        return None
    size = len(messages)
    if size < 2:
        return None  # a call and its result are two
    few = Answers(messages, max(0, size - _FEW))
    if few.tell and not few.may_repeat():
        return None
    for start in (max(0, size - _LATELY), 0):
        history = Answers(messages, start)
        found = repeated(history) if history.may_repeat() else None
        if found is None or found.count * len(found.turns) + len(found.turns) < len(history):
            return found  # it begins within what was looked at
    return found


def guarded(request: Request, found: Repetition, *, note_after: int = 0, stop_after: int = 0) -> Request:
    """`request`, with a note where it has gone round too often; refused where it has gone on for too long."""
    tools = " and ".join(dict.fromkeys(name for name, _, _ in found.turns))
    if stop_after and found.count >= stop_after:
        message = (
            f"{tools} was called {found.count} times with the same arguments and the same result; "
            "stopped here (tools.loops.stop_after)"
        )
        raise BadRequest(message)
    if not note_after or found.count < note_after:
        return request
    note = (
        f"[{tools} has now been called {found.count} times with the same arguments and gave the same result "
        "each time. Calling it again will not change that: do something else, or say what is missing.]"
    )
    *before, last = request.messages
    noted = Message(last.role, (*last.parts, Text(note)), last.name)
    return request.changed(messages=(*before, noted))


def _gets_somewhere(history: History) -> bool:
    """Is the last result surely another one than the two before it? Of most conversations that is seen
    without a look at their calls, and of one that goes on, without a look at what was there before."""
    start, lately = history.noted(_NOTE, None)
    if not start or (lately and lately[-1][0] >= start):
        start, lately = max(0, len(history) - len(history.leading) - _FEW), ()
    unusual = history.unusual()
    for at, plain in enumerate(history.plain_ones(start)[start:], start):
        if plain is None:
            lately = ()  # it may hold results as well
        elif plain.kind == "asked" and plain.content.__class__ is not str:
            part: Any
            for part in plain.content:
                if part.kind == "result":
                    lately = (*lately[-2:], (at, _beginning(part.content)))
                    if unusual and _is_strange(part.call_id, history):
                        lately = ()
    history.note(_NOTE, None, lately)
    if len(lately) < 3:
        return False
    (_, first), (_, second), (_, last) = lately
    return last not in (first, second) and first.__class__ is second.__class__ is last.__class__


def _is_strange(call: str, history: History) -> bool:
    """What answers a call of a kind nobody knows is not counted. Of one in a message that was changed the
    place is not known."""
    at = history.calls.get(call)
    return at is None or at in history.unusual()


def _beginning(content: Any) -> str | bytes | None:
    """What a result says, or the first of that as JSON; nothing where that does not tell it from others.

    A text in JSON has one spelling, but for what is escaped by number or without need. So two that begin
    differently are not the same, and need not be read.
    """
    if content.__class__ is str:
        return content
    if len(content) != 1 or content[0].kind != "words":
        return None
    head = memoryview(content[0].text)[:_HEAD].tobytes()
    spelled_otherwise = head.find(b"\\u") >= 0 or head.find(b"\\/") >= 0 or head.endswith(b"\\")
    return None if spelled_otherwise else head


class Answers(Sequence[Turn]):
    """The calls of a conversation that were answered, in the order of their answers.

    Usually the last few tell that there is no circle, so each is put into words only when it is asked for.
    """

    def __init__(self, messages: Sequence[Message], start: int = 0) -> None:
        self._calls: dict[str, ToolCall | Call] = {}
        self._answered: list[_Answered] = []
        self._stray = False
        """Is there a result of a call from before `start`, or of none?"""
        if type(messages) is History:
            self._add_history(messages, start)
        else:
            for message in messages[start:]:
                self._add(message)

    def _add_history(self, history: History, start: int) -> None:
        for index, plain in enumerate(history.plains(start), start):
            if plain is None:
                self._add(history[index])
                continue
            parts: Any = plain.content
            if parts.__class__ is str:
                continue
            if plain.kind == "said":
                for part in parts:
                    if part.kind == "call":
                        self._calls[part.id] = part
            else:
                for part in parts:
                    if part.kind == "result":
                        self._answer(part.call_id, part)

    def _add(self, message: Message) -> None:
        for part in message.parts:
            # By the class itself: to ask whether a struct is one of another class takes ten times as long.
            if type(part) is ToolCall:
                self._calls[part.id] = part
            elif type(part) is ToolResult:
                self._answer(part.call_id, part)

    def _answer(self, id: str, result: ToolResult | Result) -> None:
        call = self._calls.get(id)
        if call is None:
            self._stray = True
        else:
            self._answered.append((call, result))

    @property
    def tell(self) -> bool:
        """Does what `may_repeat` looks at stay the same, however much earlier the start is?"""
        return len(self._answered) >= 3 and not self._stray

    def may_repeat(self) -> bool:
        """Is the last call, with its result, like the one before, or the one before that?"""
        late = self._answered[-3:]
        last = late.pop() if late else None
        if last is None:
            return False
        name = last[0].name
        alike = [other for other in late if other[0].name == name]
        return bool(alike) and _may_be_among(last, alike)

    def __len__(self) -> int:
        return len(self._answered)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> list[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | list[Turn]:
        if isinstance(index, slice):
            return [_turn(*answered) for answered in self._answered[index]]
        return _turn(*self._answered[index])


def _may_be_among(one: _Answered, others: list[_Answered]) -> bool:
    """Is it like one of the others, which are of the same name? Told by what is at hand: of most calls the
    results need not be read."""
    call, result = one
    given = _given(call) if call.kind == "call" else None
    for before, answer in others:
        if given is not None and before.kind == "call" and given != _given(before):
            continue
        if _words(result) == _words(answer):
            return True
    return False


def _turn(call: ToolCall | Call, result: ToolResult | Result) -> Turn:
    given = call.arguments if isinstance(call, ToolCall) else arguments(call.input)
    return call.name, canonical(given), _words(result)


def _given(call: Call) -> Any:
    """What it was called with, in whatever order."""
    try:
        return _decode(call.input)
    except msgspec.ValidationError:
        return canonical(arguments(call.input))  # a number that is too large for everybody


def _words(result: ToolResult | Result) -> str:
    if isinstance(result, Result):
        return joined(texts(result.content), "\n")
    return "\n".join(part.text or "" for part in result.parts)
