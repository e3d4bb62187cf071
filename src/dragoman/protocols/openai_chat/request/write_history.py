"""A conversation that goes on, for Chat: what was written of it before is JSON already.

It is held in pieces, each with the comma before its first message, up to places where nothing is left open:
every call has its result there, and what follows depends on nothing before it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....messages import Message, Notice
from ...history import History
from ...listed import LATELY
from ...notices import Notices
from ...pieces import Whole, grown
from ...turns import note_prefill
from .shared import NAME, Writing
from .write_messages import Conversation, Piece, packed, with_few_marks
from .write_plain import PlainWriter

_TURN = 3
"""So many messages are one at most: a system's words, the model's, and the results of its calls."""
_NOTE = f"written for {NAME}"
_encode = msgspec.json.Encoder().encode


class _Stretch(msgspec.Struct, frozen=True):
    """What was written from one place where nothing is left open to the next."""

    count: int
    """After so many messages of the list."""
    pieces: list[Piece]
    notices: tuple[Notice, ...] = ()
    """What has to be said of it is said every time."""


class _Leading(msgspec.Struct, frozen=True):
    """What was written of the messages that stand elsewhere in the request. They may say the time of the day:
    the list is the same whatever that is."""

    messages: tuple[Message, ...]
    pieces: list[Piece]
    notices: tuple[Notice, ...]


class _Beginning(msgspec.Struct, frozen=True):
    """How a conversation was written, up to the last place where nothing was left open."""

    plain: PlainWriter
    leading: _Leading
    settled: _Stretch
    late: list[_Stretch]
    """What was written since: the last few messages may come again a little different."""


def write_history(history: History, writing: Writing) -> Whole:
    """The list of messages."""
    written = _gone_on(history, writing)
    if not writing.own:
        last = history.plain_at(history.size - 1)
        if last is None or last.kind == "said":
            note_prefill(history, writing.notices)
    if not writing.compatible:
        few = written if writing.own else with_few_marks(written, writing.notices)
        written = [one if isinstance(one, memoryview) else memoryview(b"," + _encode(one)) for one in few]
    first, *others = written or [memoryview(b",")]
    return Whole([b"[", first[1:], *others, b"]"])  # pyright: ignore[reportArgumentType, reportIndexIssue]


def _gone_on(history: History, writing: Writing) -> list[Piece]:
    """All of it, from the last place on that was written before."""
    key = writing.key
    known, before = _noted(history, writing, key)
    written = before.leading.pieces + before.settled.pieces
    late: list[_Stretch] = []
    for stretch in before.late:
        if stretch.count <= known:
            late.append(stretch)
            written += stretch.pieces
            if stretch.notices:
                writing.notices.again(stretch.notices)
    count, size = late[-1].count if late else before.settled.count, history.size
    # Usually nothing but whole turns follows.
    while 0 < count < size:
        turns, count = before.plain.turns(history, count, min(max(count + _TURN, size - LATELY), size))
        if not turns:
            break
        pieces = packed(turns, marks=False)
        late.append(_Stretch(count, pieces))
        written += pieces
    if count < size:
        written += _others(
            Conversation(writing, before.plain, packs=True), history, count, late, writing.notices
        )
    if late:
        before = _settled(before, late, size - LATELY + 1)
        history.note(_NOTE, key, before, marks=not writing.compatible)
        history.forget(before.settled.count)
    return written


def _noted(history: History, writing: Writing, key: Any) -> tuple[int, _Beginning]:
    """How it was written before, if it was, and how many messages of the list are still the same."""
    known, before = history.noted(_NOTE, key)
    if before is None or before.settled.count > known:
        return known, _Beginning(PlainWriter(writing), _leading(history, writing), _Stretch(0, []), [])
    if before.leading.messages != history.leading:
        before = msgspec.structs.replace(before, leading=_leading(history, writing))
    elif before.leading.notices:
        writing.notices.again(before.leading.notices)
    if before.settled.notices:
        writing.notices.again(before.settled.notices)
    return known, before


def _leading(history: History, writing: Writing) -> _Leading:
    said, conversation = len(writing.notices), Conversation(writing, packs=True)
    for index, message in enumerate(history.leading):
        conversation.add(message, history, index)
    conversation.end(history)
    return _Leading(history.leading, conversation.packed(), writing.notices.since(said))


def _others(
    conversation: Conversation, history: History, count: int, late: list[_Stretch], notices: Notices
) -> list[Piece]:
    """What follows the first `count` messages of the list. So much of it as is settled becomes `late`."""
    written: list[Piece] = []
    leading, size, said = len(history.leading), len(history), len(notices)
    index, stop = leading + count, size - LATELY
    while index < size:
        # What is no longer likely to come again different in one go, then turn by turn.
        index = conversation.go_on(history, index, max(index + 2, stop), size)
        # A conversation that goes on from here need not be written anew.
        if index >= stop and conversation.settled:
            pieces = conversation.packed()
            count = index - leading
            late.append(_Stretch(count, pieces, notices.since(said)))
            written += pieces
            said = len(notices)
    conversation.end(history)
    return written + conversation.packed()


def _settled(before: _Beginning, late: list[_Stretch], first: int) -> _Beginning:
    """With all that is no longer likely to come again different, which is up to the `first` messages, several
    turns at a time."""
    settled = before.settled
    if settled.count == 0 or first - settled.count > LATELY:
        old = [stretch for stretch in late if stretch.count <= first]
        if old:
            pieces = grown(settled.pieces, [piece for stretch in old for piece in stretch.pieces])
            notices = tuple(notice for stretch in (settled, *old) for notice in stretch.notices)
            settled, late = _Stretch(old[-1].count, pieces, notices), late[len(old) :]
    return _Beginning(before.plain, before.leading, settled, late)
