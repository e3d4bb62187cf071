"""Tell a client's background requests from those of its user."""

from __future__ import annotations

from ..model.messages import Request, Text
from .profile import Background, Profile

_SYSTEM = ("system", "developer")


def in_background(profile: Profile, request: Request) -> bool:
    """Does the client send this request for itself? Its answer is a title or the like."""
    signs = profile.background
    return signs is not None and not request.tools and _shows(signs, request)


def _shows(signs: Background, request: Request) -> bool:
    settings, model = request.settings, request.model.lower()
    if signs.has_schema and settings.format is not None and settings.format.kind == "schema":
        return True
    if settings.max_tokens is not None and settings.max_tokens <= signs.max_tokens:
        return True
    if any(word in model for word in signs.models):
        return True
    return bool(signs.prompts) and any(words in text for text in _prompts(request) for words in signs.prompts)


def _prompts(request: Request) -> list[str]:
    parts = [part for message in request.messages if message.role in _SYSTEM for part in message.parts]
    return [part.text for part in parts if isinstance(part, Text)]
