"""Read the version from a Claude model's name: features depend on it. Other models get the basic form.

`claude-sonnet-4-20250514` is 4.0, `us.anthropic.claude-opus-4-7-v1:0` is 4.7, `claude-3-7-sonnet` is 3.7. The
API refuses a request with a setting that the model does not support.
"""

from __future__ import annotations

import re

Version = tuple[int, int]

_NAME = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")

THINKS: Version = (3, 7)
ADAPTS: Version = (4, 6)
"""The first version with `adaptive` thinking, and the last one with a thinking budget."""
STRUCTURES: Version = (4, 1)
"""The first version with `output_config.format`."""
SAMPLES_ONE_WAY: Version = (4, 1)
"""Since this version, a request cannot have both `temperature` and `top_p`."""
ALWAYS_THINKS = ("fable", "mythos")
"""Families that refuse `thinking: disabled`."""


def claude_version(model: str) -> Version | None:
    """The version of a Claude model; None for other models, and for names without a version."""
    found = _NAME.search(model.lower())
    return (int(found[1]), int(found[2] or 0)) if found else None


def is_claude(model: str) -> bool:
    return "claude" in model.lower()
