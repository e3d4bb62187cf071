"""The event loop the gateway runs on: uvloop's where that is installed, and asyncio's own elsewhere.

On Windows it is the selector loop: the HTTP client lets the loop watch sockets, and the proactor loop cannot.

Where an answer comes event by event, much of what each costs is the loop's, and uvloop's is compiled. What
runs on them cannot tell one from the other.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

VARIABLE = "DRAGOMAN_LOOP"
"""In the environment: `asyncio` does without uvloop."""


def new() -> asyncio.AbstractEventLoop:
    """One that nobody has used yet."""
    if os.environ.get(VARIABLE) != "asyncio":
        try:
            import uvloop
        except ImportError:  # there is none for this platform
            pass
        else:
            return uvloop.new_event_loop()
    return asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do it, on a loop of its own."""
    with asyncio.Runner(loop_factory=new) as runner:
        return runner.run(work)
