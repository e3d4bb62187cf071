"""The cache in front of every `SecretReader`. It decides when to read again.

Each request runs the change check. The cache reads again if the check shows a change, if the token is about
to expire, or if the upstream refused the token. Requests that arrive meanwhile share one read. If a read
fails or takes longer than `MAX_WAIT`, the last token stays in use.

`expires` is wall-clock time, because a token names it so. Durations (pauses between reads, `ttl`) use the
monotonic clock, because the wall clock may jump.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

import msgspec

from .base import CredentialError, Reading, ReadProblem, SecretReader, Stamp, Token
from .secret import Secret
from .values import renewal

logger = logging.getLogger("dragoman.credentials")

MAX_WAIT = 0.3
"""Seconds that a request waits for a read if it has a token that may still be valid."""


class _CachedToken(msgspec.Struct, frozen=True):
    secret: Secret
    expires: float | None
    renew_at: float
    """Wall-clock time."""
    renew_by: float
    """Monotonic time."""
    stamp: Stamp
    token: Token
    """The result of `token()` until something changes."""


class _Failure(msgspec.Struct, frozen=True):
    why: str
    stamp: Stamp
    retry_at: float
    """Monotonic time."""


class _PendingRead(msgspec.Struct, frozen=True):
    """A read that has started. All requests share it."""

    number: int
    forced: bool
    stamp: Stamp
    task: asyncio.Task[None]


class CachedCredential:
    """A `CredentialSource` over one `SecretReader`."""

    def __init__(
        self,
        reader: SecretReader,
        *,
        name: str,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._reader = reader
        self._clock = clock
        self._monotonic = monotonic
        self._cached: _CachedToken | None = None
        self._failure: _Failure | None = None
        self._pending: _PendingRead | None = None
        self._read_count = 0
        self._noted_slow = 0
        """The number of the last read that was logged as slow."""
        self._force_allowed_at = -math.inf
        """Set after a forced read gave no new secret: a refused token must not run a command per request."""

    def __repr__(self) -> str:
        return f"<credential of {self.name}: {self._cached.secret if self._cached else 'not read'}>"

    def cached(self) -> Token | None:
        cached = self._cached
        # At DEBUG, `token()` logs every use. It also handles failures.
        if cached is None or self._failure is not None or logger.isEnabledFor(logging.DEBUG):
            return None
        stamp = self._reader.stamp()
        same = (stamp is cached.stamp or stamp.marks == cached.stamp.marks) and cached.stamp.settled
        return cached.token if same and not self._is_due(cached) else None

    async def token(self, *, force: bool = False) -> Token:
        before = self._cached.secret if self._cached else None
        reads_before = self._read_count
        stamp = seen = self._reader.stamp()
        while self._must_read(stamp, force, before):
            pending = self._pending or self._start(force)
            if not await self._wait(pending, force):
                break
            # A read that started before this call may have missed the change that this call is about.
            if pending.number > reads_before and (pending.forced or not force):
                break
            if pending.stamp.marks == seen.marks and not force:
                break
            stamp = self._reader.stamp()
        return self._token(before)

    @property
    def problem(self) -> str:
        return "" if self._failure is None else self._failure.why

    async def close(self, *, wait: bool = False) -> None:
        pending = self._pending
        if pending is None:
            return
        try:
            if wait:
                await asyncio.wait({pending.task})
        finally:
            pending.task.cancel()
        await asyncio.wait({pending.task})

    def _must_read(self, stamp: Stamp, force: bool, before: Secret | None) -> bool:
        cached, failed, now = self._cached, self._failure, self._monotonic()
        if failed is not None and failed.stamp.marks == stamp.marks and now < failed.retry_at:
            return False
        if cached is None or cached.stamp.marks != stamp.marks or not cached.stamp.settled:
            return True
        if force and cached.secret == before and now >= self._force_allowed_at:
            return True
        return self._is_due(cached)

    def _is_due(self, cached: _CachedToken) -> bool:
        """Is it time to renew the token?"""
        return self._clock() >= cached.renew_at or self._monotonic() >= cached.renew_by

    def _start(self, force: bool) -> _PendingRead:
        self._read_count += 1
        # Take the stamp before the read: a change during the read must show in the next check.
        stamp = self._reader.stamp()
        task = asyncio.create_task(self._run(stamp, force))
        self._pending = _PendingRead(self._read_count, force, stamp, task)
        return self._pending

    async def _wait(self, pending: _PendingRead, force: bool) -> bool:
        """Has the read finished? `asyncio.wait` does not cancel the read if this caller is cancelled."""
        cached, task = self._cached, pending.task
        timeout = None
        if cached is not None and not force and (cached.expires is None or self._clock() < cached.expires):
            # After a failure without a change, retry in the background and do not delay this request.
            failed = self._failure is not None and self._failure.stamp.marks == pending.stamp.marks
            timeout = 0.0 if failed else MAX_WAIT
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            self._note_slow(pending)
            return False
        task.result()
        return True

    def _note_slow(self, pending: _PendingRead) -> None:
        """Log a slow read once."""
        if self._noted_slow != pending.number and self._failure is None and self._cached is not None:
            self._noted_slow = pending.number
            message = "credential of %s: reading takes more than %g s; still using %s"
            logger.warning(message, self.name, MAX_WAIT, self._cached.secret)

    async def _run(self, stamp: Stamp, force: bool) -> None:
        try:
            outcome = await self._reader.read(force=force)
        finally:
            self._pending = None
        if isinstance(outcome, ReadProblem):
            self._fail(outcome.why, stamp)
        else:
            self._accept(outcome, stamp, force)

    def _fail(self, why: str, stamp: Stamp) -> None:
        self._failure = _Failure(why, stamp, self._monotonic() + self._reader.pause)
        if self._cached is None:
            logger.warning("credential of %s: %s", self.name, why)
        else:
            logger.warning("credential of %s: %s; still using %s", self.name, why, self._cached.secret)

    def _accept(self, reading: Reading, stamp: Stamp, force: bool) -> None:
        now, old = self._clock(), self._cached
        self._failure = None
        self._cached = self._new(reading, stamp, now)
        if old is not None and old.secret == reading.secret:
            if force:
                self._force_allowed_at = self._monotonic() + self._reader.pause
            return
        if old is None:
            logger.info("credential of %s: read %s", self.name, reading.secret)
        else:
            logger.info("credential of %s: rotated %s → %s", self.name, old.secret, reading.secret)
        if reading.expires is not None and reading.expires <= now:
            message = "credential of %s: %s has expired; sign in again with the program that owns it"
            logger.warning(message, self.name, reading.secret)

    def _new(self, reading: Reading, stamp: Stamp, now: float) -> _CachedToken:
        secret, expires, ttl = reading.secret, reading.expires, reading.ttl
        renew_at = renew_by = math.inf
        if self._reader.renews:
            spans = [] if ttl is None else [renewal(ttl, 0.0)]
            if expires is not None and expires > now:
                renew_at = renewal(expires, now)
            elif expires is not None:  # expired already: try again soon, but not for every request
                spans.append(self._reader.pause)
            renew_by = self._monotonic() + min(spans, default=math.inf)
        token = Token(secret=secret, expires=expires, sign=reading.sign)
        return _CachedToken(secret, expires, renew_at, renew_by, stamp, token)

    def _token(self, before: Secret | None) -> Token:
        cached = self._cached
        if cached is None:
            why = self._failure.why if self._failure else "it was not read yet"
            raise CredentialError(f"upstream {self.name} has no usable credential: {why}")
        changed = cached.secret is not before and cached.secret != before
        if logger.isEnabledFor(logging.DEBUG):
            how = "fresh" if changed else "unchanged"
            logger.debug("credential of %s: %s %s", self.name, how, cached.secret)
        return msgspec.structs.replace(cached.token, changed=True) if changed else cached.token
