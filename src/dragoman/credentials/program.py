"""Running a program of the config: no shell, few environment variables, bounded time and output.

Its stderr is discarded and never logged: it may contain a secret.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
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
    except NotImplementedError:  # Windows: the loop that can watch sockets starts no programs
        return await asyncio.to_thread(_run_in_thread, command, environment, seconds)
    except (OSError, ValueError) as error:
        return _not_started(error)
    try:
        async with asyncio.timeout(seconds):
            await collector.done
        code = process.get_returncode()
    except TimeoutError:
        return _too_slow(seconds)
    finally:
        _kill(process)
        try:
            await collector.exited
        finally:
            process.close()
    return _judged(bytes(collector.output), code)


def _run_in_thread(
    command: Sequence[str], environment: Mapping[str, str], seconds: float
) -> bytes | ReadProblem:
    """The same, and blocks."""
    try:
        process = subprocess.Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, env=environment)
    except (OSError, ValueError) as error:
        return _not_started(error)
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    assert process.stdout is not None
    with process.stdout:
        output = process.stdout.read(MAX_OUTPUT + 1)
    if len(output) > MAX_OUTPUT:
        process.kill()
    code = process.wait()
    timer.cancel()
    return _too_slow(seconds) if late.is_set() else _judged(output, code)


def _not_started(error: OSError | ValueError) -> ReadProblem:
    if isinstance(error, FileNotFoundError):
        return ReadProblem("is not installed, or not on the PATH")
    return ReadProblem(f"cannot be started ({getattr(error, 'strerror', None) or error})")


def _too_slow(seconds: float) -> ReadProblem:
    return ReadProblem(f"took more than {seconds:g} seconds; run it by hand to see what it waits for")


def _judged(output: bytes, code: int | None) -> bytes | ReadProblem:
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
