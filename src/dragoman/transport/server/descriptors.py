"""Says in the log that the process has no file descriptor left, so that no client can connect.

Neither event loop does that well. uvloop closes the connections that it cannot take, and says nothing.
asyncio logs a traceback for each try, tens of thousands a minute.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from time import monotonic
from typing import Any

log = logging.getLogger("dragoman.http")

_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})
_SAY_AGAIN = 10.0
"""Seconds between two log lines."""


class Descriptors:
    """Looks whether there is a descriptor left, and logs it if there is none."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._said_at = -_SAY_AGAIN
        self._before = loop.get_exception_handler()
        loop.set_exception_handler(self._failed)

    def look(self) -> None:
        """To be called now and then."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in _NONE_LEFT:
                self._say()

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.get_exception_handler() == self._failed:
            loop.set_exception_handler(self._before)

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Called by the loop for what nobody else handles."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NONE_LEFT:
            self._say()
        elif self._before is not None:
            self._before(loop, context)
        else:
            loop.default_exception_handler(context)

    def _say(self) -> None:
        now = monotonic()
        if now - self._said_at >= _SAY_AGAIN:
            self._said_at = now
            log.error(
                "no file descriptor is left, so new clients are not served; allow more (ulimit -n) or lower "
                "server.max_connections"
            )
