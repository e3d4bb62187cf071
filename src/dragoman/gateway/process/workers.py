"""Several gateway processes on one port: starts them, replaces those that die, and stops all together."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import socket
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from ...model.errors import DragomanError

log = logging.getLogger("dragoman.gateway")

Work = Callable[[Callable[[], None]], None]
"""The function that a worker runs. It calls its argument when it accepts requests."""

_CHECK_INTERVAL = 5.0  # seconds; the end of a worker or a signal ends the wait at once
_RESTART_DELAY = 1.0  # seconds; if every new worker dies too, the restarts must not spin


class Workers:
    """Replaces a worker that dies. A worker that never becomes ready, or a signal, stops all."""

    def __init__(
        self, count: int, work: Work, ready: Callable[[], None], on_exit: Callable[[int], None]
    ) -> None:
        """`on_exit` gets the pid of each worker that died and is replaced."""
        # Not "fork": it is unsafe if a library has started a thread.
        self._context = multiprocessing.get_context("spawn")
        self._count = count
        self._work = work
        self._ready = ready
        self._on_exit = on_exit
        self._signals = 0
        self._wakeup_reader, self._wakeup_writer = socket.socketpair()
        self._processes: dict[int, tuple[SpawnProcess, Connection]] = {}
        self._ready_workers: set[int] = set()

    def run(self) -> None:
        """Run until a signal comes."""
        self._listen_for_signals()
        try:
            for number in range(self._count):
                self._start(number)
            while not self._signals:
                self._check()
        finally:
            self._stop()

    def _listen_for_signals(self) -> None:
        self._wakeup_writer.setblocking(False)
        self._wakeup_reader.setblocking(False)
        signal.set_wakeup_fd(self._wakeup_writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self._signals += 1

    def _start(self, number: int) -> None:
        receiver, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_run, args=(self._work, sender))
        process.start()
        sender.close()
        self._processes[number] = (process, receiver)

    def _check(self) -> None:
        """Wait for news of the workers. Note those that are ready, and replace those that ended."""
        processes = self._processes.items()
        self._wait([receiver for number, (_, receiver) in processes if number not in self._ready_workers])
        for number, (process, receiver) in list(self._processes.items()):
            if number not in self._ready_workers and _is_ready(receiver):
                self._ready_workers.add(number)
                log.info("worker ready", extra={"pid": process.pid})
                if len(self._ready_workers) == self._count:
                    self._ready()
            if not process.is_alive() and not self._signals:
                self._replace(number, process)

    def _replace(self, number: int, process: SpawnProcess) -> None:
        if number not in self._ready_workers:
            raise DragomanError("a worker could not start; its messages above say why")
        log.warning("worker ended and is replaced", extra={"pid": process.pid, "code": process.exitcode})
        if process.pid is not None:
            self._on_exit(process.pid)
        time.sleep(_RESTART_DELAY)
        self._start(number)

    def _stop(self) -> None:
        """Pass each signal on to the workers. The second one makes them cancel their running answers."""
        passed_on = -1
        while any(process.is_alive() for process, _ in self._processes.values()):
            if self._signals > passed_on:
                passed_on = self._signals
                for process, _ in self._processes.values():
                    process.terminate()
            self._wait([])

    def _wait(self, pipes: list[Connection]) -> None:
        alive = [process.sentinel for process, _ in self._processes.values() if process.is_alive()]
        if self._wakeup_reader in wait([*pipes, *alive, self._wakeup_reader], timeout=_CHECK_INTERVAL):
            self._wakeup_reader.recv(64)


def _is_ready(receiver: Connection) -> bool:
    try:
        return receiver.poll() and receiver.recv_bytes() == b"ready"
    except EOFError:
        return False


def _run(work: Work, sender: Connection) -> None:
    # Ctrl-C reaches every process of the terminal. Only the parent reacts, and passes it on as SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work(lambda: sender.send_bytes(b"ready"))
