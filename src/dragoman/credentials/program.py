"""Running a program of the config: no shell, few environment variables, bounded time and output.

Its stderr is discarded and never logged: it may contain a secret.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress

from .base import ReadProblem

# A token has a few kilobytes. A command that prints more is not the right one.
MAX_OUTPUT = 256 * 1024
_HELP = (
    "run it by hand to see why; it gets only common environment variables: list the others that it needs "
    "in `env`"
)


async def run_program(
    command: Sequence[str], *, environment: Mapping[str, str], seconds: float
) -> bytes | ReadProblem:
    """What the program prints in `seconds`. `environment` is all of its environment."""
    loop = asyncio.get_running_loop()
    try:
        process, collector = await loop.subprocess_exec(
            _OutputCollector,
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            start_new_session=True,
            env=environment,
        )
    except FileNotFoundError:
        return ReadProblem("is not installed, or not on the PATH")
    except (OSError, ValueError) as error:
        return ReadProblem(f"cannot be started ({getattr(error, 'strerror', None) or error})")
    try:
        async with asyncio.timeout(seconds):
            await collector.done
        code = process.get_returncode()
    except TimeoutError:
        return ReadProblem(f"took more than {seconds:g} seconds; run it by hand to see what it waits for")
    finally:
        _kill(process)
        try:
            await collector.exited
        finally:
            process.close()
    output = bytes(collector.output)
    if len(output) > MAX_OUTPUT:
        return ReadProblem(f"printed too much: more than {MAX_OUTPUT // 1024} KB")
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
