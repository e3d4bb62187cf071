"""Detect the client of a request: each sign adds to the score of its profiles, and the highest score wins.

No single header is enough, not even the user agent: Qwen Code has called itself `claude-cli`. Agents are
tried before SDKs, because agents are built with SDKs and show the signs of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from ..model.messages import Message, Request, Text
from .agents import AGENTS
from .profile import Profile
from .registry import PROFILES, UNKNOWN
from .sdks import SDKS

PATH, HEADER, PROMPT, FIELD, TOOL = 4, 2, 2, 1, 1
"""The score of one sign, by its kind."""
MAX_FOR_TOOLS = 4
MIN_SCORE = 3  # more than one header or one prompt: other clients copy those; a path alone is enough
_PROMPT_START = 240  # characters: agents introduce themselves in their first sentence
_SYSTEM = ("system", "developer")
_NONE: frozenset[str] = frozenset()
_name = attrgetter("name")


class Clues(NamedTuple):
    """The known signs in one request. The decision depends on nothing else, so it can be cached by them."""

    path: str
    headers: tuple[tuple[str, str], ...]
    prompt: str
    fields: frozenset[str]
    tools: frozenset[str]


HeadClues = tuple[str, tuple[tuple[str, str], ...]]
"""`Clues.path` and `Clues.headers`."""


def head_clues(path: str, headers: Mapping[str, str]) -> HeadClues:
    """The signs in the path and the headers. Header names are looked up in lower case."""
    return _known_path(path), _shown(tuple(map(headers.get, _NAMES)))


def detect(head: HeadClues, request: Request) -> Profile:
    """The profile of the client that sent `request`."""
    return _decided(
        *head,
        _prompt(request),
        _FIELDS.intersection(request.raw.value) if request.raw is not None else _NONE,
        _TOOLS.intersection(map(_name, request.tools)),
    )


@lru_cache(maxsize=64)
def _known_path(path: str) -> str:
    return next((start for start in _PATHS if path.startswith(start)), "")


@lru_cache(maxsize=64)
def _shown(values: tuple[str | None, ...]) -> tuple[tuple[str, str], ...]:
    """The signs in the values of the headers `_NAMES`. Cached: a client repeats them in every request."""
    present = [(name, value) for name, value in zip(_NAMES, values, strict=True) if value is not None]
    return tuple((name, part) for name, value in present for part in _HEADERS[name] if part in value)


def _prompt(request: Request) -> str:
    """The known words near the start of the system prompt."""
    first = request.messages[0] if request.messages else None
    return _words_in(first) if first is not None and first.role in _SYSTEM else ""


def _words_in(prompt: Message) -> str:
    first = next((part for part in prompt.parts if isinstance(part, Text)), None)
    if first is None:
        return ""
    beginning = first.text[:_PROMPT_START]
    return next((words for words in _PROMPTS if words in beginning), "")


@lru_cache(maxsize=512)
def _decided(
    path: str,
    headers: tuple[tuple[str, str], ...],
    prompt: str,
    fields: frozenset[str],
    tools: frozenset[str],
) -> Profile:
    clues = Clues(path, headers, prompt, fields, tools)
    for profiles in (AGENTS, SDKS):
        best = max(profiles, key=lambda profile: score(profile, clues))
        if score(best, clues) >= MIN_SCORE:
            return best
    return UNKNOWN


def score(profile: Profile, clues: Clues) -> int:
    """The total of all signs of `profile` in `clues`."""
    signs = profile.signs
    named = {name for name, part in clues.headers if part in signs.headers.get(name, ())}
    return (
        PATH * (clues.path in signs.paths)
        + HEADER * len(named)
        + PROMPT * (clues.prompt in signs.prompts)
        + FIELD * len(signs.fields & clues.fields)
        + min(TOOL * len(signs.tools & clues.tools), MAX_FOR_TOOLS)
    )


def _parts() -> dict[str, tuple[str, ...]]:
    """Every header that is a sign of some profile, with all texts that are looked for in its value."""
    found: dict[str, dict[str, None]] = {}
    for profile in PROFILES.values():
        for name, parts in profile.signs.headers.items():
            found.setdefault(name, {}).update(dict.fromkeys(parts))
    return {name: tuple(parts) for name, parts in found.items()}


_PATHS = tuple(path for profile in PROFILES.values() for path in profile.signs.paths)
_HEADERS = _parts()
_NAMES = tuple(_HEADERS)
_FIELDS = frozenset(name for profile in PROFILES.values() for name in profile.signs.fields)
_TOOLS = frozenset(name for profile in PROFILES.values() for name in profile.signs.tools)
_PROMPTS = tuple(dict.fromkeys(words for profile in PROFILES.values() for words in profile.signs.prompts))
