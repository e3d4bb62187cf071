"""What is done about an agent that goes in circles. The history itself says how often it went round.

By default it is only noticed. A note for the model, or an end, are asked for by number. The note is words
at the end of the last turn, so that every call keeps its result and every result its call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import msgspec

from ..errors import BadRequest
from ..messages import Message, Request, Text, ToolCall, ToolResult
from ..protocols.history import History
from ..protocols.plain import Call, Result, called_with, joined, texts
from .loops import Repetition, Turn, canonical, repeated

_decode = msgspec.json.Decoder().decode

_Answered = tuple[ToolCall | Call, ToolResult | Result]

# Messages. Usually the last few tell that there is no circle: a call and its result are two.
_FEW = 6
_LATELY = 16
# Bytes of a result, which may have been cut in the middle of `\u003c` or of `\/`.
_HEAD = 64
_NOTE = "the last results"


class _Late(msgspec.Struct):
    """One of the last results."""

    at: int
    """The place of its message."""
    id: str
    """Of the call that it answers; empty where that is not known, or where there may be several."""
    begins: bytes | None = None
    """How it begins; None where that does not tell it from others."""
    called: tuple[str, Any] | None = None
    """Which function was called, and with what, once somebody asked."""


def noticed(request: Request) -> Repetition | None:
    """The circle the conversation ends in, if it ends in one."""
    messages = request.messages
    if type(messages) is History and _gets_somewhere(messages):
        return None
    found = None
    for start in _starts(messages):
        history = Answers(messages, start)
        may_repeat = history.may_repeat()
        found = repeated(history) if may_repeat else None
        if history.tell(
            3 if not may_repeat else 4 if found is None else (found.count + 1) * len(found.turns)
        ):
            break  # it begins within what was looked at
    return found


def _starts(messages: Sequence[Message]) -> Iterator[int]:
    """Where to begin to look: the less is looked at the better, and what has to be read again comes last."""
    size, at_hand = len(messages), messages.at_hand if type(messages) is History else 0
    for count in (_FEW, _LATELY):
        start = max(size - count, at_hand)
        if start > 0:
            yield start
    yield 0


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
    """Is the last result surely another one than the two before it, or surely one of another call? Of most
    conversations the first is seen without a look at their calls, and of one that goes on, without a look at
    what was there before."""
    late = _late_results(history)
    if not late:
        return True
    *others, last = late
    for other in others:
        may_be_the_same = other.begins == last.begins or other.begins.__class__ is not last.begins.__class__
        if may_be_the_same and not _are_other_calls(last, other, history):
            return False
    return last.id != ""


def _late_results(history: History) -> tuple[_Late, ...]:
    """The last three results; fewer only if there are no others."""
    start, before = history.noted(_NOTE, None)
    if not start or (before and before[-1].at >= start):
        start, before = 0, ()
    at = history.size
    found: list[_Late] = []
    unusual = history.unusual()
    while at > start and len(found) < 3:
        at -= 1
        plain = history.plain_at(at)
        if plain is None:
            found.append(_Late(at, ""))  # it may hold results as well
            break
        if plain.kind == "asked":
            part: Any
            for part in reversed(plain.content):
                if part.kind == "result":
                    strange = unusual and _is_strange(part.call_id, history)
                    found.append(
                        _Late(at, "") if strange else _Late(at, part.call_id, _beginning(part.content))
                    )
    late = (*before, *reversed(found))[-3:]
    history.note(_NOTE, None, late)
    return late


def _are_other_calls(one: _Late, other: _Late, history: History) -> bool:
    """Do two results surely answer calls that do not say the same?"""
    for late in (one, other):
        if late.called is None:
            late.called = _called(late, history)
    return one.called is not None and other.called is not None and one.called != other.called


def _called(late: _Late, history: History) -> tuple[str, Any] | None:
    """What a result answers, if that is said right before it, and at hand."""
    place = late.at - 1
    said = history.plain_at(place) if late.id and len(history.leading) + place >= history.at_hand else None
    if said is None or said.kind != "said":
        return None
    part: Any
    for part in reversed(said.content):
        if part.kind == "call" and part.id == late.id:
            return part.name, _given(part)
    return None


def _is_strange(call: str, history: History) -> bool:
    """What answers a call of a kind nobody knows is not counted. Of one in a message that was changed the
    place is not known."""
    at = history.calls.get(call)
    return at is None or at in history.unusual()


def _beginning(content: Any) -> bytes | None:
    """The first of what a result says, as JSON; nothing where that does not tell it from others.

    A text in JSON has one spelling, but for what is escaped by number or without need. So two that begin
    differently are not the same, and need not be read.
    """
    if content.__class__ is list:
        if len(content) != 1 or content[0].kind != "words":
            return None
        content = content[0].text
    head = memoryview(content)[:_HEAD].tobytes()
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
            if plain.kind == "said":
                for part in parts:
                    if part.kind == "call":
                        self._calls[part.id] = part
            elif plain.kind == "asked":
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

    def tell(self, needed: int) -> bool:
        """Are the last ones so many as `needed`, however much earlier the start is?"""
        return len(self._answered) >= needed and not self._stray

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
    given = call.arguments if isinstance(call, ToolCall) else called_with(call.input)
    return call.name, canonical(given), _words(result)


def _given(call: Call) -> Any:
    """What it was called with, in whatever order."""
    try:
        given = _decode(call.input)
        return _decode(given) if given.__class__ is str else given
    except msgspec.DecodeError:
        return canonical(called_with(call.input))  # a number that is too large for everybody, or no JSON


def _words(result: ToolResult | Result) -> str:
    if isinstance(result, Result):
        return joined(texts(result.content), "\n")
    return "\n".join(part.text or "" for part in result.parts)
