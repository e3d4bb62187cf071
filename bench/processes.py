"""Measured processes: started alone, watched through /proc, always stopped. Linux only."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
_PARENT = re.compile(r"\) \S (\d+) ")
_START_PATIENCE = 90.0


def environment(folder: Path, **more: str) -> dict[str, str]:
    """An environment as users have it: compiled files are cached, and nothing is written outside `folder`."""
    unwanted = {"PYTHONDONTWRITEBYTECODE", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    places = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    return {**kept, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **places, **more}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A process and its children."""

    def __init__(self, command: list[str], *, folder: Path, port: int = 0, **env: str) -> None:
        self.port = port
        self.folder = folder
        self._log = (folder / f"log-{port}.txt").open("wb+")
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(folder, **env),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait_until_listening(self) -> None:
        while time.monotonic() - self.started < _START_PATIENCE:
            if self._process.poll() is not None:
                raise RuntimeError(f"it ended with {self._process.returncode}: {self.said()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.002)
        raise RuntimeError(f"it does not listen after {_START_PATIENCE:g} s: {self.said()}")

    def said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-3000:]

    def pids(self) -> list[int]:
        """The process and all that descend from it."""
        family = {self._process.pid}
        parents = _parents()
        while found := {pid for pid, parent in parents.items() if parent in family} - family:
            family |= found
        return sorted(family)

    def cpu(self) -> float:
        """Seconds of processor time, user and system, of the whole tree."""
        total = 0.0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                total += time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3) of another process
        return total

    def settled_cpu(self) -> float:
        """The same after deferred work is done."""
        before = self.cpu()
        for _ in range(25):
            time.sleep(0.02)
            now = self.cpu()
            if now - before < 0.0005:
                return now
            before = now
        return before

    def memory(self) -> float:
        """Resident MB of the whole tree."""
        total = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
                total += int(found[1]) if found else 0
        return total / 1024

    def stop(self) -> None:
        children = self.pids()
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(3)
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, 9)
        self._process.wait()
        self._log.close()


def _parents() -> dict[int, int]:
    found: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                parent = _PARENT.search(Path(f"/proc/{entry}/stat").read_text())
                found[int(entry)] = int(parent[1]) if parent else 0
    return found


class Helper:
    """The upstream or the load generator as a process."""

    def __init__(self, module: str, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, line: bytes) -> bytes:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return self.read()

    def read(self) -> bytes:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a helper of the bench ended")
        return line

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()
