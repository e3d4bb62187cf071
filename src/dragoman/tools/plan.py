"""What is known of a request when its answer comes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from ..protocols.common.call_ids import IdRule
from ..protocols.common.tool_names import ToolNames
from .rules import Rules

Invalid = Literal["pass", "reask", "error"]


class ToolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the answer's calls are to be handled, and which tools they may mean."""

    names: ToolNames
    ids: IdRule
    undeclared: ToolNames | None = None
    """Makes the name of a tool that nobody declared legal for the client, who will have to answer for it."""
    seed: str
    mode: Literal["live", "whole"] = "live"
    same: bool = False
    """Both speak one protocol: a thought without words is theirs to have (OpenAI wants it back)."""
    serial: bool = False
    """The client wants one block after another: a call that is whole is ended when the next begins."""
    custom: bool = True
    """Does the client know freeform calls?"""
    rules: Rules = Rules()
    invalid: Invalid = "pass"
    """What becomes of a call that no rule could make fit its schema."""
    reask_attempts: int = 2
    search: str = ""
    """The name of the function whose calls Dragoman runs itself; empty: there is none."""
    stop: tuple[str, ...] = ()
    clock: Callable[[], float] | None = None
    unopened_thinking: bool = False


Numbers = Iterator[int]
"""Block numbers for the client: dense, in order of appearance."""
