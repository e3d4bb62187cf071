"""One thread that owns the database connection that writes, so that no event loop ever waits for a disk or a
lock.

Jobs that queued up while it was busy are done together, in one transaction: a commit costs the same for
one as for a hundred.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from .types import StoreError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_MOST_AT_ONCE = 256


class _Job(NamedTuple):
    work: Work[Any]
    writes: bool
    future: Future[Any]
    first: Callable[[], None] | None


class Worker:
    """Does jobs in the order they come. May be given them from any thread."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        problem: Callable[[Exception], StoreError],
        after_writes: Callable[[sqlite3.Connection, int], None],
    ) -> None:
        """`after_writes` is called between transactions with how many writing jobs were just done."""
        self._connection = connection
        self._problem = problem
        self._after_writes = after_writes
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._ended: Future[None] = Future()
        threading.Thread(target=self._run, name="dragoman-store", daemon=True).start()

    def submit(self, work: Work[T], *, writes: bool, first: Callable[[], None] | None = None) -> Future[T]:
        """A write is done even if nobody waits for it any more. What takes long and needs no database comes
        `first`: meanwhile nobody is kept from the file."""
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                raise StoreError("the store is closed: it takes nothing more")
            self._jobs.put(_Job(work, writes, future, first))
        return future

    def close(self) -> Future[None]:
        """Everything submitted before is still done."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        return self._ended

    def _run(self) -> None:
        while True:
            jobs, last = self._waiting()
            if jobs:
                self._do(jobs)
            if last:
                break
        self._connection.close()
        self._ended.set_result(None)

    def _waiting(self) -> tuple[list[_Job], bool]:
        """The jobs that are there, once there are any, and whether they are the last."""
        jobs: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            if _is_ready(job):
                jobs.append(job)
            if len(jobs) >= _MOST_AT_ONCE:
                return jobs, False
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return jobs, False
        return jobs, True

    def _do(self, jobs: list[_Job]) -> None:
        writes = sum(job.writes for job in jobs)
        try:
            results = self._transaction(jobs) if writes else [job.work(self._connection) for job in jobs]
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
            for job in jobs:
                if not job.future.cancelled():
                    job.future.set_exception(self._problem(error))
            return
        for job, result in zip(jobs, results, strict=True):
            if not job.future.cancelled():
                job.future.set_result(result)
        if writes:
            with suppress(sqlite3.Error):  # the next one tries again, and tells if the file is broken
                self._after_writes(self._connection, writes)

    def _transaction(self, jobs: list[_Job]) -> list[Any]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            results = [job.work(connection) for job in jobs]
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return results


def _is_ready(job: _Job) -> bool:
    """May it be done now? Whoever does not wait for what was to be read has gone."""
    if not job.future.set_running_or_notify_cancel() and not job.writes:
        return False
    try:
        if job.first is not None:
            job.first()
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
        if not job.future.cancelled():
            job.future.set_exception(error)
        return False
    return True
