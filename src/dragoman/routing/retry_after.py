"""Read Retry-After and rate limit headers. Pure: the caller passes the time."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping

# Reset header and remaining header of each limit. Only a limit with 0 remaining was reached.
_LIMITS = (
    ("x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"),
    ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens"),
    ("x-ratelimit-reset", "x-ratelimit-remaining"),
)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d*)?)s)?(?:(\d+(?:\.\d*)?)ms)?")
_EPOCH = 1e9  # a number this large is a Unix time, not a duration
_EPOCH_MS = 1e12


def retry_delay(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the upstream asks to wait, by its most exact header. `headers` must ignore case.

    OpenAI and Azure also send `retry-after-ms`. Reset headers are durations at OpenAI (`6m0s`, `20ms`), and
    elsewhere seconds, or a Unix time in seconds (GitHub) or milliseconds (OpenRouter).
    """
    exact = _number(headers.get("retry-after-ms", ""))
    if exact is not None:
        return exact / 1000
    retry_after = parse_retry_after(headers.get("retry-after"), now)
    if retry_after is not None:
        return retry_after
    # Providers send the reset times of all limits with every answer. Only an exhausted limit is a reason to
    # wait.
    reached = [reset for reset, left in _LIMITS if _number(headers.get(left, "")) == 0]
    waits = [_until(headers.get(reset, ""), now) for reset in reached]
    return max((wait for wait in waits if wait is not None), default=None)


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds from a `Retry-After` header, which has seconds or a date; None if it has neither."""
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value.strip()).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _until(value: str, now: float) -> float | None:
    number = _number(value)
    if number is None:
        return _duration(value)
    if number >= _EPOCH_MS:
        number /= 1000
    return max(0.0, number - now) if number >= _EPOCH else number


def _duration(value: str) -> float | None:
    found = _DURATION.fullmatch(value.strip())
    if found is None or not value.strip():
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
