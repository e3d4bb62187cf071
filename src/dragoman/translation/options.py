"""How one answer is to be given, and what its tool calls are to go through because of that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

from ..protocols.base import ClientProtocol, Minted
from ..protocols.common.tool_names import NameRule, ToolNames
from ..tools.plan import ToolPlan
from ..tools.rules import rules
from ..wire.frames import DEFAULT_MAX_FRAME


class Options(Minted, frozen=True, kw_only=True):
    """How an answer is to be given. Everything has a sensible default."""

    stream: bool = True
    mode: Literal["live", "whole"] = "live"
    id: str = "0"
    """Seeds every id that is made up; letters and digits."""
    created: int = 0
    model: str = ""
    """What the client asked for, where the upstream does not say what it used."""
    include_usage: bool = True
    issuer: str = ""
    stop: tuple[str, ...] = ()
    """Stop sequences to emulate."""
    rules_off: frozenset[str] = frozenset()
    invalid: Literal["pass", "reask", "error"] = "pass"
    """What becomes of a call that no rule could make fit its schema. `reask` needs a caller that does it."""
    reask_attempts: int = 2
    unopened_thinking: bool | None = None
    """Treat text before a lone `</think>` as thinking. None: only where nothing has to be held for it."""
    compact: bool = False
    """The answer is a summary: the client gets it as the compaction of its conversation."""
    max_frame: int = DEFAULT_MAX_FRAME
    clock: Callable[[], float] | None = None
    """Gives receipts their times. The core itself has no clock."""


def planned(options: Options, client: ClientProtocol, names: ToolNames, *, same: bool) -> ToolPlan:
    """The plan for the answer's calls; `same`: both sides speak one protocol."""
    unopened = options.unopened_thinking
    return ToolPlan(
        names=names,
        ids=client.ids,
        undeclared=_no_tools(client.names),
        seed=options.id,
        mode=options.mode,
        same=same,
        serial=client.serial,
        custom=client.names.custom,
        rules=rules(options.rules_off),
        invalid=options.invalid,
        reask_attempts=options.reask_attempts,
        stop=options.stop,
        clock=options.clock,
        # A client that waits for the whole answer loses nothing by it.
        unopened_thinking=not options.stream if unopened is None else unopened,
    )


@functools.lru_cache(maxsize=64)
def _no_tools(rule: NameRule) -> ToolNames:
    return ToolNames((), rule)
