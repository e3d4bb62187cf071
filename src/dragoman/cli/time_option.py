"""The type of options such as `--since`: a length of time before now, or a date."""

from __future__ import annotations

import time
from typing import Any

import click

from ..observe.times import point_in_time


class PointInTime(click.ParamType[float]):
    """Seconds since the epoch, from what `point_in_time` reads.

    A date without a zone is in the user's own zone, or in UTC for commands that show days of UTC.
    """

    name = "time"

    def __init__(self, *, utc: bool = False) -> None:
        self._utc = utc

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = point_in_time(str(value), time.time(), utc=self._utc)
        if found is None:
            self.fail(f"{value!r} is no time: write 30m, 2h, 7d or a date such as 2026-11-18", param, ctx)
        return found
