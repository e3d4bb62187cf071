"""Collecting what a translation could not carry: one notice for each thing, or a refusal when strict."""

from __future__ import annotations

from ...model.errors import BadRequest
from ...model.messages import Notice


class Notices:
    """The notices of one request. Each (rule, path) is said once."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._said: dict[tuple[str, str], Notice] = {}

    def say(self, rule: str, path: str, message: str) -> None:
        """Something is dropped, weakened or emulated; `path` names it in neutral words."""
        if self._strict:
            raise BadRequest(message, path)
        self._said.setdefault((rule, path), Notice(rule, path, message))

    def note(self, rule: str, path: str, message: str) -> None:
        """Something is added, and nothing is lost: for the receipt only, and never refused."""
        self._said.setdefault((rule, path), Notice(rule, path, message, warning=False))

    def all(self) -> tuple[Notice, ...]:
        return tuple(self._said.values())
