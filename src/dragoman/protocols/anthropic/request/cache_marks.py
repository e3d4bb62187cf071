"""Cache marks for clients that set none: Anthropic caches only what is marked.

A mark after a block stores the prompt up to there, and a later request reads it if it has a mark at the same
place, or within twenty blocks behind it. Four marks are allowed:

- after the tools and after the system prompt, which are the same in every turn;
- after the last turn of the user, so that the next request can read all of this one;
- after the user's turn before it, where the request before this one had its last mark. An answer may add
  more than twenty blocks, so the distance alone does not find it.

A request is written the same way each time, so only the marks move from turn to turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import Cache
from ...common import cache_breakpoints
from ...common.fields import Obj, is_array
from ...common.notices import Notices
from .write_blocks import cache_control

_TURNS = cache_breakpoints.MAX_BREAKPOINTS - 2


def mark_request(notices: Notices) -> Obj:
    """One mark for the whole request, at its last block: the client's own blocks stay as they are."""
    cache_breakpoints.note_added("one mark for the whole request", notices)
    return cache_control(Cache())


def mark_prompt(
    tools: list[Obj], system: list[Obj], messages: list[Any], notices: Notices
) -> tuple[list[Obj], list[Obj], list[Any]]:
    """Add up to four marks to the prompt."""
    places = [name for name, blocks in (("tools", tools), ("system", system)) if blocks]
    turns = [at for at, turn in enumerate(messages) if turn["role"] == "user" and is_array(turn["content"])]
    last = turns[-_TURNS:]
    marked = [
        turn | {"content": _with_mark(turn["content"])} if at in last else turn
        for at, turn in enumerate(messages)
    ]
    places += [f"messages[{at}]" for at in last]
    cache_breakpoints.note_added(f"marks after {', '.join(places)}", notices)
    return _with_mark(tools), _with_mark(system), marked


def _with_mark(blocks: Sequence[Obj]) -> list[Obj]:
    """A copy: a block may be the client's own."""
    return [*blocks[:-1], blocks[-1] | {"cache_control": cache_control(Cache())}] if blocks else []
