"""A thread that owns the writing database connection, so that the event loop never waits for a disk or lock.

Jobs that queue up meanwhile share one transaction, because a commit costs the same for one write as for a
hundred. While another program locks the file, or the disk cannot be written, writes are deferred and retried;
reads go on. A failing job affects neither other jobs nor the thread.
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

from ..types import StoreError

log = logging.getLogger("dragoman.store")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

# Jobs in one transaction. All their callers wait for its commit, so it must not grow without limit.
_MAX_BATCH = 256
# Seconds between retries while another program locks the file. While the disk fails, is full, or cannot be
# written, a retry writes until it fails, which costs more.
_RETRY = 0.25
_DISK_RETRY = 2.0
_RETRIES = {
    sqlite3.SQLITE_BUSY: _RETRY,
    sqlite3.SQLITE_LOCKED: _RETRY,
    sqlite3.SQLITE_FULL: _DISK_RETRY,
    sqlite3.SQLITE_READONLY: _DISK_RETRY,
    sqlite3.SQLITE_IOERR: _DISK_RETRY,  # a quota, too
}
_FILE_ERRORS = (sqlite3.OperationalError, sqlite3.DatabaseError)
"""Errors of the file, which the next write has too. Other errors belong to one write."""
_REPORT_AFTER = 1.0
"""Seconds of waiting after which the log says so."""
# Bounds of the deferred writes. Beyond them, the oldest are lost.
_MAX_DEFERRED = 10_000
_MAX_DEFERRED_BYTES = 64 << 20
# Seconds to retry deferred writes when the store closes.
_CLOSE_TIMEOUT = 2.0


def _keep() -> None:
    """Keep the connection."""


class _Job(NamedTuple):
    work: Work[Any]
    writes: bool
    future: Future[Any]
    first: Callable[[], int] | None
    size: int


class Worker:
    """Runs jobs in order. Any thread may submit jobs."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        problem: Callable[[Exception], StoreError],
        after_writes: Callable[[sqlite3.Connection, int], None],
        renew: Callable[[], sqlite3.Connection | None] = _keep,
    ) -> None:
        """`after_writes` is called between transactions with the number of writes that were committed.

        `renew` is called before each batch. It returns a connection to use from now on, or None. It may raise
        StoreError.
        """
        self._connection = connection
        self._problem = problem
        self._after_writes = after_writes
        self._renew = renew
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._deferred: deque[_Job] = deque()
        """Writes that wait until the file is writable again."""
        self._deferred_bytes = 0
        self._retry_at = 0.0
        self.write_problem = ""
        """Why writes wait or fail, as a sentence; empty if they do not."""
        self._failing_since = 0.0
        self._said = False
        """Has the log said that writes wait?"""
        self._closing = threading.Lock()
        self._closed = False
        self._ended: Future[None] = Future()
        threading.Thread(target=self._run, name="dragoman-store", daemon=True).start()

    def submit(
        self, work: Work[T], *, writes: bool, first: Callable[[], int] | None = None, size: int = 0
    ) -> Future[T]:
        """Queue a job. A write runs even if its caller no longer waits.

        `first` runs before the transaction, for slow work that needs no database: it must not hold the lock.
        `size` is the memory that a write needs, in bytes. If there is a `first`, it returns it.
        """
        future: Future[T] = Future()
        with self._closing:
            if self._closed:
                raise StoreError("the store is closed")
            self._jobs.put(_Job(work, writes, future, first, size))
        return future

    def close(self) -> Future[None]:
        """Stop after all jobs that were submitted before."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        return self._ended

    def _run(self) -> None:
        last = False
        while not last:
            jobs, last = self._next_batch()
            try:
                self._run_batch(jobs)
            except Exception:  # the thread serves all callers of the store, and must go on
                log.exception("a job of the store failed")
        self._flush_deferred()
        self._connection.close()
        self._ended.set_result(None)

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """Wait for jobs. Returns a batch, and whether it is the last one."""
        jobs: list[_Job] = []
        try:
            job = self._jobs.get(timeout=_RETRY if self._deferred else None)
            while job is not None:
                if (ready := _prepared(job)) is not None:
                    jobs.append(ready)
                if len(jobs) >= _MAX_BATCH:
                    return jobs, False
                job = self._jobs.get_nowait()
        except Empty:
            return jobs, False
        return jobs, True

    def _run_batch(self, jobs: list[_Job]) -> None:
        try:
            renewed = self._renew()
        except StoreError as error:
            for job in jobs:
                self._failed(job, error)
            return
        if renewed is not None:
            self._connection.close()
            self._connection = renewed
        if not self._deferred and not any(job.writes for job in jobs):
            self._run_each(jobs)
        elif self._deferred and monotonic() < self._retry_at:
            self._defer(jobs)
        else:
            self._write([*self._deferred, *jobs])

    def _write(self, jobs: list[_Job]) -> None:
        """Run deferred and new jobs in one transaction."""
        try:
            results = self._transaction(jobs)
        except Exception as error:  # noqa: BLE001 - the caller gets any error
            if (seconds := _retry_after(error)) is not None:
                self._note(self._problem(error).message)
                self._retry_at = monotonic() + seconds
                self._defer(jobs[len(self._deferred) :])  # the first ones are deferred already
                return
            self._clear_deferred()
            self._run_each(jobs)  # one job is bad: the others must not fail with it
            return
        self._clear_deferred()
        self._no_problem()
        for job, result in zip(jobs, results, strict=True):
            _resolve(job, result)
        self._written(jobs)

    def _note(self, problem: str) -> None:
        """Say once that writes wait, unless another program only writes at the same moment."""
        now = monotonic()
        if not self.write_problem:
            self._failing_since = now
        self.write_problem = problem
        if not self._said and now - self._failing_since >= _REPORT_AFTER:
            self._said = True
            log.warning("%s; what is to be written waits", problem)

    def _run_each(self, jobs: list[_Job]) -> None:
        for job in jobs:
            try:
                result = self._transaction([job])[0] if job.writes else job.work(self._connection)
            except Exception as error:  # noqa: BLE001 - the caller gets any error
                self._failed(job, error)
            else:
                if job.writes:
                    self._no_problem()
                _resolve(job, result)
                self._written([job])

    def _failed(self, job: _Job, error: Exception) -> None:
        failure = error if isinstance(error, StoreError) else self._problem(error)
        if job.writes and (failure is error or type(error) in _FILE_ERRORS):
            self.write_problem = failure.message
        _fail(job, failure)

    def _written(self, jobs: list[_Job]) -> None:
        if writes := sum(job.writes for job in jobs):
            with suppress(sqlite3.Error):  # the next write tries again, and reports a broken file
                self._after_writes(self._connection, writes)

    def _defer(self, jobs: list[_Job]) -> None:
        """Keep the writes for later. Run the reads now."""
        self._run_each([job for job in jobs if not job.writes])
        for job in jobs:
            if job.writes:
                self._deferred.append(job)
                self._deferred_bytes += job.size
        while len(self._deferred) > _MAX_DEFERRED or self._deferred_bytes > _MAX_DEFERRED_BYTES:
            self._drop(self._deferred.popleft())

    def _drop(self, job: _Job) -> None:
        self._deferred_bytes -= job.size
        _fail(job, StoreError(self.write_problem))

    def _clear_deferred(self) -> None:
        """All deferred jobs have a result or an error."""
        self._deferred.clear()
        self._deferred_bytes = 0

    def _no_problem(self) -> None:
        """A write succeeded."""
        self.write_problem = ""
        if self._said:
            self._said = False
            log.info("the store can be written again")

    def _flush_deferred(self) -> None:
        until = monotonic() + _CLOSE_TIMEOUT
        while self._deferred and monotonic() < until:
            self._write([*self._deferred])
        while self._deferred:
            self._drop(self._deferred.popleft())

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


def _retry_after(error: Exception) -> float | None:
    """Seconds after which the same write may succeed; None if it will not.

    The low byte of an extended error code is the primary code.
    """
    if not isinstance(error, sqlite3.Error):
        return None
    return _RETRIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)


def _resolve(job: _Job, result: Any) -> None:
    if not job.future.cancelled():
        job.future.set_result(result)


def _fail(job: _Job, error: Exception) -> None:
    if not job.future.cancelled():
        job.future.set_exception(error)


def _prepared(job: _Job) -> _Job | None:
    """Run `first`. None if the job need not run: `first` failed, or the caller of a read is gone."""
    if not job.future.set_running_or_notify_cancel() and not job.writes:
        return None
    try:
        return job if job.first is None else job._replace(size=job.first())
    except Exception as error:  # noqa: BLE001 - the caller gets any error
        _fail(job, error)
        return None
