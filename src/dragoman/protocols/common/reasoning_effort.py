"""Map reasoning effort to token budgets and back: OpenAI has levels, Anthropic and Gemini have budgets.

The buckets are chosen so that a level that became a budget becomes the same level again. The exceptions:
`minimal` becomes `low`, and `xhigh` and `max` become `high`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from ...model.messages import Effort, Reasoning
from ..model_facts import ModelFacts
from .notices import Notices

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
_ORDER: tuple[str, ...] = get_args(Effort)
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


def nearest(wanted: str, offered: Sequence[str]) -> str:
    """The offered effort next to `wanted`; of two that are equally near, the lower one, but not `none`.

    >>> nearest("max", ["low", "high"]), nearest("minimal", ["none", "low"]), nearest("none", ["low", "high"])
    ('high', 'low', 'low')
    """
    thinking = [one for one in offered if one != "none"] or offered
    return min(thinking, key=lambda one: (abs(_ORDER.index(one) - _ORDER.index(wanted)), _ORDER.index(one)))


def fitting(wanted: Any, takes: ModelFacts, model: str, notices: Notices) -> Any:
    """The effort that the model accepts instead of `wanted`. Unknown words stay as they are."""
    offered = [one for one in takes.efforts or () if one in _ORDER]
    if wanted in offered or not offered or wanted not in _ORDER:
        return wanted
    given = nearest(wanted, offered)
    rule = "effort-raised" if _ORDER.index(given) > _ORDER.index(wanted) else "effort-lowered"
    notices.warn(rule, "settings.reasoning", f"{model} does not take the effort {wanted}: {given} instead")
    return given
