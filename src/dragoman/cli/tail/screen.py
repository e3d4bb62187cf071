"""Where lines go: a terminal, with running exchanges below what has ended, or a pipe, with only what has."""

from __future__ import annotations

import shutil
import sys
import time

import click

from ...observe.receipts import Summary
from .lines import one_line

_MOST_RUNNING = 8


class Screen:
    """On a terminal the last lines are rewritten in place."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._live = sys.stdout.isatty() and not as_json
        self._running: dict[str, tuple[Summary, float]] = {}
        self._drawn = 0
        self._lost = False

    def print(self, lines: list[str]) -> None:
        """For good."""
        self._erase()
        self._lost = False
        for line in lines:
            click.echo(line)
        self._draw()

    def running(self, said: Summary) -> None:
        known = self._running.get(said.id)
        began = known[1] if known else time.monotonic() - said.seconds
        self._running[said.id] = (said, began)
        self.refresh()

    def over(self, id: str) -> None:
        if self._running.pop(id, None) is not None:
            self.refresh()

    def lost(self, reason: str) -> None:
        """The gateway is away: said once, until it is back."""
        self._running.clear()
        self._erase()
        if not self._lost:
            click.echo(f"dragoman: {reason}; trying again", err=True)
        self._lost = True

    def refresh(self) -> None:
        if self._live and (self._running or self._drawn):
            self._erase()
            self._draw()

    def close(self) -> None:
        """What was only for the time being goes."""
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
        for said, began in list(self._running.values())[-_MOST_RUNNING:]:
            # Without colours a line is as wide as it is long, and must not wrap: it is counted when erased.
            click.echo(click.unstyle(one_line(said, now - began))[:width])
            self._drawn += 1
