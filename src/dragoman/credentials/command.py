"""A secret that a program prints: `gcloud auth print-access-token`, a password manager, a script.

Run without a shell, with a small part of the environment (`surroundings.py`). What it prints on stderr goes
nowhere: nobody can tell whether there is a secret in it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from .base import Problem, Reading, Stamp
from .spec import CredentialSpec
from .surroundings import surroundings
from .values import from_output

MAX_OUTPUT = 256 * 1024
_HELP = (
    "run it by hand to see why; it gets only the usual part of the environment: name variables that it needs "
    "beside that in `env`"
)


class CommandReader:
    """Runs the command when its last answer is about to expire: by `ttl`, or by what its JSON says."""

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

    async def read(self, *, force: bool) -> Reading | Problem:
        began = self._clock()
        output = await self._run()
        if isinstance(output, Problem):
            return Problem(f"the command {self._program} {output.why}")
        found = from_output(output, self._spec.field, now=began)
        if isinstance(found, Problem):
            return Problem(f"what the command {self._program} printed {found.why.removeprefix('printed ')}")
        ttl = self._spec.ttl
        if ttl is None:
            return found
        ends = began + ttl
        return msgspec.structs.replace(found, expires=min(ends, found.expires or ends), ttl=ttl)

    async def _run(self) -> bytes | Problem:
        loop = asyncio.get_running_loop()
        timeout = self._spec.timeout
        try:
            process, heard = await loop.subprocess_exec(
                _Heard,
                *self._command,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=DEVNULL,
                start_new_session=True,
                env=surroundings(self._environment, self._spec.environment),
            )
        except FileNotFoundError:
            return Problem("is not installed, or not on the PATH")
        except (OSError, ValueError) as error:
            return Problem(f"cannot be started ({getattr(error, 'strerror', None) or type(error).__name__})")
        try:
            async with asyncio.timeout(timeout):
                await heard.over
            code = process.get_returncode()
        except TimeoutError:
            return Problem(f"took more than {timeout:g} seconds; run it by hand to see what it waits for")
        finally:
            _kill(process)
            try:
                await heard.exited
            finally:
                process.close()
        output = bytes(heard.output)
        if len(output) > MAX_OUTPUT:
            return Problem("printed too much for a credential")
        if code:
            return Problem(f"failed with exit code {code}; {_HELP}")
        return output if output.strip() else Problem(f"printed nothing; {_HELP}")


class _Heard(asyncio.SubprocessProtocol):
    """What the command has printed."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.output = bytearray()
        self.over: asyncio.Future[None] = loop.create_future()
        """It has ended and said all, or too much."""
        self.exited: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data
        if len(self.output) > MAX_OUTPUT:
            _set(self.over)

    def process_exited(self) -> None:
        _set(self.exited)

    def connection_lost(self, exc: Exception | None) -> None:
        _set(self.exited)
        _set(self.over)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _kill(process: asyncio.SubprocessTransport) -> None:
    """Leave nothing running, the command's own children included."""
    if process.get_returncode() is None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.get_pid(), signal.SIGKILL)
            else:
                process.kill()
