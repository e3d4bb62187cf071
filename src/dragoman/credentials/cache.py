"""The shared cache: every place is read through it, so all of them behave alike.

For each request the place's change check is done; only when that shows something, or the token is about to
expire, or the caller says that it was refused, the place is read: once for all who ask meanwhile. What was
read last goes on being used when reading fails.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

import msgspec

from ..secret import Secret
from .base import CredentialError, Problem, Reader, Reading, Stamp, Token
from .values import renewal

logger = logging.getLogger("dragoman.credentials")

PATIENCE = 2.0
"""Seconds a request waits for a renewal while the old token is still good."""


class _Held(msgspec.Struct, frozen=True):
    secret: Secret
    expires: float | None
    renew_at: float
    stamp: Stamp
    token: Token
    """What is given as long as nothing changes."""


class _Failure(msgspec.Struct, frozen=True):
    why: str
    stamp: Stamp
    retry_at: float


class _Flight(msgspec.Struct, frozen=True):
    """A read that is under way."""

    number: int
    forced: bool
    stamp: Stamp
    task: asyncio.Task[None]


class CachedCredential:
    """A `CredentialSource` over one place."""

    def __init__(self, reader: Reader, *, name: str, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self._reader = reader
        self._clock = clock
        self._held: _Held | None = None
        self._failure: _Failure | None = None
        self._flight: _Flight | None = None
        self._flights = 0
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
        return held.token if same and self._clock() < held.renew_at else None

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
        held, failed, now = self._held, self._failure, self._clock()
        if failed is not None and failed.stamp.marks == stamp.marks and now < failed.retry_at:
            return False
        if held is None or held.stamp.marks != stamp.marks or not held.stamp.settled:
            return True
        if force and held.secret == before and now >= self._unforced_until:
            return True
        return now >= held.renew_at

    def _start(self, force: bool) -> _Flight:
        self._flights += 1
        # The stamp is taken first: a change while reading must show the next time.
        stamp = self._reader.stamp()
        task = asyncio.create_task(self._fly(stamp, force))
        self._flight = _Flight(self._flights, force, stamp, task)
        return self._flight

    async def _wait(self, flight: _Flight, force: bool) -> bool:
        """Has it landed? A caller that goes away does not take it down for the others."""
        held = self._held
        good = held is not None and not force and held.renew_at <= self._clock() < (held.expires or -math.inf)
        await asyncio.wait({flight.task}, timeout=PATIENCE if good else None)
        if flight.task.done():
            flight.task.result()
        return flight.task.done()

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
        self._failure = _Failure(why, stamp, self._clock() + self._reader.pause)
        if self._held is None:
            logger.warning("credential of %s: %s", self.name, why)
        else:
            logger.warning("credential of %s: %s; going on with %s", self.name, why, self._held.secret)

    def _hold(self, reading: Reading, stamp: Stamp, force: bool) -> None:
        now, old = self._clock(), self._held
        self._failure = None
        secret, expires = reading.secret, reading.expires
        token = Token(secret=secret, expires=expires)
        self._held = _Held(secret, expires, self._renew_at(expires, now), stamp, token)
        if old is not None and old.secret == reading.secret:
            if force:
                self._unforced_until = now + self._reader.pause
            return
        if old is None:
            logger.info("credential of %s: read %s", self.name, reading.secret)
        else:
            logger.info("credential of %s: rotated %s → %s", self.name, old.secret, reading.secret)
        if reading.expires is not None and reading.expires <= now:
            say = "credential of %s: %s has expired; sign in again in the program that keeps it"
            logger.warning(say, self.name, reading.secret)

    def _renew_at(self, expires: float | None, now: float) -> float:
        if expires is None or not self._reader.renews:
            return math.inf
        return renewal(expires, now) if expires > now else now + self._reader.pause

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
