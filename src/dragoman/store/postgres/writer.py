"""Writes receipts in batches, in the background, and keeps them while the database cannot be reached.

What waits has a bound. Beyond it, the oldest receipts are lost, and their futures say so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from time import monotonic

import msgspec
import psycopg

from ..types import Receipt, StoreError
from .address import NotOpen

log = logging.getLogger("dragoman.store")

_MAX_BATCH = 2000
"""Receipts in one statement."""
_MAX_WAITING = 10_000
_MAX_WAITING_BYTES = 64 << 20
# Seconds between retries, and until the last one when the store closes.
_FIRST_RETRY, _LAST_RETRY = 0.25, 4.0
_CLOSE_TIMEOUT = 2.0
_PASSING = ("25006", "42501")
"""Codes of a read-only database and of a missing permission."""

Write = Callable[[Sequence[Receipt]], Awaitable[None]]


def is_passing(error: BaseException) -> bool:
    """May the same write succeed later? After a restart, a full disk, a deadlock or a failover, it may."""
    return (
        isinstance(error, (psycopg.OperationalError, NotOpen, TimeoutError, OSError))
        or getattr(error, "sqlstate", None) in _PASSING
    )


class _Job(msgspec.Struct, eq=False):
    make: Callable[[], Sequence[Receipt]]
    future: Future[None]
    receipts: Sequence[Receipt] = ()
    size: int = 0


class ReceiptWriter:
    """Lives on the loop of the store's thread."""

    def __init__(self, write: Write, problem: Callable[[BaseException], StoreError]) -> None:
        self._write = write
        self._problem = problem
        self._new: deque[_Job] = deque()
        self._waiting: deque[_Job] = deque()
        """Jobs whose receipts are made."""
        self._size = 0
        self._arrived = asyncio.Event()
        self._close_by: float | None = None
        self._retry = _FIRST_RETRY
        self.problem = ""
        """Why writes wait, as a sentence; empty if they do not."""
        self._task = asyncio.ensure_future(self._run())

    def add(self, make: Callable[[], Sequence[Receipt]], future: Future[None]) -> None:
        self._new.append(_Job(make, future))
        self._arrived.set()

    async def close(self) -> None:
        """Write what waits. What cannot be written in time is lost."""
        self._close_by = monotonic() + _CLOSE_TIMEOUT
        self._arrived.set()
        await self._task

    async def _run(self) -> None:
        while True:
            self._make()
            if self._waiting:
                await self._write_next()
            elif self._new:
                continue
            elif self._close_by is not None:
                return
            else:
                self._arrived.clear()
                await self._arrived.wait()

    def _make(self) -> None:
        while self._new:
            job = self._new.popleft()
            try:
                job.receipts = job.make()
            except Exception as error:  # noqa: BLE001 - the caller gets any error
                _settle(job, error)
                continue
            job.size = sum(receipt.size for receipt in job.receipts)
            self._waiting.append(job)
            self._size += job.size
        while len(self._waiting) > _MAX_WAITING or self._size > _MAX_WAITING_BYTES:
            self._done(1, StoreError(self.problem or "the store writes too slowly"))

    async def _write_next(self) -> None:
        """Write the oldest jobs in one statement."""
        count = receipts = 0
        for job in self._waiting:
            if count and receipts + len(job.receipts) > _MAX_BATCH:
                break
            count, receipts = count + 1, receipts + len(job.receipts)
        jobs = [self._waiting[place] for place in range(count)]
        try:
            await self._write([receipt for job in jobs for receipt in job.receipts])
        except Exception as error:  # noqa: BLE001 - the callers get any error
            await self._failed(jobs, error)
            return
        self._done(count)
        self._retry = _FIRST_RETRY
        if self.problem:
            self.problem = ""
            log.info("the store can be written again")

    async def _failed(self, jobs: list[_Job], error: Exception) -> None:
        if is_passing(error):
            await self._wait(error)
        elif len(jobs) == 1:
            self._done(1, self._problem(error))
        else:
            for job in jobs:  # one job is bad: the others must not fail with it
                try:
                    await self._write(job.receipts)
                except Exception as own:  # noqa: BLE001 - the caller gets any error
                    if is_passing(own):
                        return  # the jobs that are left are tried again
                    self._done(1, self._problem(own))
                else:
                    self._done(1)

    async def _wait(self, error: Exception) -> None:
        """Try again later; when the store closes, only for a while."""
        failure = self._problem(error)
        if not self.problem:
            log.warning("receipts wait: %s", failure.message)
        self.problem = failure.message
        if self._close_by is not None and monotonic() >= self._close_by:
            self._done(len(self._waiting), failure)
            return
        seconds = self._retry
        self._retry = min(2 * self._retry, _LAST_RETRY)
        if self._close_by is not None:
            seconds = min(seconds, 0.25)
        self._arrived.clear()
        until = monotonic() + seconds
        while (left := until - monotonic()) > 0 and self._close_by is None:
            try:
                async with asyncio.timeout(left):
                    await self._arrived.wait()
            except TimeoutError:
                return
            self._arrived.clear()
            self._make()  # keeps the bound while the database is away
        if self._close_by is not None:
            await asyncio.sleep(max(0.0, min(left, 0.25)))

    def _done(self, count: int, error: Exception | None = None) -> None:
        """The oldest jobs are written, or lost because of `error`."""
        for _ in range(count):
            job = self._waiting.popleft()
            self._size -= job.size
            _settle(job, error)


def _settle(job: _Job, error: Exception | None) -> None:
    if job.future.cancelled():
        return
    if error is None:
        job.future.set_result(None)
    else:
        job.future.set_exception(error)
