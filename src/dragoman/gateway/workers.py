"""Several gateway processes on one port: started, watched, replaced when one dies, and ended together."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from ..model.errors import DragomanError

log = logging.getLogger("dragoman.gateway")

Work = Callable[[Callable[[], None]], None]
"""What a worker does. It calls what it is given once it answers."""

_LOOK = 5.0  # seconds between looks at the children; what happens to them, or a signal, is seen at once
_PAUSE = 1.0  # before a dead worker is replaced: what killed it may kill the next as well


class Workers:
    """One that dies is replaced; one that never begins, or a signal, ends them all."""

    def __init__(
        self, count: int, work: Work, ready: Callable[[], None], gone: Callable[[int], None]
    ) -> None:
        """`gone` is told the pid of each that died and is replaced."""
        self._context = multiprocessing.get_context("spawn")
        self._count = count
        self._work = work
        self._ready = ready
        self._gone = gone
        self._signals = 0
        self._wakes, self._wake = socket.socketpair()
        self._processes: dict[int, tuple[SpawnProcess, Connection]] = {}
        self._begun: set[int] = set()

    def run(self) -> None:
        """Until a signal ends it."""
        self._listen_for_signals()
        try:
            for number in range(self._count):
                self._start(number)
            while not self._signals:
                self._look()
        finally:
            self._end()

    def _listen_for_signals(self) -> None:
        self._wake.setblocking(False)
        self._wakes.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told)

    def _told(self, *_: object) -> None:
        self._signals += 1

    def _start(self, number: int) -> None:
        hears, tells = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_run, args=(self._work, tells))
        process.start()
        tells.close()
        self._processes[number] = (process, hears)

    def _look(self) -> None:
        """Who has begun, and who has ended."""
        self._wait([hears for number, (_, hears) in self._processes.items() if number not in self._begun])
        for number, (process, hears) in list(self._processes.items()):
            if number not in self._begun and _has_begun(hears):
                self._begun.add(number)
                log.info("a worker answers", extra={"pid": process.pid})
                if len(self._begun) == self._count:
                    self._ready()
            if not process.is_alive() and not self._signals:
                self._ended(number, process)

    def _ended(self, number: int, process: SpawnProcess) -> None:
        if number not in self._begun:
            raise DragomanError("a worker could not begin; what it said above is why")
        log.warning("a worker ended and is replaced", extra={"pid": process.pid, "code": process.exitcode})
        if process.pid is not None:
            self._gone(process.pid)
        time.sleep(_PAUSE)
        self._start(number)

    def _end(self) -> None:
        """Every further signal is passed on too: the second one is meant for those that take too long."""
        told = -1
        while any(process.is_alive() for process, _ in self._processes.values()):
            if self._signals > told:
                told = self._signals
                for process, _ in self._processes.values():
                    process.terminate()
            self._wait([])

    def _wait(self, pipes: list[Connection]) -> None:
        alive = [process.sentinel for process, _ in self._processes.values() if process.is_alive()]
        if self._wakes in wait([*pipes, *alive, self._wakes], timeout=_LOOK):
            self._wakes.recv(64)


def _has_begun(hears: Connection) -> bool:
    try:
        return hears.poll() and hears.recv_bytes() == b"ready"
    except EOFError:
        return False


def _run(work: Work, tells: Connection) -> None:
    # Ctrl-C reaches every process of the terminal; the first one passes it on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work(lambda: tells.send_bytes(b"ready"))
