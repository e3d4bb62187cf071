"""The error of a config that cannot be used."""

from __future__ import annotations

from ..model.errors import DragomanError


class ConfigError(DragomanError):
    """The config is invalid. The message has one line per problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
