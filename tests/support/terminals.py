"""Runs `dragoman` on a pseudo-terminal, reads its questions and types answers."""

import contextlib
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .processes import KEPT

_PATIENCE = 20.0

# A session leader that opens a terminal gets it as its controlling terminal, so Ctrl-C becomes a signal.
# A shell starts background jobs with SIGINT ignored, and children inherit that.
_ON_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
terminal = os.open(sys.argv.pop(1), os.O_RDWR)
for number in range(3):
    os.dup2(terminal, number)
sys.argv[0] = "dragoman"
from dragoman.cli import main
main()
"""


class Terminal:
    def __init__(self, ours: int, process: subprocess.Popen[bytes]) -> None:
        self._ours = ours
        self._process = process
        self.said = ""
        self._read = 0

    def expect(self, wanted: str) -> None:
        """Wait for `wanted` after the last expected text."""
        self.expect_any(wanted)

    def expect_any(self, *wanted: str) -> str:
        """Wait for the first of `wanted`. Returns it."""
        while not (found := [each for each in wanted if each in self.said[self._read :]]):
            self._hear(" or ".join(wanted))
        first = min(found, key=lambda each: self.said.index(each, self._read))
        self._read = self.said.index(first, self._read) + len(first)
        return first

    def _hear(self, wanted: str) -> None:
        ready, _, _ = select.select([self._ours], [], [], _PATIENCE)
        assert ready, f"no {wanted!r} in:\n{self.said}"
        self.said += os.read(self._ours, 65536).decode()

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def answer(self, question: str, text: str) -> None:
        self.expect(question)
        self.type(f"{text}\n")

    def interrupt(self) -> int:
        """Press Ctrl-C until the process ends. Python misses one at the moment it starts to read a line."""
        for _ in range(int(_PATIENCE)):
            self.type("\x03")
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(1)
        raise AssertionError(f"Ctrl-C does not end it:\n{self.said}")

    def wait(self) -> int:
        return self._process.wait(_PATIENCE)


@contextmanager
def on_terminal(folder: Path, *args: str, **env: str) -> Iterator[Terminal]:
    """Run the command, at most until the block ends."""
    ours, theirs = pty.openpty()
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-c", _ON_TERMINAL, os.ttyname(theirs), *args],
        cwd=folder,
        env={**kept, "HOME": str(folder), "TERM": "xterm", **env},
        start_new_session=True,
    )
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)
