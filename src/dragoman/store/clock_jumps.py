"""Notice a clock that jumps, so that a wrong time deletes nothing."""

from __future__ import annotations

# Seconds by which the clock may be adjusted without being called a jump.
_TOLERANCE = 300.0
# Seconds that a clock must run on after a jump before it is believed.
_WAIT = 600.0


class ClockJumps:
    """Compares the wall clock with the monotonic one.

    A machine that was suspended looks the same on Linux. It only waits for `_WAIT` before it prunes.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._suspect_until = 0.0

    def steady(self, now: float, monotonic: float) -> bool:
        """May data be deleted because it is too old at `now`?"""
        if self._last is not None:
            then, since = self._last
            if abs((now - then) - (monotonic - since)) > _TOLERANCE:
                self._suspect_until = monotonic + _WAIT
        self._last = (now, monotonic)
        return monotonic >= self._suspect_until
