"""Runs `dragoman` as a process and reads its output meanwhile."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE = 20.0
# The only inherited variables: provider keys and proxies of the machine must not affect a test.
KEPT = ("PATH", "PYTHONPATH", "COVERAGE_PROCESS_START", "PYTHONDONTWRITEBYTECODE")


def accept_ctrl_c() -> None:
    """A `preexec_fn`: a shell starts background jobs with SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Process:
    """A running command and its output."""

    def __init__(self, folder: Path, *args: str, **env: str) -> None:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "dragoman", *args],
            cwd=folder,
            env={**kept, "HOME": str(folder), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=accept_ctrl_c,
        )
        self.pid = self._popen.pid
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def said(self) -> str:
        return "".join(self._lines)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until the output matches `pattern`."""
        end = time.monotonic() + _PATIENCE
        with self._news:
            while not (found := re.search(pattern, self.said)):
                left = end - time.monotonic()
                assert left > 0, f"no {pattern!r} in:\n{self.said}"
                self._news.wait(left)
        return found

    def ready(self) -> str:
        """Wait until the gateway serves. Returns its address."""
        return self.wait_for(r"Dragoman is at (http://[^\s,]+?)[:,] ").group(1)

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def interrupt(self) -> None:
        """Ctrl-C: every process of the terminal gets it."""
        os.killpg(self.pid, signal.SIGINT)

    def wait(self) -> int:
        return self._popen.wait(_PATIENCE)

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def kill(self) -> None:
        """Kill the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(_PATIENCE)
        self._reader.join(_PATIENCE)

    def _read(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as lines:
            for line in lines:
                with self._news:
                    self._lines.append(line)
                    self._news.notify_all()


@contextmanager
def dragoman(folder: Path, *args: str, **env: str) -> Iterator[Process]:
    """Run the command, at most until the block ends."""
    process = Process(folder, *args, **env)
    try:
        yield process
    finally:
        process.kill()
