"""All mending rules in their order of use, and the set of rules that is on."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from functools import lru_cache

from ...model.errors import DragomanError

# Importing these modules registers their rules, in the order of the stages.
from . import defaults, names, syntax, types
from .answer_rules import ANSWER_RULES
from .rule import Fix, Rule, Stage, ValueRule, registered, shorten

__all__ = ["ANSWER_RULES", "RULES", "Fix", "FixLog", "Rule", "Rules", "Stage", "rules"]

_STAGES: tuple[Stage, ...] = ("syntax", "types", "names", "defaults")
_MODULES = (syntax, types, names, defaults)
_MAX_KEPT = 200  # people read receipts

RULES: tuple[Rule, ...] = tuple(
    sorted(registered(), key=lambda rule: _STAGES.index(rule.stage))  # stable within a stage
)
_REASONS = {rule.name: rule.reason for rule in RULES}


class Rules:
    """The rules that are on."""

    def __init__(self, off: Collection[str] = ()) -> None:
        self.active: tuple[Rule, ...] = tuple(rule for rule in RULES if rule.name not in off)
        self.names: frozenset[str] = frozenset({*_REASONS, *ANSWER_RULES} - set(off))
        self.for_values: tuple[tuple[str, ValueRule], ...] = tuple(
            (rule.name, rule.apply) for rule in self.active if rule.stage == "types"
        )

    def on(self, name: str) -> bool:
        return name in self.names


class FixLog:
    """The fixes of one call. All are counted, and the first ones are kept."""

    __slots__ = ("count", "kept")

    def __init__(self) -> None:
        self.kept: list[Fix] = []
        self.count = 0

    def add(self, rule: str, path: str, before: str, after: str) -> None:
        self.extend([Fix(rule, path, shorten(before), shorten(after), _REASONS[rule])])

    def extend(self, fixes: Sequence[Fix]) -> None:
        self.count += len(fixes)
        self.kept += fixes[: max(0, _MAX_KEPT - len(self.kept))]


def rules(off: Collection[str] = ()) -> Rules:
    """The rules without those named in `off`. Raises `DragomanError` for an unknown name."""
    return _without(frozenset(off))


@lru_cache(maxsize=64)
def _without(off: frozenset[str]) -> Rules:
    known = {*_REASONS, *ANSWER_RULES}
    for name in sorted(off - known):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else "; `dragoman rules` lists them"
        raise DragomanError(f"there is no rule {name!r}{hint}")
    return Rules(off)
