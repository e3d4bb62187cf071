"""The facts about a request that the tool stage needs for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from ..protocols.common.call_ids import IdRule
from ..protocols.common.tool_names import ToolNames
from .rules import Rules

Invalid = Literal["pass", "reask", "error"]


class ToolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to handle the calls of an answer, and which tools they may mean."""

    names: ToolNames
    ids: IdRule
    undeclared: ToolNames | None = None
    """Makes the name of an undeclared tool legal for the client, which must send the name back later."""
    seed: str
    mode: Literal["live", "whole"] = "live"
    same: bool = False
    """Client and upstream speak the same protocol. Then empty reasoning passes too: OpenAI wants it back."""
    serial: bool = False
    """The client wants one block at a time: a complete call ends when the next block begins."""
    custom: bool = True
    """Whether the client knows freeform calls."""
    rules: Rules = Rules()
    invalid: Invalid = "pass"
    """What happens to a call that fits no schema, even after mending."""
    reask_attempts: int = 2
    stop: tuple[str, ...] = ()
    clock: Callable[[], float] | None = None
    unopened_thinking: bool = False


Numbers = Iterator[int]
"""Block numbers for the client: without gaps, in order of appearance."""
