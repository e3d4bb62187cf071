"""What only Windows does, tried on any system: a loop that starts no programs, and no Unix sockets."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from support.gateways import Loop, gateway

from dragoman.credentials.base import ReadProblem
from dragoman.credentials.program import MAX_OUTPUT, run_program
from dragoman.credentials.spec import split_words
from dragoman.model.errors import DragomanError


async def unsupported(*_: Any, **__: Any) -> Any:
    raise NotImplementedError


def run(code: str, seconds: float = 30.0) -> bytes | ReadProblem:
    async def work() -> bytes | ReadProblem:
        asyncio.get_running_loop().subprocess_exec = unsupported
        command = [sys.executable, "-SIc", code]
        return await run_program(command, environment=dict(os.environ), seconds=seconds)

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(work())


def told(result: bytes | ReadProblem) -> str:
    assert isinstance(result, ReadProblem)
    return str(result)


def test_a_program_runs_without_the_help_of_the_loop() -> None:
    assert run("print('sk-1', end='')") == b"sk-1"
    assert "exit code 3" in told(run("raise SystemExit(3)"))
    assert "printed nothing" in told(run("pass"))
    assert "printed too much" in told(run(f"print('x' * {MAX_OUTPUT + 1})"))


def test_a_program_that_hangs_is_killed() -> None:
    assert "took more than 1 seconds" in told(run("import time; time.sleep(3600)", 1))


def test_a_missing_program_is_reported() -> None:
    async def work() -> bytes | ReadProblem:
        asyncio.get_running_loop().subprocess_exec = unsupported
        return await run_program(["no-such-program-here"], environment={}, seconds=5)

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        assert "is not installed" in told(runner.run(work()))


def test_a_system_without_unix_sockets_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transport.server.listener.Listener.listen_unix", unsupported)
    text = f'[server]\nunix = "{(tmp_path / "gate.sock").as_posix()}"\n'
    text += '[upstreams.up]\nprotocol = "openai-chat"\n'
    loop = Loop()
    try:
        with (
            pytest.raises(DragomanError, match="this system has no Unix sockets"),
            gateway(text + 'base_url = "http://127.0.0.1:9/v1"\ncredential = "none"\n', loop),
        ):
            pass
    finally:
        loop.close()


def test_backslashes_of_a_path_stay_on_windows() -> None:
    line = r"""'C:\my tools\key.exe' --name "a b" C:\x"""
    assert split_words(line, windows=True) == [r"C:\my tools\key.exe", "--name", "a b", r"C:\x"]
    assert split_words(r"cat a\ b # c", windows=False) == ["cat", "a b", "#", "c"]
    for windows in (True, False):
        with pytest.raises(ValueError, match="quotation"):
            split_words("cat 'a", windows=windows)
