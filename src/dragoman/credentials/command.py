"""A secret that a program prints: `gcloud auth print-access-token`, a password manager, a script.

The command runs without a shell and with a small part of the environment (`command_environment.py`). Its
stderr is discarded and never logged: it may contain a secret.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from .base import Reading, ReadProblem, Stamp
from .command_environment import command_environment
from .spec import CredentialSpec
from .values import from_output

MAX_OUTPUT = 256 * 1024
_HELP = (
    "run it by hand to see why; it gets only common environment variables: list the others that it needs "
    "in `env`"
)


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
        loop = asyncio.get_running_loop()
        timeout = self._spec.timeout
        try:
            process, collector = await loop.subprocess_exec(
                _OutputCollector,
                *self._command,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=DEVNULL,
                start_new_session=True,
                env=command_environment(self._environment, self._spec.environment),
            )
        except FileNotFoundError:
            return ReadProblem("is not installed, or not on the PATH")
        except (OSError, ValueError) as error:
            return ReadProblem(
                f"cannot be started ({getattr(error, 'strerror', None) or type(error).__name__})"
            )
        try:
            async with asyncio.timeout(timeout):
                await collector.done
            code = process.get_returncode()
        except TimeoutError:
            return ReadProblem(f"took more than {timeout:g} seconds; run it by hand to see what it waits for")
        finally:
            _kill(process)
            try:
                await collector.exited
            finally:
                process.close()
        output = bytes(collector.output)
        if len(output) > MAX_OUTPUT:
            return ReadProblem(f"printed too much for a credential: more than {MAX_OUTPUT // 1024} KB")
        if code:
            return ReadProblem(f"failed with exit code {code}; {_HELP}")
        return output if output.strip() else ReadProblem(f"printed nothing; {_HELP}")


class _OutputCollector(asyncio.SubprocessProtocol):
    """Collects what the command prints."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.output = bytearray()
        self.done: asyncio.Future[None] = loop.create_future()
        """The command has ended and its output is complete, or its output is too large."""
        self.exited: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data
        if len(self.output) > MAX_OUTPUT:
            _set(self.done)

    def process_exited(self) -> None:
        _set(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:
        _set(self.exited)
        _set(self.done)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _kill(process: asyncio.SubprocessTransport) -> None:
    """Kill the command and its children. `start_new_session` made them one process group."""
    if process.get_returncode() is None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.get_pid(), signal.SIGKILL)
            else:
                process.kill()
