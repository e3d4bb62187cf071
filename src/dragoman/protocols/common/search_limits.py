"""The limits of a web search that the provider runs: the same few in all protocols, under similar names."""

from __future__ import annotations

from typing import Any

from ...model.messages import SearchLimits, Tool
from .fields import Obj, is_array, is_object
from .notices import Notices

_PLACE = ("city", "region", "country", "timezone")
_SIZES = ("low", "medium", "high")
_NONE = SearchLimits()


def read_limits(given: Any) -> SearchLimits | None:
    """Read the limits in the definition of a search tool. None: it has none.

    >>> read_limits({"filters": {"allowed_domains": ["a.com"]}, "user_location": {"city": "Paris"}})
    SearchLimits(allowed=('a.com',), blocked=(), max_uses=None, place={'city': 'Paris'}, size=None)
    >>> read_limits({"user_location": {"type": "approximate", "approximate": {"country": "FR"}}}).place
    {'country': 'FR'}
    """
    if not is_object(given):
        return None
    filters, uses, size = given.get("filters"), given.get("max_uses"), given.get("search_context_size")
    domains: Obj = filters if is_object(filters) else given
    found = SearchLimits(
        allowed=_words(domains.get("allowed_domains")),
        blocked=_words(domains.get("blocked_domains")) or _words(given.get("excludeDomains")),
        max_uses=uses if type(uses) is int and uses >= 0 else None,
        place=_place(given.get("user_location")),
        size=size if size in _SIZES else None,
    )
    return None if found == _NONE else found


def limits_of(tool: Tool) -> SearchLimits:
    """The limits of a hosted web search."""
    return tool.search or _NONE


def location(limits: SearchLimits) -> Obj:
    """The user's place as `user_location`, which Anthropic and Responses share. Empty: unknown."""
    return {"user_location": {"type": "approximate", **limits.place}} if limits.place else {}


def warn_unlimited(limits: SearchLimits, kept: tuple[str, ...], path: str, notices: Notices) -> None:
    """Add one notice for the limits that the upstream does not know. `kept`: those that it does."""
    words = {"allowed": "allowed domains", "blocked": "blocked domains", "max_uses": "limit of searches"}
    lost = [text for name, text in words.items() if name not in kept and getattr(limits, name)]
    if lost:
        message = f"the upstream's web search takes no {' and no '.join(lost)}"
        notices.warn("search-limits-dropped", path, message)


def _place(given: Any) -> dict[str, str] | None:
    """Read a place. Chat puts it into a member of its own."""
    if not is_object(given):
        return None
    inner = given.get("approximate")
    place: Obj = inner if is_object(inner) else given
    return {key: word for key in _PLACE if isinstance(word := place.get(key), str) and word} or None


def _words(given: Any) -> tuple[str, ...]:
    return tuple(word for word in given if isinstance(word, str)) if is_array(given) else ()
