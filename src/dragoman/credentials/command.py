"""A secret that a program prints: `gcloud auth print-access-token`, a password manager, a script.

The command runs without a shell (`program.py`) and with a small part of the environment
(`command_environment.py`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import msgspec

from .base import Reading, ReadProblem, Stamp
from .command_environment import command_environment
from .program import run_program
from .spec import CredentialSpec
from .values import from_output


class CommandReader:
    """Runs the command again before its output expires: after `ttl`, or at the time in its JSON."""

    renews = True
    pause = 5.0

    def __init__(
        self, spec: CredentialSpec, *, environment: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        command = spec.command
        self._program = command[0]
        self._command = (os.path.expanduser(command[0]), *command[1:])
        self._spec = spec
        self._environment = environment
        self._clock = clock

    def stamp(self) -> Stamp:
        return Stamp()

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        began = self._clock()
        output = await self._run()
        if isinstance(output, ReadProblem):
            return ReadProblem(f"the command {self._program} {output.why}")
        found = from_output(output, self._spec.field, now=began)
        if isinstance(found, ReadProblem):
            return ReadProblem(
                f"what the command {self._program} printed {found.why.removeprefix('printed ')}"
            )
        ttl = self._spec.ttl
        if ttl is None:
            return found
        ends = began + ttl
        return msgspec.structs.replace(found, expires=min(ends, found.expires or ends), ttl=ttl)

    async def _run(self) -> bytes | ReadProblem:
        environment = command_environment(self._environment, self._spec.environment)
        return await run_program(self._command, environment=environment, seconds=self._spec.timeout)
