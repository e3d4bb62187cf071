"""Rules for missing members: only values that the schema or the table of known tools makes certain."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ..schema import Node
from .rule import UNCHANGED, Place, rule
from .tables import FAMILIES, squash


@rule("default-value", "defaults")
def schema_default(name: str, node: Node, present: Mapping[str, Any], place: Place) -> Any:
    """A missing required member gets its default value.

    schema: {"properties": {"mode": {"type": "string", "default": "fast"}}, "required": ["mode"]}
    before: {}
    after: {"mode": "fast"}
    """
    default = node.schema.get("default", UNCHANGED)
    return copy.deepcopy(default) if default is not UNCHANGED and node.fits(default) else UNCHANGED


@rule("only-choice", "defaults")
def only_choice(name: str, node: Node, present: Mapping[str, Any], place: Place) -> Any:
    """A missing required member that can have only one value gets that value.

    schema: {"properties": {"kind": {"const": "file"}, "id": {"type": "integer"}}, "required": ["kind"]}
    before: {"id": 1}
    after: {"id": 1, "kind": "file"}
    """
    return node.choices[0] if node.choices and len(node.choices) == 1 else UNCHANGED


# OpenAI's strict mode allows no optional member: schemas for it write "optional" as required and nullable.
@rule("null-for-missing", "defaults")
def explicit_null(name: str, node: Node, present: Mapping[str, Any], place: Place) -> Any:
    """A missing required member that may be null becomes null: strict schemas write optional members so.

    schema: {"properties": {"tag": {"type": ["string", "null"]}}, "required": ["tag"]}
    before: {}
    after: {"tag": null}
    """
    return None if node.wants("null") else UNCHANGED


# Claude Code's TodoWrite requires `activeForm`, which other models leave out (opencode#1319).
@rule("copy-of-sibling", "defaults")
def copy_sibling(name: str, node: Node, present: Mapping[str, Any], place: Place) -> Any:
    """A missing member that repeats another one is copied from it (known tools only).

    tool: TodoWrite
    schema: {"properties": {"todos": {"items": {"properties": {"activeForm": {}},
        "required": ["activeForm"]}}}}
    before: {"todos": [{"content": "Fix"}]}
    after: {"todos": [{"content": "Fix", "activeForm": "Fix"}]}
    """
    tool = squash(place.tool)
    for family in FAMILIES:
        if tool in family.tools and family.at == place.pattern and name in family.copies:
            value = present.get(family.copies[name], UNCHANGED)
            return value if value is not UNCHANGED and node.fits(value) else UNCHANGED
    return UNCHANGED


DEFAULT_RULES = (
    ("default-value", schema_default),
    ("only-choice", only_choice),
    ("null-for-missing", explicit_null),
    ("copy-of-sibling", copy_sibling),
)
