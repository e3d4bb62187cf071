"""Rules for names: a member that the schema does not declare, while a declared one is missing.

Only keys are renamed, on their own level, to a member that is declared and missing, and only if no other
member can be meant. If the schema allows extra members, only a missing *required* member counts: otherwise
the call is valid. One exception: a name that differs from a declared one only in case and separators
(`replace_all` for `replaceAll`) is always renamed, because no tool has both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from .rule import Place, rule
from .tables import FAMILIES, SYNONYMS, WEAK_ALIASES, ToolFamily, squash, words


class Claim(NamedTuple):
    """A member that an undeclared name may mean, and the rule that says so."""

    rule: str
    target: str


@rule("name-spelling", "names")
def same_spelling(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A name with other case or separators becomes the declared name.

    schema: {"properties": {"deepSearch": {"type": "boolean"}}, "required": ["deepSearch"]}
    before: {"deepsearch": true}
    after: {"deepSearch": true}
    """
    wanted = squash(name)
    return [target for target in declared if squash(target) == wanted] if wanted else []


# Gemini behind Claude Code writes `path` for Read, `query` for Grep. The table has what users of gateways
# reported.
@rule("tool-alias", "names")
def table_alias(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A name that models often use for a member of this agent's tool becomes that member.

    tool: Bash
    schema: {"properties": {"command": {"type": "string"}}, "required": ["command"]}
    before: {"prompt": "git status"}
    after: {"command": "git status"}
    """
    return _from_tables(FAMILIES, name, declared, place)


@rule("name-synonym", "names")
def synonym(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A synonym, or a name with the words of the declared name, becomes the declared name.

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


# Gemini writes the pattern of Grep as `description`. But a tool may have a real member of that name.
@rule("weak-alias", "names")
def weak_alias(name: str, declared: Iterable[str], place: Place) -> list[str]:
    """A name that models use for a member of this tool, but that may be meant literally. Tried last.

    tool: Grep
    schema: {"properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
    before: {"description": "TODO"}
    after: {"pattern": "TODO"}
    """
    return _from_tables(WEAK_ALIASES, name, declared, place)


# Strict MCP servers refuse a call with an extra member: quickbooks-online-mcp-server#135.
@rule("unknown-member", "names")
def is_unknown(name: str, declared: Collection[str]) -> bool:
    """A member that the schema forbids is dropped, if no required member is missing.

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
    """The members that an undeclared name may mean, the most certain one first."""
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
