"""The shared cache: every place is read through it, so all of them behave alike.

For each request the place's change check is done; only when that shows something, or the token is about to
expire, or the caller says that it was refused, the place is read: once for all who ask meanwhile. What was
read last goes on being used when reading fails, and when it takes longer than `PATIENCE`.

Moments that a token names (`expires`) are times of day. Everything that is a span (pauses between reads, a
`ttl`) is measured by the monotonic clock.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

import msgspec

from .base import CredentialError, Problem, Reader, Reading, Stamp, Token
from .secret import Secret
from .values import renewal

logger = logging.getLogger("dragoman.credentials")

PATIENCE = 0.3
"""Seconds a request waits for a read while it has a token that is not known to be bad."""


class _Held(msgspec.Struct, frozen=True):
    secret: Secret
    expires: float | None
    renew_at: float
    """A time of day."""
    renew_by: float
    """By the monotonic clock."""
    stamp: Stamp
    token: Token
    """What is given as long as nothing changes."""


class _Failure(msgspec.Struct, frozen=True):
    why: str
    stamp: Stamp
    retry_at: float
    """By the monotonic clock."""


class _Flight(msgspec.Struct, frozen=True):
    """A read that is under way."""

    number: int
    forced: bool
    stamp: Stamp
    task: asyncio.Task[None]


class CachedCredential:
    """A `CredentialSource` over one place."""

    def __init__(
        self,
        reader: Reader,
        *,
        name: str,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._reader = reader
        self._clock = clock
        self._monotonic = monotonic
        self._held: _Held | None = None
        self._failure: _Failure | None = None
        self._flight: _Flight | None = None
        self._flights = 0
        self._noted_slow = 0
        """The number of the last read that was logged as slow."""
        self._unforced_until = -math.inf
        """Set when forcing was in vain: a refused token must not run a command for every request."""

    def __repr__(self) -> str:
        return f"<credential of {self.name}: {self._held.secret if self._held else 'not read'}>"

    def at_hand(self) -> Token | None:
        held = self._held
        if held is None or self._failure is not None or logger.isEnabledFor(logging.DEBUG):
            return None
        stamp = self._reader.stamp()
        same = (stamp is held.stamp or stamp.marks == held.stamp.marks) and held.stamp.settled
        return held.token if same and not self._is_due(held) else None

    async def token(self, *, force: bool = False) -> Token:
        before = self._held.secret if self._held else None
        flights = self._flights
        stamp = seen = self._reader.stamp()
        while self._must_read(stamp, force, before):
            flight = self._flight or self._start(force)
            if not await self._wait(flight, force):
                break
            # One that began before this call may have missed what this call is about.
            if flight.number > flights and (flight.forced or not force):
                break
            if flight.stamp.marks == seen.marks and not force:
                break
            stamp = self._reader.stamp()
        return self._token(before)

    async def close(self, *, landing: bool = False) -> None:
        flight = self._flight
        if flight is None:
            return
        try:
            if landing:
                await asyncio.wait({flight.task})
        finally:
            flight.task.cancel()
        await asyncio.wait({flight.task})

    def _must_read(self, stamp: Stamp, force: bool, before: Secret | None) -> bool:
        held, failed, now = self._held, self._failure, self._monotonic()
        if failed is not None and failed.stamp.marks == stamp.marks and now < failed.retry_at:
            return False
        if held is None or held.stamp.marks != stamp.marks or not held.stamp.settled:
            return True
        if force and held.secret == before and now >= self._unforced_until:
            return True
        return self._is_due(held)

    def _is_due(self, held: _Held) -> bool:
        """Is it time to renew the token?"""
        return self._clock() >= held.renew_at or self._monotonic() >= held.renew_by

    def _start(self, force: bool) -> _Flight:
        self._flights += 1
        # The stamp is taken first: a change while reading must show the next time.
        stamp = self._reader.stamp()
        task = asyncio.create_task(self._fly(stamp, force))
        self._flight = _Flight(self._flights, force, stamp, task)
        return self._flight

    async def _wait(self, flight: _Flight, force: bool) -> bool:
        """Has it landed? A caller that goes away does not take it down for the others."""
        held, task = self._held, flight.task
        patience = None
        if held is not None and not force and (held.expires is None or self._clock() < held.expires):
            # A place that failed and has not changed since is read again in the background.
            failed = self._failure is not None and self._failure.stamp.marks == flight.stamp.marks
            patience = 0.0 if failed else PATIENCE
        await asyncio.wait({task}, timeout=patience)
        if not task.done():
            self._note_slow(flight)
            return False
        task.result()
        return True

    def _note_slow(self, flight: _Flight) -> None:
        """Once for each read."""
        if self._noted_slow != flight.number and self._failure is None and self._held is not None:
            self._noted_slow = flight.number
            say = "credential of %s: reading it takes more than %g s; going on with %s"
            logger.warning(say, self.name, PATIENCE, self._held.secret)

    async def _fly(self, stamp: Stamp, force: bool) -> None:
        try:
            outcome = await self._reader.read(force=force)
        finally:
            self._flight = None
        if isinstance(outcome, Problem):
            self._fail(outcome.why, stamp)
        else:
            self._hold(outcome, stamp, force)

    def _fail(self, why: str, stamp: Stamp) -> None:
        self._failure = _Failure(why, stamp, self._monotonic() + self._reader.pause)
        if self._held is None:
            logger.warning("credential of %s: %s", self.name, why)
        else:
            logger.warning("credential of %s: %s; going on with %s", self.name, why, self._held.secret)

    def _hold(self, reading: Reading, stamp: Stamp, force: bool) -> None:
        now, old = self._clock(), self._held
        self._failure = None
        self._held = self._new(reading, stamp, now)
        if old is not None and old.secret == reading.secret:
            if force:
                self._unforced_until = self._monotonic() + self._reader.pause
            return
        if old is None:
            logger.info("credential of %s: read %s", self.name, reading.secret)
        else:
            logger.info("credential of %s: rotated %s → %s", self.name, old.secret, reading.secret)
        if reading.expires is not None and reading.expires <= now:
            say = "credential of %s: %s has expired; sign in again in the program that keeps it"
            logger.warning(say, self.name, reading.secret)

    def _new(self, reading: Reading, stamp: Stamp, now: float) -> _Held:
        secret, expires, ttl = reading.secret, reading.expires, reading.ttl
        renew_at = renew_by = math.inf
        if self._reader.renews:
            spans = [] if ttl is None else [renewal(ttl, 0.0)]
            if expires is not None and expires > now:
                renew_at = renewal(expires, now)
            elif expires is not None:
                spans.append(self._reader.pause)
            renew_by = self._monotonic() + min(spans, default=math.inf)
        token = Token(secret=secret, expires=expires)
        return _Held(secret, expires, renew_at, renew_by, stamp, token)

    def _token(self, before: Secret | None) -> Token:
        held = self._held
        if held is None:
            why = self._failure.why if self._failure else "not read"
            raise CredentialError(f"the credential of upstream {self.name} cannot be had: {why}")
        changed = held.secret is not before and held.secret != before
        if logger.isEnabledFor(logging.DEBUG):
            how = "fresh" if changed else "unchanged"
            logger.debug("credential of %s: %s %s", self.name, how, held.secret)
        return msgspec.structs.replace(held.token, changed=True) if changed else held.token
