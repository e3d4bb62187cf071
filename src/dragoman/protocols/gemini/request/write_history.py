"""The system prompts and the conversation; of one that goes on, what was written before is JSON already."""

from __future__ import annotations

from collections.abc import Callable

from ....messages import Message, Request
from ...base import Target
from ...fields import Obj
from ...history import History
from ...names import ToolNames
from ...notices import Notices
from ...pieces import Whole
from ...stretches import Beginning, Stretches, listed
from ...turns import note_prefill
from .carry import Carrier, leading_prompts, refuse_nothing
from .keys import GEMINI
from .models import signs_calls
from .write_contents import ContentWriter

Contents = Callable[[], list[Obj] | Whole]
"""Writes the contents. What has to be said of their shape comes after what is said of the tools."""

_STRETCHES = Stretches[dict[str, str]](f"written for {GEMINI}", dict[str, str].copy)


def split(
    request: Request, target: Target, names: ToolNames, notices: Notices, *, own: bool
) -> tuple[list[Message], Contents]:
    """The system prompts at the beginning, and the conversation after them."""
    messages = request.messages
    # To refuse the first thing that is wrong with a conversation, all of it must be at hand.
    if type(messages) is History and not (own or target.strict):
        return _gone_on(messages, target, names, notices)
    system, conversation = Carrier(target, notices).split(messages)
    writer = ContentWriter(target, names, notices, {})
    if own:
        return system, lambda: writer.one_by_one(conversation)
    return system, lambda: writer.turns(conversation, notices)


def _gone_on(
    history: History, target: Target, names: ToolNames, notices: Notices
) -> tuple[list[Message], Contents]:
    """A conversation of which perhaps something was written before."""
    leading = leading_prompts(history)
    # What is said of all parts comes before what is said of all turns, and so on.
    said = of_parts, of_turns, of_contents = [Notices(strict=False) for _ in range(3)]
    carrier = Carrier(target, of_parts)

    def write(start: int, stop: int, called: dict[str, str]) -> list[Obj]:
        carried = carrier.messages(history, range(start, stop))
        return ContentWriter(target, names, of_contents, called).turns(carried, of_turns)

    key = (
        *(target.issuer, target.ids, signs_calls(target.model), names.number),
        *(leading, len(history.leading)),
    )
    settled, late = _STRETCHES.write(history, key, Beginning(leading, [], (), {}), said, write)
    refuse_nothing(settled or late)
    notices.again(of_parts.all())
    note_prefill(history, notices)

    def contents() -> list[Obj] | Whole:
        notices.again(of_turns.all())
        notices.again(of_contents.all())
        return listed(settled, late)

    return list(history[:leading]), contents
