"""Facts about models, found by the model's name in `models.toml`. The request writers use them.

The facts are data, not conditions in the writers: models come and go faster than releases of Dragoman, and a
config file can overrule them.
"""

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
    """The features that a model supports. None: unknown, and the writer does what suits most upstreams."""

    reasons: bool | None = None
    """Does the model accept reasoning settings, and return reasoning?"""
    images: bool | None = None
    audio: bool | None = None
    search: bool | None = None
    """Does the model accept Chat's `web_search_options`?"""
    media_results: bool | None = None
    """May a tool result contain images and documents?"""
    always_reasons: bool = False
    """The model refuses a request that switches reasoning off."""
    thinking_budget: bool | None = None
    """Does the model accept a reasoning budget in tokens?"""
    thinking_effort: bool | None = None
    """Does the model accept a reasoning effort (`low`, `high`, …)?"""
    efforts: tuple[str, ...] | None = None
    """The reasoning efforts that it accepts."""
    least_effort: str = ""
    least_budget: int | None = None
    most_budget: int | None = None
    signs_thinking: bool = False
    """The model refuses thinking without its signature (Claude)."""
    signs_calls: bool = False
    """The model refuses calls without its signature (Gemini 3)."""
    schema_output: bool | None = None
    """Does the model support structured output with a JSON Schema?"""
    schema_with_tools: bool | None = None
    """Does it support structured output in a request with functions?"""
    hosted_with_tools: bool | None = None
    """May a request have both functions and tools that the provider runs?"""
    sampling: bool | None = None
    """Does it take `temperature`, `top_p`, penalties and log probabilities?"""
    samples_unreasoned: bool = False
    """It takes them while it does not reason."""
    reasons_unasked: bool = False
    """It reasons unless a request says `none`."""
    stop: bool | None = None
    """Does it take stop sequences?"""
    max_tokens: bool | None = None
    """Does it take Chat's `max_tokens`? If not, it wants `max_completion_tokens`."""
    verbosity: bool | None = None
    """Does it take `verbosity`?"""
    one_sampling: bool = False
    """`temperature` and `top_p` exclude each other."""
    prefill: bool | None = None
    """May the conversation end with the beginning of the answer (Claude)?"""
    caches: bool | None = None
    """Does it take marks for the prompt cache? On Bedrock, not every model does."""
    longest_answer: int | None = None
    """The highest output limit, in tokens, if the upstream refuses a higher one."""
    refused_betas: tuple[str, ...] = ()
    """Beta features that the upstream refuses for this model. `*`: all of them."""


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
_QUOTED = re.compile(r"['\"`]([\w.-]+)['\"`]")


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
        given = {key: value for key, value in entry.items() if key not in _KEYS}
        read = msgspec.convert(given, ModelFacts)  # raises if the file has a value of the wrong type
        facts = {key: getattr(read, key) for key in given}
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


@lru_cache(maxsize=1024)
def known_facts(model: str) -> ModelFacts:
    """The facts that a model's name implies.

    >>> known_facts("gpt-4.1").reasons, known_facts("openai/o3").reasons, known_facts("my-model").reasons
    (False, True, None)
    """
    name, facts = model.lower(), _Facts()
    for entry in _entries("models"):
        if entry.fits(name):
            facts |= entry.facts
    return ModelFacts(**facts)


def facts_in_refusal(refusal: str) -> _Facts:
    """The facts about a model that an upstream's error message implies.

    >>> facts_in_refusal("Unsupported parameter: 'reasoning.effort' is not supported with this model.")
    {'reasons': False}
    >>> facts_in_refusal("'reasoning_effort' does not support 'max'. Supported values are: 'low' and 'high'.")
    {'efforts': ('low', 'high')}
    >>> facts_in_refusal("Unexpected value(s) `a-2025-01-01`, `b-2` for the `vendor-beta` header.")
    {'refused_betas': ('a-2025-01-01', 'b-2')}
    """
    text, facts = refusal.lower(), _Facts()
    for entry in _entries("refusals"):
        found = entry.match.search(text) if entry.match else None
        if found is not None:
            facts |= entry.facts | _listed(found)
    return facts


def _listed(found: re.Match[str]) -> _Facts:
    """The quoted words in each group, which has the name of a fact."""
    words = {name: tuple(_QUOTED.findall(text or "")) for name, text in found.groupdict().items()}
    return {name: each for name, each in words.items() if each}
