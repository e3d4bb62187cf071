"""Collect notices: one for each part of a request that could not be carried over."""

from __future__ import annotations

from ...model.errors import BadRequest
from ...model.messages import Notice


class Notices:
    """The notices of one request. Each pair of rule and path occurs once."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._notices: dict[tuple[str, str], Notice] = {}

    def warn(self, rule: str, path: str, message: str) -> None:
        """Note that the field at `path` is dropped, weakened or emulated. If `strict`, refuse the request."""
        if self._strict:
            raise BadRequest(message, path)
        self._notices.setdefault((rule, path), Notice(rule, path, message))

    def note(self, rule: str, path: str, message: str) -> None:
        """Note that Dragoman added something. Nothing is lost, so only the receipt shows it."""
        self._notices.setdefault((rule, path), Notice(rule, path, message, warning=False))

    def all(self) -> tuple[Notice, ...]:
        return tuple(self._notices.values())
