"""One thread that owns the database connection that writes, so that no event loop ever waits for a disk or a
lock.

Jobs that queued up while it was busy are done together, in one transaction: a commit costs the same for
one as for a hundred. While another program holds the file, writes are put aside and tried again; reads go on.
A job that fails takes no other job with it, and never the thread.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from .types import StoreError

log = logging.getLogger("dragoman.store")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_MOST_AT_ONCE = 256
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
# Seconds between two tries to write while another program holds the file.
_RETRY = 0.25
# Of the writes that wait for that. More of them, and the oldest are lost.
_MOST_ASIDE = 10_000
_MOST_ASIDE_BYTES = 64 << 20
# Seconds for which a last try is made when the store is closed.
_LAST_TRY = 2.0


class _Job(NamedTuple):
    work: Work[Any]
    writes: bool
    future: Future[Any]
    first: Callable[[], None] | None
    size: int


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
        self._aside: deque[_Job] = deque()
        """Writes that wait until the file can be written again."""
        self._aside_bytes = 0
        self._retry_at = 0.0
        self.trouble = ""
        """Why nothing can be written at the moment, as a sentence."""
        self._closing = threading.Lock()
        self._closed = False
        self._ended: Future[None] = Future()
        threading.Thread(target=self._run, name="dragoman-store", daemon=True).start()

    def submit(
        self, work: Work[T], *, writes: bool, first: Callable[[], None] | None = None, size: int = 0
    ) -> Future[T]:
        """A write is done even if nobody waits for it any more. What takes long and needs no database comes
        `first`: meanwhile nobody is kept from the file. `size`: how many bytes a write holds in memory."""
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                raise StoreError("the store is closed: it takes nothing more")
            self._jobs.put(_Job(work, writes, future, first, size))
        return future

    def close(self) -> Future[None]:
        """Everything submitted before is still done."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        return self._ended

    def _run(self) -> None:
        last = False
        while not last:
            jobs, last = self._waiting()
            try:
                self._do(jobs)
            except Exception:
                log.exception("a job of the store failed")
        self._try_last()
        self._connection.close()
        self._ended.set_result(None)

    def _waiting(self) -> tuple[list[_Job], bool]:
        """The jobs that are there, once there are any, and whether they are the last."""
        jobs: list[_Job] = []
        try:
            job = self._jobs.get(timeout=_RETRY if self._aside else None)
            while job is not None:
                if _is_ready(job):
                    jobs.append(job)
                if len(jobs) >= _MOST_AT_ONCE:
                    return jobs, False
                job = self._jobs.get_nowait()
        except Empty:
            return jobs, False
        return jobs, True

    def _do(self, jobs: list[_Job]) -> None:
        if not self._aside and not any(job.writes for job in jobs):
            self._do_each(jobs)
        elif self._aside and monotonic() < self._retry_at:
            self._put_aside(jobs)
        else:
            self._write([*self._aside, *jobs])

    def _write(self, jobs: list[_Job]) -> None:
        """All of them in one transaction: those that were put aside, and new ones."""
        try:
            results = self._transaction(jobs)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
            if _is_locked(error):
                self.trouble = self._problem(error).message
                self._retry_at = monotonic() + _RETRY
                self._put_aside(jobs[len(self._aside) :])
                return
            self._forget_aside()
            self._do_each(jobs)  # one of them is bad: the others are not to suffer
            return
        self._forget_aside()
        for job, result in zip(jobs, results, strict=True):
            _tell(job, result)
        self._written(jobs)

    def _do_each(self, jobs: list[_Job]) -> None:
        for job in jobs:
            try:
                result = self._transaction([job])[0] if job.writes else job.work(self._connection)
            except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
                _fail(job, self._problem(error))
            else:
                _tell(job, result)
                self._written([job])

    def _written(self, jobs: list[_Job]) -> None:
        if writes := sum(job.writes for job in jobs):
            with suppress(sqlite3.Error):  # the next one tries again, and tells if the file is broken
                self._after_writes(self._connection, writes)

    def _put_aside(self, jobs: list[_Job]) -> None:
        """The writes among `jobs` wait; what is only read is read now."""
        self._do_each([job for job in jobs if not job.writes])
        for job in jobs:
            if job.writes:
                self._aside.append(job)
                self._aside_bytes += job.size
        while len(self._aside) > _MOST_ASIDE or self._aside_bytes > _MOST_ASIDE_BYTES:
            self._lose(self._aside.popleft())

    def _lose(self, job: _Job) -> None:
        self._aside_bytes -= job.size
        _fail(job, StoreError(self.trouble))

    def _forget_aside(self) -> None:
        """They are written, or are told what is wrong."""
        self._aside.clear()
        self._aside_bytes = 0
        self.trouble = ""

    def _try_last(self) -> None:
        until = monotonic() + _LAST_TRY
        while self._aside and monotonic() < until:
            self._write([*self._aside])
        while self._aside:
            self._lose(self._aside.popleft())

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


def _is_locked(error: Exception) -> bool:
    """Does another program hold the file?"""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


def _tell(job: _Job, result: Any) -> None:
    if not job.future.cancelled():
        job.future.set_result(result)


def _fail(job: _Job, error: Exception) -> None:
    if not job.future.cancelled():
        job.future.set_exception(error)


def _is_ready(job: _Job) -> bool:
    """May it be done now? Whoever does not wait for what was to be read has gone."""
    if not job.future.set_running_or_notify_cancel() and not job.writes:
        return False
    try:
        if job.first is not None:
            job.first()
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits must hear of it
        _fail(job, error)
        return False
    return True
