"""A conversation that goes on, for Responses: what was written of it before is JSON already."""

from __future__ import annotations

from ....messages import Request
from ... import breakpoints
from ...base import Target
from ...fields import Obj
from ...history import History
from ...names import ToolNames
from ...notices import Notices
from ...pieces import Whole
from ...stretches import Beginning, Stretches, listed
from ...turns import note_prefill
from ..items import NAME
from .write_items import ItemWriter, answered, call_kinds
from .write_parts import PartWriter


class _AnsweredLate(Exception):
    """A call has a result after all, though it was written that it has none."""


class _Calls:
    """What is known of the calls so far."""

    def __init__(self) -> None:
        self.answered: set[str] = set()
        self.missing: set[str] = set()
        """These got a result that says that there is none."""

    def copied(self) -> _Calls:
        other = _Calls()
        other.answered, other.missing = self.answered.copy(), self.missing.copy()
        return other


_STRETCHES = Stretches(f"written for {NAME}", _Calls.copied)


def write_input(
    request: Request, target: Target, names: ToolNames, notices: Notices, leading: int
) -> list[Obj] | Whole:
    """Another protocol's messages behind the first ones, so many of which are `leading`."""
    messages = request.messages
    # Chat's file ids are of the same provider, as far as anybody can tell.
    own_files = request.raw is not None and request.raw.protocol == "openai-chat"
    if type(messages) is History and not _is_picky(messages, target):
        try:
            return _gone_on(messages, target, names, notices, leading, own_files=own_files)
        except _AnsweredLate:
            pass
    writer = ItemWriter(messages, target, names, notices, call_kinds(messages))
    return writer.anew(PartWriter(notices, own_files), leading)


def _gone_on(
    history: History, target: Target, names: ToolNames, notices: Notices, leading: int, *, own_files: bool
) -> list[Obj] | Whole:
    """A conversation of which perhaps something was written before."""
    said = Notices(strict=False)
    # The results of a history tell themselves of which kind they are.
    writer, parts = ItemWriter(history, target, names, said, {}), PartWriter(said, own_files)

    def write(start: int, stop: int, calls: _Calls) -> list[Obj]:
        ahead = answered(history[start:])
        if not calls.missing.isdisjoint(ahead):
            raise _AnsweredLate
        items, missing = writer.stretch(parts, range(start, stop), calls.answered | ahead)
        calls.missing.update(call.id for call in missing)
        calls.answered |= answered(history[start:stop])
        return items

    key = (target.issuer, target.ids, names.number, leading, len(history.leading), own_files)
    written = _STRETCHES.write(history, key, Beginning(leading, [], (), _Calls()), (said,), write)
    notices.again(said.all())
    note_prefill(history, notices)
    return listed(*written)


def _is_picky(history: History, target: Target) -> bool:
    """Must all of it be at hand: to refuse the first thing that is wrong with it, or because there may be
    more marks than are allowed, so that some have to go?"""
    return target.strict or breakpoints.marks_on(history) > breakpoints.MOST
