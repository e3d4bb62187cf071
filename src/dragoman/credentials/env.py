"""A secret in an environment variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .base import Reading, ReadProblem, Stamp
from .secret import Secret
from .values import extract


class EnvReader:
    """Checks the variable for every request: a program that embeds Dragoman may change it."""

    renews = False
    pause = 0.25

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._name = name
        self._environment = environment
        self._remember("")

    def _remember(self, value: str) -> None:
        # Kept in a closure, as in `Secret`: a tool that prints attributes must not show it.
        self._is_same: Callable[[str], bool] = lambda other: other == value
        self._stamp = Stamp((Secret(value),))

    def stamp(self) -> Stamp:
        try:
            value = self._environment[self._name]
        except KeyError:
            value = ""
        if not self._is_same(value):
            self._remember(value)
        return self._stamp

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        value = Secret(self._environment.get(self._name, ""))
        if not value.reveal().strip():
            return ReadProblem(f"the environment variable {self._name} is not set; set it and restart")
        found = extract(value.reveal(), "", now=0.0)
        if isinstance(found, ReadProblem):
            return ReadProblem(f"the environment variable {self._name} {found.why}")
        return found
