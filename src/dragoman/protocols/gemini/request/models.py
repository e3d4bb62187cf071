"""What a Gemini model's name says about what it takes."""

from __future__ import annotations

import re
from urllib.parse import quote

from ...common.fields import reject

Version = tuple[int, int]

THINKS: Version = (2, 5)
SIGNS: Version = (3, 0)
"""From here on: thinking levels instead of budgets, and no call without its signature."""
_LATEST: Version = (99, 0)


def version(model: str) -> Version | None:
    """
    >>> version("google/gemini-2.5-pro"), version("gemini-3-flash"), version("gemini-flash-latest")
    ((2, 5), (3, 0), (99, 0))
    """
    name = model.lower()
    match = re.search(r"gemini-(\d+)(?:\.(\d+))?", name)
    if match:
        return int(match[1]), int(match[2] or 0)
    return _LATEST if "gemini" in name else None


def before(model: str, bound: Version) -> bool:
    """Is it a Gemini older than `bound`? Names that say nothing are taken for new ones."""
    known = version(model)
    return known is not None and known < bound


def signs_calls(model: str) -> bool:
    return (version(model) or (0, 0)) >= SIGNS


def is_pro(model: str) -> bool:
    return re.search(r"gemini.*\bpro\b", model.lower()) is not None


def path(model: str, stream: bool) -> str:
    """The path that a request for `model` is posted to.

    The client chooses the name, and the request carries the upstream's key: no name may lead elsewhere.
    """
    name = model.removeprefix("models/")
    if name and not {"", ".", ".."}.isdisjoint(name.split("/")):
        reject(
            f"{model[:80]!r} cannot stand in a path: a part between slashes is empty, '.' or '..'", "model"
        )
    folder = "" if name.startswith("tunedModels/") else "models/"
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/{folder}{quote(name, safe='/:@')}:{verb}"
