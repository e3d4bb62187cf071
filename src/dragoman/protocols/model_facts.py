"""What a model takes, told by its name: the facts of `models.toml`, for every writer of requests."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import msgspec

_Version = tuple[int, int]
_Facts = dict[str, Any]


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a model takes. None is "not known": the writer does what suits most upstreams."""

    reasons: bool | None = None
    """Does it take settings for reasoning, and give reasoning back?"""
    images: bool | None = None
    audio: bool | None = None
    search: bool | None = None
    """Does it search the web when Chat's `web_search_options` asks for it?"""
    media_results: bool | None = None
    """May the result of a tool hold images and documents?"""
    always_reasons: bool = False
    """It refuses to have its reasoning switched off."""
    thinking_budget: bool | None = None
    """May the client say how many tokens it thinks for?"""
    thinking_effort: bool | None = None
    """May the client say in a word how hard it thinks?"""
    least_effort: str = ""
    least_budget: int | None = None
    most_budget: int | None = None
    signs_thinking: bool = False
    """It refuses thoughts that it has not signed."""
    signs_calls: bool = False
    """It refuses calls that it has not signed."""
    schema_output: bool | None = None
    """Can its answer be held to a JSON Schema?"""
    schema_with_tools: bool | None = None
    """The same in a request that has functions."""
    hosted_with_tools: bool | None = None
    """May a request have functions and tools that the provider runs?"""
    one_sampling: bool = False
    """`temperature` and `top_p` exclude each other."""
    longest_answer: int | None = None
    """In tokens, if the upstream refuses to be asked for more."""


class _Entry(msgspec.Struct, frozen=True):
    """An entry of `[[models]]`, or of `[[refusals]]`."""

    facts: _Facts
    match: re.Pattern[str] | None = None
    of: re.Pattern[str] | None = None
    since: _Version | None = None
    before: _Version | None = None

    def fits(self, name: str) -> bool:
        if self.match is not None and not self.match.search(name):
            return False
        if self.of is None:
            return True
        found = self.of.search(name)
        if found is None:
            return False
        version = int(found[1]), int(found[2] or 0)
        return (self.since is None or version >= self.since) and (
            self.before is None or version < self.before
        )


_KEYS = frozenset({"match", "says", "of", "from", "before"})


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(resources.files("dragoman.protocols").joinpath("models.toml").read_text("utf-8"))


@cache
def _entries(kind: str) -> tuple[_Entry, ...]:
    return tuple(_read(kind))


def _read(kind: str) -> Iterator[_Entry]:
    document = _document()
    versions = {name: re.compile(pattern) for name, pattern in document["versions"].items()}
    for entry in document[kind]:
        facts = {key: value for key, value in entry.items() if key not in _KEYS}
        msgspec.convert(facts, ModelFacts)  # an unknown kind of value is a mistake in the file
        pattern = entry.get("match") or entry.get("says")
        yield _Entry(
            facts,
            re.compile(pattern.replace("\\\n", ""), re.DOTALL) if pattern else None,
            versions[entry["of"]] if "of" in entry else None,
            _version(entry.get("from")),
            _version(entry.get("before")),
        )


def _version(text: str | None) -> _Version | None:
    if text is None:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def _fitting(kind: str, text: str) -> _Facts:
    facts: _Facts = {}
    for entry in _entries(kind):
        if entry.fits(text):
            facts |= entry.facts
    return facts


@lru_cache(maxsize=1024)
def known_facts(model: str) -> ModelFacts:
    """What the name of a model tells.

    >>> known_facts("gpt-4.1").reasons, known_facts("openai/o3").reasons, known_facts("my-model").reasons
    (False, True, None)
    """
    return ModelFacts(**_fitting("models", model.lower()))


def told_by(refusal: str) -> _Facts:
    """What an upstream's refusal tells about its model.

    >>> told_by("Unsupported parameter: 'reasoning.effort' is not supported with this model.")
    {'reasons': False}
    """
    return _fitting("refusals", refusal.lower())
