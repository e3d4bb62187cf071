"""Collect notices: one for each part of a request that could not be carried over (law 39)."""

from __future__ import annotations

from ...model.errors import BadRequest
from ...model.messages import Notice


class Notices:
    """The notices of one request. Each pair of rule and path occurs once."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._said: dict[tuple[str, str], Notice] = {}

    def say(self, rule: str, path: str, message: str) -> None:
        """Note that the field at `path` is dropped, weakened or emulated. If `strict`, refuse the request."""
        if self._strict:
            raise BadRequest(message, path)
        self._said.setdefault((rule, path), Notice(rule, path, message))

    def note(self, rule: str, path: str, message: str) -> None:
        """Something is added, and nothing is lost: for the receipt only, and never refused."""
        self._said.setdefault((rule, path), Notice(rule, path, message, warning=False))

    def all(self) -> tuple[Notice, ...]:
        return tuple(self._said.values())
