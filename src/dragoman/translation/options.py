"""The options of one answer, and the plan for its tool calls that follows from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

from ..protocols.base import AnswerContext, ClientProtocol
from ..protocols.common.tool_names import NameRule, ToolNames
from ..tools.plan import ToolPlan
from ..tools.rules import rules
from ..wire.frames import DEFAULT_MAX_FRAME


class Options(AnswerContext, frozen=True, kw_only=True):
    """How the client gets the answer. Every option has a default."""

    stream: bool = True
    mode: Literal["live", "whole"] = "live"
    id: str = "0"
    """The seed of generated ids: letters and digits."""
    created: int = 0
    model: str = ""
    """The model's name for the answer if the upstream sends none: the name in the client's request."""
    include_usage: bool = True
    issuer: str = ""
    stop: tuple[str, ...] = ()
    """Stop sequences that the upstream does not support. Dragoman ends the answer at the first match."""
    rules_off: frozenset[str] = frozenset()
    invalid: Literal["pass", "reask", "error"] = "pass"
    """What to do with a call that fits its schema under no rule. `reask` needs a caller that asks the model
    again (`Translation.rejected`, `Translation.again`)."""
    reask_attempts: int = 2
    search: str = ""
    """The name of the function whose calls the caller runs (`Translation.searches`); empty: there is none."""
    unopened_thinking: bool | None = None
    """Treat text before a lone `</think>` as thinking. That requires holding text back. None: only for
    clients that did not ask for a stream."""
    compact: bool = False
    """The answer is a summary. The client gets it as a compaction item (`translation/summary.py`)."""
    max_frame: int = DEFAULT_MAX_FRAME
    clock: Callable[[], float] | None = None
    """The time source for receipts. The core has no clock."""


def tool_plan(options: Options, client: ClientProtocol, names: ToolNames, *, same: bool) -> ToolPlan:
    """Build the plan for the answer's tool calls. `same`: client and upstream speak one protocol."""
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
        search=options.search,
        stop=options.stop,
        clock=options.clock,
        # A client that waits for the whole body does not notice that text is held back.
        unopened_thinking=not options.stream if unopened is None else unopened,
    )


@functools.lru_cache(maxsize=64)
def _no_tools(rule: NameRule) -> ToolNames:
    return ToolNames((), rule)
