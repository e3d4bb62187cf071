"""Read the version from a Gemini model's name: features depend on it."""

from __future__ import annotations

import re
from urllib.parse import quote

from ...common.fields import reject

Version = tuple[int, int]

THINKS: Version = (2, 5)
SIGNS: Version = (3, 0)
"""Since this version: thinking levels instead of budgets, and calls require their signature."""
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
    """Is this model older than `bound`? A name without a version counts as new."""
    known = version(model)
    return known is not None and known < bound


def signs_calls(model: str) -> bool:
    return (version(model) or (0, 0)) >= SIGNS


def is_pro(model: str) -> bool:
    return re.search(r"gemini.*\bpro\b", model.lower()) is not None


def path(model: str, stream: bool) -> str:
    """The path for requests to `model`.

    The name comes from the client, and the request carries the upstream's key. So the name is
    checked and escaped: it must not lead to another path.
    """
    name = model.removeprefix("models/")
    if name and not {"", ".", ".."}.isdisjoint(name.split("/")):
        reject(
            f"{model[:80]!r} cannot stand in a path: a part between slashes is empty, '.' or '..'", "model"
        )
    folder = "" if name.startswith("tunedModels/") else "models/"
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/{folder}{quote(name, safe='/:@')}:{verb}"
