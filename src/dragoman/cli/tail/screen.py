"""Print exchanges: a terminal shows the running ones at the bottom, a pipe gets only the finished ones."""

from __future__ import annotations

import shutil
import sys
import time

import click

from ...observe.receipts import ExchangeSummary
from .lines import one_line

_MAX_RUNNING = 8


class Screen:
    """Prints lines. On a terminal it redraws the lines of running exchanges in place."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._live = sys.stdout.isatty() and not as_json
        self._running: dict[str, tuple[ExchangeSummary, float]] = {}
        self._drawn = 0
        self._lost = False

    def print(self, lines: list[str]) -> None:
        """Print lines that stay."""
        self._erase()
        self._lost = False
        for line in lines:
            click.echo(line)
        self._draw()

    def running(self, summary: ExchangeSummary) -> None:
        known = self._running.get(summary.id)
        began = known[1] if known else time.monotonic() - summary.seconds
        self._running[summary.id] = (summary, began)
        self.refresh()

    def over(self, id: str) -> None:
        if self._running.pop(id, None) is not None:
            self.refresh()

    def lost(self, reason: str) -> None:
        """Report a lost connection, once until the next line is printed."""
        self._running.clear()
        self._erase()
        if not self._lost:
            click.echo(f"dragoman: {reason}; reconnecting", err=True)
        self._lost = True

    def refresh(self) -> None:
        if self._live and (self._running or self._drawn):
            self._erase()
            self._draw()

    def close(self) -> None:
        """Remove the lines of running exchanges."""
        self._erase()

    def _erase(self) -> None:
        if self._drawn:
            click.echo(f"\x1b[{self._drawn}A\x1b[J", nl=False)
            self._drawn = 0

    def _draw(self) -> None:
        if not self._live:
            return
        width = shutil.get_terminal_size().columns - 1
        now = time.monotonic()
        for summary, began in list(self._running.values())[-_MAX_RUNNING:]:
            # `_erase` moves up one row per line, so a line must not wrap. Colours would falsify its length.
            click.echo(click.unstyle(one_line(summary, now - began))[:width])
            self._drawn += 1
