"""What a Claude can do, told by the version in its name. Other models are given the plain form.

`claude-sonnet-4-20250514` is 4.0, `us.anthropic.claude-opus-4-7-v1:0` is 4.7, `claude-3-7-sonnet`
is 3.7. The API refuses a whole request for one setting that its model does not take.
"""

from __future__ import annotations

import re

Version = tuple[int, int]

_NAME = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")

THINKS: Version = (3, 7)
ADAPTS: Version = (4, 6)
"""The first to take `adaptive`, and the last to take a thinking budget."""
STRUCTURES: Version = (4, 1)
"""The first to take `output_config.format`."""
SAMPLES_ONE_WAY: Version = (4, 1)
"""From here on `temperature` and `top_p` exclude each other."""
ALWAYS_THINKS = ("fable", "mythos")
"""Families that refuse `thinking: disabled`."""


def claude_version(model: str) -> Version | None:
    """The version of a Claude; None for any other model, or one whose name does not tell."""
    found = _NAME.search(model.lower())
    return (int(found[1]), int(found[2] or 0)) if found else None


def is_claude(model: str) -> bool:
    return "claude" in model.lower()
