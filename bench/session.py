"""A session: upstream, load generator and running gateways, with one interface for requests and CPU."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec

from .load import Job, Outcome
from .processes import Helper, Running
from .shapes import Shape
from .subjects import Subject


class Bench:
    """The helper processes and the running gateways."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._upstream = Helper("bench.upstream", folder)
        self._load = Helper("bench.load", folder)
        self.upstream_port = int(self._upstream.read())
        self._running: dict[str, Running] = {}
        self.seed = 0

    def running(self, subject: Subject) -> Running:
        """The gateway, started at its first use."""
        if subject.name not in self._running:
            self._running[subject.name] = self.started(subject)
        return self._running[subject.name]

    def started(self, subject: Subject) -> Running:
        folder = self.folder / f"{subject.name}-{time.monotonic_ns()}"
        folder.mkdir()
        running = subject.start(folder, self.upstream_port)
        try:
            running.wait_until_listening()
        except RuntimeError:
            running.stop()
            raise
        return running

    def job(
        self, subject: Subject, running: Running, pair: tuple[str, str], shape: Shape, **more: object
    ) -> Job:
        place, port = subject.pairs[pair], str(self.upstream_port)
        return Job(
            port=running.port,
            protocol=pair[0],
            shape=shape,
            path=place.path,
            model=place.model,
            headers={name: text.replace("{upstream}", port) for name, text in place.headers.items()},
            **more,  # pyright: ignore[reportArgumentType]
        )

    def load(self, job: Job) -> Outcome:
        return msgspec.json.decode(self._load.ask(msgspec.json.encode(job)), type=Outcome)

    def cpu(self, running: Running, job: Job) -> float:
        """The CPU seconds of a job. A wrong answer is an error."""
        before = running.settled_cpu()
        self.answered(job)
        return running.settled_cpu() - before

    def answered(self, job: Job) -> Outcome:
        """Run a job. Raises if an answer is wrong."""
        outcome = self.load(job)
        if outcome.wrong:
            raise WrongAnswer(f"{len(outcome.wrong)} of {outcome.requests} answers: {outcome.wrong[0]}")
        return outcome

    def stop(self, subject: Subject) -> None:
        """Stop a gateway. The next use starts it again."""
        if subject.name in self._running:
            self._running.pop(subject.name).stop()

    def close(self) -> None:
        for running in self._running.values():
            running.stop()
        self._load.stop()
        self._upstream.stop()


class WrongAnswer(Exception):
    """A gateway's answer differs from the upstream's."""


class Peak:
    """Samples the memory of a process."""

    def __init__(self, running: Running) -> None:
        self.memory = 0.0
        self._running = running
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._stop.wait(1.0):
            self.memory = max(self.memory, self._running.memory())

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
