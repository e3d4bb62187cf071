"""A conversation that goes on, for Chat: what was written of it before is JSON already.

It is held in pieces, each with the comma before its first message, up to places where nothing is left open:
every call has its result there, and what follows depends on nothing before it.
"""

from __future__ import annotations

import msgspec

from ....messages import Notice
from ...history import History
from ...listed import LATELY
from ...notices import Notices
from ...pieces import Whole, join_short
from ...turns import note_prefill
from .shared import NAME, Writing
from .write_messages import Conversation, Piece, packed, with_few_marks
from .write_plain import PlainWriter

_Stretch = tuple[int, list[Piece], tuple[Notice, ...]]
"""What was written from one place where nothing is left open to the next, after so many messages, and what
had to be said about it."""

_NOTE = f"written for {NAME}"
_encode = msgspec.json.Encoder().encode


class _Beginning(msgspec.Struct, frozen=True):
    """How a conversation was written, up to the last place where nothing was left open."""

    plain: PlainWriter
    settled: list[Piece]
    said: tuple[Notice, ...]
    """What had to be said about that."""
    count: int
    """So many messages of the list are in that."""
    late: list[_Stretch]
    """What was written since: the last few messages may come again a little different."""


def write_history(history: History, writing: Writing) -> Whole:
    """The list of messages."""
    written, answered = _gone_on(history, writing)
    if not (writing.own or answered):
        last = history.plain(len(history) - 1)
        if last is None or last.kind != "asked":
            note_prefill(history, writing.notices)
    if not writing.compatible:
        few = written if writing.own else with_few_marks(written, writing.notices)
        written = [one if isinstance(one, memoryview) else memoryview(b"," + _encode(one)) for one in few]
    first, *others = written or [memoryview(b",")]
    return Whole([b"[", first[1:], *others, b"]"])  # pyright: ignore[reportArgumentType, reportIndexIssue]


def _gone_on(history: History, writing: Writing) -> tuple[list[Piece], bool]:
    """All of it, from the last place on that was written before; and does it surely end with a result?"""
    key = (writing.key, history.leading)
    known, before = history.noted(_NOTE, key)
    if before is None or before.count > known:
        before = _Beginning(PlainWriter(writing), [], (), 0, [])
    late = [stretch for stretch in before.late if stretch[0] <= known]
    if before.said:
        writing.notices.again(before.said)
    for _, _, said in late:
        if said:
            writing.notices.again(said)
    count, size = late[-1][0] if late else before.count, len(history) - len(history.leading)
    answered, left = False, None
    # Usually nothing but whole turns follows.
    while 0 < count < size - 1:
        turns, count = before.plain.turns(history, count, max(count + 2, size - LATELY))
        if not turns:
            break
        late.append((count, packed(turns, 0, marks=False), ()))
        answered = True
    if count < size:
        conversation = Conversation(writing, before.plain)
        left = _others(conversation, history, count, late, writing.notices)
        answered = conversation.answered and left is None
    written = before.settled.copy()
    for _, pieces, _ in late:
        written += pieces
    if late:
        before = _settled(before, late, size - LATELY + 1)
        history.note(_NOTE, key, before, marks=not writing.compatible)
        history.forget(before.count)
    return written if left is None else written + left, answered


def _others(
    conversation: Conversation, history: History, count: int, late: list[_Stretch], notices: Notices
) -> list[Piece] | None:
    """Write what follows the first `count` messages of the list. What is settled becomes `late`; gives what
    follows that, None if nothing is left open."""
    leading, size, said = len(history.leading), len(history), len(notices)
    index, stop = leading + count if count else 0, size - LATELY
    while index < size:
        # What is no longer likely to come again different in one go, then turn by turn.
        index = conversation.go_on(history, index, max(index + 2, stop), size)
        # A conversation that goes on from here need not be written anew.
        if index >= stop and conversation.settled:
            pieces = conversation.packed(0 if count else history.room)
            late.append((index - leading, pieces, notices.since(said)))
            count, said = index - leading, len(notices)
    if leading + count == size:
        return None
    conversation.end(history)
    return conversation.packed()


def _settled(before: _Beginning, late: list[_Stretch], first: int) -> _Beginning:
    """With all that is no longer likely to come again different, which is up to the `first` messages, several
    turns at a time."""
    if before.count > 0 and first - before.count <= LATELY:
        return _Beginning(before.plain, before.settled, before.said, before.count, late)
    count, settled, said, at = before.count, before.settled, before.said, 0
    while at < len(late) and late[at][0] <= first:
        count, pieces, notices = late[at]
        settled, said = settled + pieces, said + notices
        join_short(settled)
        at += 1
    return _Beginning(before.plain, settled, said, count, late[at:])
