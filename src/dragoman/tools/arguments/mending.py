"""Applies the rules to a held value: types first, then names, then missing members. Stops when it fits.

The mender also goes into every nested object and list of the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, cast

from ..json_text import dump
from ..rules import FixLog, Rules
from ..rules.defaults import DEFAULT_RULES
from ..rules.names import NAME_RULES, Claim, claims, is_unknown, same_spelling
from ..rules.rule import ABSENT, UNCHANGED, Place
from ..schema import Node

# One rule may make another one apply: a list written as text, with wrong items in it. More steps than this
# on one value mean that two rules undo each other.
_MAX_STEPS = 6

_ANYWHERE = Place("")
_UNSURE = ("name-synonym", "weak-alias")


class Renamed(NamedTuple):
    """An undeclared member that means a declared one."""

    rule: str
    target: str
    value: Any


class Mender:
    """Mends the values of one call and records each fix."""

    def __init__(self, tool: str, rules: Rules, fixes: FixLog) -> None:
        self.tool = tool
        self.rules = rules
        self.fixes = fixes
        self._steps = 0

    def value(self, value: Any, node: Node, place: Place) -> Any:
        """The mended value. `ABSENT` if the member should be left out; unchanged if no rule makes it fit."""
        if node.fits(value):
            return self._respell_inside(value, node, place)
        mended = self._by_rules(value, node, place)
        if mended is ABSENT or node.fits(mended):
            return mended
        mended = self._inside(mended, node, place)
        return mended if node.fits(mended) else self._as_option(mended, node, place)

    def _try(self, value: Any, node: Node, place: Place) -> tuple[Any, FixLog]:
        trial = Mender(self.tool, self.rules, FixLog())
        trial._steps = self._steps + 1
        return trial.value(value, node, place), trial.fixes

    def _by_rules(self, value: Any, node: Node, place: Place) -> Any:
        if self._steps >= _MAX_STEPS:
            return value
        fallback: tuple[Any, list[Any]] | None = None
        for name, apply in self.rules.for_values:
            changed = apply(value, node, place)
            if changed is UNCHANGED:
                continue
            if changed is ABSENT:
                self._note(name, place, value, "")
                return ABSENT
            settled, fixes = self._try(changed, node, place)
            noted = self._noted(name, place, value, changed, fixes)
            if settled is not ABSENT and node.fits(settled):
                self.fixes.extend(noted)
                return settled
            if name == "json-in-member" and settled is not ABSENT:
                fallback = (settled, noted)  # better a list with a wrong item than a string
        if fallback is None:
            return value
        self.fixes.extend(fallback[1])
        return fallback[0]

    def _note(self, rule: str, place: Place, before: Any, after: str) -> None:
        self.fixes.add(rule, place.path, dump(before), after)

    def _noted(self, rule: str, place: Place, before: Any, after: Any, rest: FixLog) -> list[Any]:
        fixes = FixLog()
        fixes.add(rule, place.path, dump(before), dump(after))
        return [*fixes.kept, *rest.kept]

    def _inside(self, value: Any, node: Node, place: Place) -> Any:
        if isinstance(value, dict) and not node.options:
            return self.members(cast("dict[str, Any]", value), node, place)
        if isinstance(value, list) and not node.options:
            items: list[Any] = []
            for index, item in enumerate(cast("list[Any]", value)):
                mended = self.value(item, node.items, place.item(index))
                items.append(item if mended is ABSENT else mended)
            return items
        return cast("Any", value)

    def _as_option(self, value: Any, node: Node, place: Place) -> Any:
        """Mend toward the first alternative of `anyOf`/`oneOf` that can be made to fit."""
        for option in node.options:
            mended, fixes = self._try(value, option, place)
            if mended is not ABSENT and node.fits(mended):
                self.fixes.extend(fixes.kept)
                return mended
        return value

    def members(self, given: dict[str, Any], node: Node, place: Place) -> dict[str, Any]:
        """The members of a nested object: types, then names, then what is missing."""
        members: dict[str, Any] = {}
        for name, value in given.items():
            inner = place.member(name, name in node.required)
            mended = self.value(value, node.member(name), inner)
            if mended is not ABSENT:
                members[name] = mended
        if node.fits(members):
            return members
        unknown = {name: value for name, value in members.items() if name not in node.properties}
        renamed = self.rename(unknown, members.keys(), node, place)
        members = {
            (renamed[name].target if name in renamed else name): (
                renamed[name].value if name in renamed else value
            )
            for name, value in members.items()
        }
        for name, value in self.missing(members, node, place).items():
            members[name] = value
        for name in self.droppable(members, members.keys(), node, place):
            del members[name]
        return members

    def rename(
        self, unknown: Mapping[str, Any], present: Iterable[str], node: Node, place: Place
    ) -> dict[str, Renamed]:
        """The undeclared members that are declared members under another name."""
        given = set(present)
        missing = [name for name in node.properties if name not in given]
        # If no required member is missing, the call is valid: only another spelling of a name is certain.
        open_targets = [name for name in missing if node.closed or name in node.required]
        decided: dict[str, Renamed] = {}
        for rule, _ in NAME_RULES:
            proposals: dict[str, list[str]] = {}
            for name in unknown:
                if name not in decided:
                    targets = missing if rule == "name-spelling" else open_targets
                    for target in self._meant(rule, name, targets, node, place):
                        proposals.setdefault(target, []).append(name)
            for target, names in proposals.items():
                missing.remove(target)
                open_targets = [name for name in open_targets if name != target]
                if len(names) == 1:  # with two names for one member, neither is certain
                    self._rename_one(rule, names[0], target, unknown, node, place, decided)
        return decided

    def _meant(self, rule: str, name: str, targets: list[str], node: Node, place: Place) -> list[str]:
        found = [claim.target for claim in claims(name, targets, place, self.rules.names & {rule})]
        required = [target for target in found if target in node.required]
        choice = required or found
        return choice if len(choice) == 1 else []

    def _rename_one(
        self, rule: str, name: str, target: str, unknown: Mapping[str, Any],
        node: Node, place: Place, decided: dict[str, Renamed],
    ) -> None:  # fmt: skip
        inner = place.member(target, required=True)
        wanted, value = node.member(target), unknown[name]
        if rule in _UNSURE and not isinstance(value, (str, list, dict)) and not wanted.fits(value):
            return  # a similar name with another type is not certain enough
        mended, fixes = self._try(value, wanted, inner)
        if mended is ABSENT or not wanted.fits(mended):
            return
        self.fixes.add(rule, place.member(name, required=True).path, name, target)
        self.fixes.extend(fixes.kept)
        decided[name] = Renamed(rule, target, mended)

    def respelled(self, name: str, present: Collection[str], node: Node) -> str | None:
        """The only declared and missing member that `name` spells differently."""
        if name in node.properties or not self.rules.on("name-spelling"):
            return None
        found = same_spelling(
            name, [target for target in node.properties if target not in present], _ANYWHERE
        )
        return found[0] if len(found) == 1 else None

    def _respell_inside(self, value: Any, node: Node, place: Place) -> Any:
        """A value that fits, with the names of its members spelled as declared."""
        if isinstance(value, list) and node.wants("array"):
            items = cast("list[Any]", value)
            changed = [self._respell_inside(v, node.items, place.item(i)) for i, v in enumerate(items)]
            return items if all(a is b for a, b in zip(changed, items, strict=True)) else changed
        if not isinstance(value, dict) or not node.properties:
            return cast("Any", value)
        members = cast("dict[str, Any]", value)
        inner = {
            name: self._respell_inside(v, node.member(name), place.member(name, required=False))
            for name, v in members.items()
        }
        odd = [name for name in inner if self.respelled(name, inner, node) is not None]
        renamed = self.rename({name: inner[name] for name in odd}, inner, node, place) if odd else {}
        if not renamed and all(inner[name] is v for name, v in members.items()):
            return members
        return {
            renamed[name].target if name in renamed else name: renamed[name].value if name in renamed else v
            for name, v in inner.items()
        }

    def missing(self, present: Mapping[str, Any], node: Node, place: Place) -> dict[str, Any]:
        """Values for missing required members, where the value is certain."""
        found: dict[str, Any] = {}
        for name in node.properties:
            if name not in node.required or name in present:
                continue
            for rule, function in DEFAULT_RULES:
                value = function(name, node.member(name), present, place)
                if self.rules.on(rule) and value is not UNCHANGED:
                    self.fixes.add(rule, f"{place.path}/{name}", "", dump(value))
                    found[name] = value
                    break
        return found

    def droppable(
        self, values: Mapping[str, Any], present: Iterable[str], node: Node, place: Place
    ) -> list[str]:
        """Undeclared members that a closed object can lose without losing information."""
        given = set(present)
        if not node.closed or not self.rules.on("unknown-member") or not node.required <= given:
            return []
        dropped = [
            name
            for name, value in values.items()
            if is_unknown(name, node.properties) and self._is_idle(name, value, values, node, place)
        ]
        for name in dropped:
            self._note("unknown-member", place.member(name, required=False), values[name], "")
        return dropped

    def _is_idle(self, name: str, value: Any, values: Mapping[str, Any], node: Node, place: Place) -> bool:
        """Whether the name means no declared member, or one that already has the same value."""
        sure = self.rules.names - {"weak-alias"}
        meant: list[Claim] = claims(name, node.properties, place, sure)
        return all(claim.target in values and values[claim.target] == value for claim in meant)
