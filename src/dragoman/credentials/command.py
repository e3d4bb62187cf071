"""A secret that a program prints: `gcloud auth print-access-token`, a password manager, a script.

Run without a shell. What it prints on stderr goes nowhere: nobody can tell whether there is a secret in it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import suppress

import msgspec

from .base import Problem, Reading, Stamp
from .values import from_output

MAX_OUTPUT = 256 * 1024


class CommandReader:
    """Runs the command when its last answer is about to expire: by `ttl`, or by what its JSON says."""

    renews = True
    pause = 5.0

    def __init__(
        self,
        command: tuple[str, ...],
        *,
        field: str,
        ttl: float | None,
        timeout: float,
        clock: Callable[[], float],
    ) -> None:
        self._program = command[0]
        self._command = (os.path.expanduser(command[0]), *command[1:])
        self._field = field
        self._ttl = ttl
        self._timeout = timeout
        self._clock = clock

    def stamp(self) -> Stamp:
        return Stamp()

    async def read(self, *, force: bool) -> Reading | Problem:
        began = self._clock()
        output = await self._run()
        if isinstance(output, Problem):
            return Problem(f"the command {self._program} {output.why}")
        found = from_output(output, self._field, now=began)
        if isinstance(found, Problem):
            return Problem(f"what the command {self._program} printed {found.why.removeprefix('printed ')}")
        if self._ttl is None:
            return found
        ends = began + self._ttl
        return msgspec.structs.replace(found, expires=min(ends, found.expires or ends))

    async def _run(self) -> bytes | Problem:
        loop = asyncio.get_running_loop()
        try:
            process, heard = await loop.subprocess_exec(
                _Heard, *self._command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
            )
        except FileNotFoundError:
            return Problem("is not installed, or not on the PATH")
        except (OSError, ValueError) as error:
            return Problem(f"cannot be started ({getattr(error, 'strerror', None) or type(error).__name__})")
        try:
            async with asyncio.timeout(self._timeout):
                await heard.over
            code = process.get_returncode()
        except TimeoutError:
            return Problem(
                f"took more than {self._timeout:g} seconds; run it by hand to see what it waits for"
            )
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
            return Problem(f"failed with exit code {code}; run it by hand to see why")
        return output if output.strip() else Problem("printed nothing; run it by hand to see why")


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
