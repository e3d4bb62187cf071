"""How hard to think: words on one wire, a number of tokens on another. Both ways in one place.

The buckets are the ones the words' own budgets fall into, so that a word that became a budget becomes the
same word again (but for the finer ones: `minimal` is `low`, and all above `high` is `high`).
"""

from __future__ import annotations

from ...model.messages import Effort, Reasoning

BUDGETS: dict[Effort, int] = {
    "none": 0,
    "minimal": 1024,
    "low": 4096,
    "medium": 10_240,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 32_768,
}
_BUCKETS: tuple[tuple[int, Effort], ...] = ((0, "none"), (4096, "low"), (16_384, "medium"))


def effort(wanted: Reasoning | None) -> Effort | None:
    """The word for what is wanted; None where it is left to the model.

    >>> effort(Reasoning(budget=10_000)), effort(Reasoning(enabled=False)), effort(Reasoning(budget=-1))
    ('medium', 'none', None)
    """
    if wanted is None:
        return None
    if wanted.enabled is False:
        return "none"
    # Gemini says -1 for "as you like".
    if wanted.effort is not None or wanted.budget is None or wanted.budget < 0:
        return wanted.effort
    for most, word in _BUCKETS:
        if wanted.budget <= most:
            return word
    return "high"
