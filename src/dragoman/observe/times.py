"""Points in time as users write them: `7d` for so long ago, or a date."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}


def point_in_time(text: str, now: float, *, utc: bool) -> float | None:
    """Seconds since the epoch, from `90m`, `2h`, `7d` (before `now`), `2026-11-18` or `2026-11-18T09:30`.

    A date without a zone is in UTC, or in the user's own zone. None: this is no time.
    """
    text = text.strip()
    ago = _AGO.fullmatch(text)
    if ago:
        return now - float(ago[1]) * _SECONDS[ago[2]]
    with contextlib.suppress(ValueError, OverflowError):
        found = datetime.fromisoformat(text)
        return (found.replace(tzinfo=UTC) if utc and found.tzinfo is None else found.astimezone()).timestamp()
    return None
