"""The facts that every part of one call's correction shares: tool, schema, rules, fixes so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..rules import Fix, FixLog, Rules
from ..schema import ToolSchema

Inner = tuple[str, dict[str, Any], list[Fix]]
"""Corrected arguments that were found inside a text: the text, its value, the fixes."""


class CallContext:
    """One call while its arguments are corrected."""

    __slots__ = ("_noted", "correct_inner", "fixes", "name", "rules", "schema")

    def __init__(
        self, name: str, schema: ToolSchema, rules: Rules, correct_inner: Callable[[str], Inner | None]
    ) -> None:
        self.name = name
        self.schema = schema
        self.rules = rules
        self.fixes = FixLog()
        self.correct_inner = correct_inner
        """Corrects a text inside the arguments as if it were the arguments."""
        self._noted: set[tuple[str, str]] = set()

    def note_once(self, rule: str, path: str, before: str, after: str) -> None:
        """Add a fix, unless this rule already has one for this path: a file may have 1,000 raw newlines."""
        if (rule, path) not in self._noted:
            self._noted.add((rule, path))
            self.fixes.add(rule, path, before, after)
