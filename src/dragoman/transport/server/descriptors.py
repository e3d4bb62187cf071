"""Logs that the process has run out of file descriptors, so that no client can connect.

Neither event loop reports this well. uvloop closes the connections that it cannot accept, without a log line.
asyncio logs a traceback for each attempt to accept, tens of thousands per minute.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from time import monotonic
from typing import Any

log = logging.getLogger("dragoman.http")

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE})
_LOG_INTERVAL = 10.0
"""Seconds between two log lines."""


class DescriptorCheck:
    """Logs an error while no file descriptor is left."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._logged_at = -_LOG_INTERVAL
        self._previous_handler = loop.get_exception_handler()
        loop.set_exception_handler(self._on_loop_error)

    def run(self) -> None:
        """Check once. The listener calls this at intervals."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno in _EXHAUSTED:
                self._log()

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.get_exception_handler() == self._on_loop_error:
            loop.set_exception_handler(self._previous_handler)

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The event loop's handler for errors outside of tasks."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            self._log()
        elif self._previous_handler is not None:
            self._previous_handler(loop, context)
        else:
            loop.default_exception_handler(context)

    def _log(self) -> None:
        now = monotonic()
        if now - self._logged_at >= _LOG_INTERVAL:
            self._logged_at = now
            log.error(
                "no file descriptor is left, so new clients cannot connect; allow more (ulimit -n) or lower "
                "server.max_connections"
            )
