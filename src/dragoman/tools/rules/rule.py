"""The types of a mending rule and of the fixes it makes.

A rule is a small pure function. Its docstring is its documentation: receipts show the first line as the
reason, and the tests run the `before:`/`after:` example.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from ..schema import Node

Stage = Literal["syntax", "types", "names", "defaults"]

_MAX_SHOWN = 80
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Fix(msgspec.Struct, frozen=True):
    """One use of a rule: what it changed, where, and why."""

    rule: str
    path: str
    before: str
    after: str
    reason: str


class Rule(msgspec.Struct, frozen=True):
    """A named function that mends one kind of mistake."""

    name: str
    stage: Stage
    reason: str
    doc: str
    apply: Callable[..., Any]


class Place(msgspec.Struct, frozen=True):
    """Where a value is: the tool, the path to the value, and whether the member is required."""

    tool: str
    path: str = ""
    pattern: str = ""  # the path with `*` for each list index, as in `tables.py`
    required: bool = True

    def member(self, name: str, required: bool) -> Place:
        return Place(self.tool, f"{self.path}/{name}", f"{self.pattern}/{name}", required)

    def item(self, index: int) -> Place:
        return Place(self.tool, f"{self.path}/{index}", f"{self.pattern}/*")


class Unchanged:
    """The type of `UNCHANGED`."""


# Results of a rule for values: the rule does not apply, or the member should be left out.
UNCHANGED = Unchanged()
ABSENT = Unchanged()

ValueRule = Callable[[Any, Node, Place], Any]

_registered: list[Rule] = []


def rule(name: str, stage: Stage) -> Callable[[_Function], _Function]:
    """Register a function as a mending rule. Within a stage, rules apply in the order of definition."""

    def register(function: _Function) -> _Function:
        doc = inspect.cleandoc(function.__doc__ or "")
        _registered.append(Rule(name, stage, doc.partition("\n")[0], doc, function))
        return function

    return register


def registered() -> tuple[Rule, ...]:
    """Every rule defined so far, in order of definition."""
    return tuple(_registered)


def shorten(text: str) -> str:
    """The beginning of a text, for receipts."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
