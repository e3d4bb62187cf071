"""Tell a quota that is used up from a rate limit that passes in a moment. Both come with status 429.

The tables hold what providers write. A used-up quota is renewed after hours, or by a payment. Waiting
for it is useless, and another key may still have some.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .fields import is_array, is_object

# Error codes and types, in lower case.
_CODES = frozenset(
    {
        "insufficient_quota",  # OpenAI, and many that imitate it
        "billing_hard_limit_reached",  # OpenAI
        "billing_not_active",  # OpenAI
        "exceeded_current_quota_error",  # Moonshot
        "insufficient_user_quota",  # One API and its forks
        "insufficient_balance",
        "insufficient_credits",
        "quota_exceeded",
        "usage_limit_reached",  # ChatGPT's plans
        "servicequotaexceededexception",  # AWS
    }
)
# Words of messages. Groq and OpenAI: "tokens per day (TPD)". OpenRouter: "free-models-per-day".
_LONG = re.compile(
    r"\bquota\b|\bper[ _-]?(day|week|month)\b|\b[rt]pd\b|\b(daily|weekly|monthly)\b[\w ]*\blimit"
    r"|(?<![/.])\bbilling\b|\bcredit balance\b"
    r"|\b(insufficient|out of|no|not enough) (balance|credits?|funds)\b"
    r"|\b(usage|spend|spending) (limit|cap)s?\b",
    re.IGNORECASE,
)
# Google names its limits per minute a quota, too. Others name the page where one pays for more.
_SHORT = re.compile(r"per[ _-]?(min|sec)|\b[rt]p[ms]\b", re.IGNORECASE)
_LONG_ID = re.compile(r"per(day|week|month)", re.IGNORECASE)
# Anthropic reports missing credit, and a limit that the user set, as a bad request (400).
_UNPAID = re.compile(
    r"\bcredit balance is too low\b|\breached your specified API usage limits\b", re.IGNORECASE
)


def is_used_up(names: Iterable[str], message: str, details: Any = None) -> bool:
    """Is a quota used up, by the codes, the message and Google's details of an error with status 429?

    >>> is_used_up(["insufficient_quota"], "")
    True
    >>> is_used_up([], "Rate limit reached on tokens per day (TPD): Limit 100000")
    True
    >>> is_used_up([], "Rate limit reached on tokens per minute (TPM): Limit 6000")
    False
    """
    if any(name.lower() in _CODES for name in names):
        return True
    if ids := _quota_ids(details):
        return any(_LONG_ID.search(quota) for quota in ids)
    return _LONG.search(message) is not None and _SHORT.search(message) is None


def is_unpaid(message: str) -> bool:
    """Does the message of a 400 say that the account has no credit?"""
    return _UNPAID.search(message) is not None


def _quota_ids(details: Any) -> list[str]:
    """The ids of the limits that were reached: `GenerateRequestsPerDayPerProjectPerModel-FreeTier`."""
    found: list[str] = []
    for detail in details if is_array(details) else ():
        violations = detail.get("violations") if is_object(detail) else None
        for violation in violations if is_array(violations) else ():
            quota = violation.get("quotaId") if is_object(violation) else None
            if isinstance(quota, str):
                found.append(quota)
    return found
