"""Map reasoning effort to token budgets and back: OpenAI has levels, Anthropic and Gemini have budgets.

The buckets are chosen so that a level that became a budget becomes the same level again. The exceptions:
`minimal` becomes `low`, and `xhigh` and `max` become `high`.
"""

from __future__ import annotations

from ...model.messages import Effort, Reasoning

# Anthropic's minimum is 1,024. Gemini 2.5 Flash allows 24,576, and Pro 32,768.
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
    """The effort level of a request; None if the model decides.

    >>> effort(Reasoning(budget=10_000)), effort(Reasoning(enabled=False)), effort(Reasoning(budget=-1))
    ('medium', 'none', None)
    """
    if wanted is None:
        return None
    if wanted.enabled is False:
        return "none"
    # Gemini's budget -1 means that the model decides.
    if wanted.effort is not None or wanted.budget is None or wanted.budget < 0:
        return wanted.effort
    for most, level in _BUCKETS:
        if wanted.budget <= most:
            return level
    return "high"
