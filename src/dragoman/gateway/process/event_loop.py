"""The event loop of the gateway: uvloop if it is installed, else asyncio's own.

A streamed answer is many small reads and writes, so much of its cost is the loop. uvloop is compiled and
makes each of them cheaper. No other code depends on the choice.

On Windows it is the selector loop: the HTTP client needs a loop that can watch sockets, and the proactor loop
cannot.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

VARIABLE = "DRAGOMAN_LOOP"
"""Environment variable: the value `asyncio` turns uvloop off."""


def new() -> asyncio.AbstractEventLoop:
    if os.environ.get(VARIABLE) != "asyncio":
        try:
            import uvloop
        except ImportError:  # uvloop does not support Windows
            pass
        else:
            return uvloop.new_event_loop()
    return asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on a new loop."""
    with asyncio.Runner(loop_factory=new) as runner:
        return runner.run(work)
