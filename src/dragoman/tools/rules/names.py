"""Rules for names: a member the schema does not declare, where a declared one is missing.

A name is changed only as a key, at its own level, onto a member that is declared and missing, and only
when nothing else could be meant. In a schema that allows extra members only a missing *required* member
counts, because without that the call is valid. The exception is a name that differs from a declared one only
in case and separators (`replace_all` for `replaceAll`): no tool has both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from .rule import Place, rule
from .tables import FAMILIES, SYNONYMS, WEAK_ALIASES, ToolFamily, squash, words


class Claim(NamedTuple):
    """A member that an undeclared name could mean, and the rule that says so."""

    rule: str
    target: str


@rule("name-spelling", "names")
def same_spelling(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A name in other case or with other separators is the declared one.

    schema: {"properties": {"deepSearch": {"type": "boolean"}}, "required": ["deepSearch"]}
    before: {"deepsearch": true}
    after: {"deepSearch": true}
    """
    wanted = squash(name)
    return [target for target in declared if squash(target) == wanted] if wanted else []


@rule("tool-alias", "names")
def table_alias(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A name known to be used for a member of this agent's tool is that member.

    tool: Bash
    schema: {"properties": {"command": {"type": "string"}}, "required": ["command"]}
    before: {"prompt": "git status"}
    after: {"command": "git status"}
    """
    return _from_tables(FAMILIES, name, declared, place)


@rule("name-synonym", "names")
def synonym(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A name that means the same in any tool, or shares the declared name's words, is that member.

    schema: {"properties": {"content": {"type": "string"}}, "required": ["content"]}
    before: {"fileContent": "hi"}
    after: {"content": "hi"}
    """
    wanted, parts = squash(name), words(name)
    found: list[str] = []
    for target in declared:
        other = squash(target)
        meant = any(wanted in group and other in group for group in SYNONYMS)
        named = words(target)
        if meant or (parts and named and (parts <= named or named <= parts)):
            found.append(target)
    return found


@rule("weak-alias", "names")
def weak_alias(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A name that is seen for a member of this tool but could also mean itself, used last.

    tool: Grep
    schema: {"properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
    before: {"description": "TODO"}
    after: {"pattern": "TODO"}
    """
    return _from_tables(WEAK_ALIASES, name, declared, place)


@rule("unknown-member", "names")
def is_unknown(name: str, declared: Collection[str]) -> bool:
    """A member the schema forbids is dropped when nothing required is missing.

    schema: {"properties": {"id": {"type": "string"}}, "required": ["id"], "additionalProperties": false}
    before: {"id": "7", "explanation": "look it up"}
    after: {"id": "7"}
    """
    return name not in declared


NAME_RULES = (
    ("name-spelling", same_spelling),
    ("tool-alias", table_alias),
    ("name-synonym", synonym),
    ("weak-alias", weak_alias),
)


def claims(name: str, declared: Collection[str], place: Place, on: Collection[str]) -> list[Claim]:
    """What an undeclared name could mean, the surest reading first."""
    found: list[Claim] = []
    if not declared:
        return found
    for rule_name, function in NAME_RULES:
        if rule_name in on:
            found += [Claim(rule_name, target) for target in function(name, declared, place)]
    return found


def _from_tables(tables: Iterable[ToolFamily], name: str, declared: Iterable[str], place: Place) -> list[str]:
    tool, wanted = squash(place.tool), squash(name)
    families = [family for family in tables if tool in family.tools and family.at == place.pattern]
    return [
        target
        for target in declared
        for family in families
        if any(squash(alias) == wanted for alias in family.names_for(target))
    ]
