"""A secret in an environment variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .base import Problem, Reading, Stamp
from .secret import Secret
from .values import extract


class EnvReader:
    """Reads a variable of the process, each time: a program that embeds Dragoman may change it."""

    renews = False
    pause = 0.25

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self._name = name
        self._environment = environment
        self._see("")

    def _see(self, value: str) -> None:
        # Not kept as it is: see `Secret`.
        self._is_same: Callable[[str], bool] = lambda other: other == value
        self._stamp = Stamp((Secret(value),))

    def stamp(self) -> Stamp:
        try:
            value = self._environment[self._name]
        except KeyError:
            value = ""
        if not self._is_same(value):
            self._see(value)
        return self._stamp

    async def read(self, *, force: bool) -> Reading | Problem:
        value = Secret(self._environment.get(self._name, ""))
        if not value.reveal().strip():
            return Problem(f"the environment variable {self._name} is not set; set it and start again")
        found = extract(value.reveal(), "", now=0.0)
        if isinstance(found, Problem):
            return Problem(f"the environment variable {self._name} {found.why}")
        return found
