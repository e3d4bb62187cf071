"""OAuth tokens from the file of another program, refreshed if that program does not do it.

The file wins: a token that another program writes there is used at once. The refresh token is used only if
the access token is about to expire or the upstream refused it. Many providers accept a refresh token only
once. So the file is read again before the refresh (another worker may have refreshed) and after a refused
refresh (another program may have used the refresh token).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from .base import Reading, ReadProblem, Stamp
from .grant import Grant, read_grant, write_grant
from .process_lock import Lock, process_lock
from .refresh import Post, RefreshRefused, refresh
from .secret import Secret
from .spec import CredentialSpec
from .stamps import file_stamp
from .values import renewal, unsendable

logger = logging.getLogger("dragoman.credentials")

REFRESH_BEFORE = 60.0
"""Refresh a token from the file that expires within this many seconds."""
FORCE_COOLDOWN = 30.0
"""Seconds after a refresh in which a refused token causes no new refresh: the token is not the reason."""
RECHECK_DELAYS = (0.0, 0.2, 0.5, 1.0)
"""After a refused refresh: delays in seconds before each look for a token of another program in the file."""


class OAuthReader:
    """Follows the file, and refreshes tokens if a token endpoint is known."""

    pause = 10.0

    def __init__(
        self,
        spec: CredentialSpec,
        *,
        environment: Mapping[str, str],
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        post: Post,
        lock: Lock = process_lock,
    ) -> None:
        self._spec = spec
        self._file_lock = lock
        self._path = os.path.expanduser(spec.path)
        self._environment = environment
        self._clock = clock
        self._monotonic = monotonic
        self._post = post
        self._last_access: Secret | None = None
        self._base: Grant | None = None
        """The grant in the file that `_own` was refreshed from."""
        self._own: Grant | None = None
        """The grant of our last refresh."""
        self._own_renewal = 0.0
        self._refreshed_at = float("-inf")
        """Monotonic time."""
        self.renews = bool(spec.token_url)

    def stamp(self) -> Stamp:
        return file_stamp(self._path)

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        grant = self._current()
        if isinstance(grant, ReadProblem):
            return grant
        self.renews = self._can_refresh(grant)
        refused = (
            self._last_access if force and self._monotonic() >= self._refreshed_at + FORCE_COOLDOWN else None
        )
        if self.renews and not self._is_fresh(grant, refused):
            renewed = await self._renewed(grant, refused)
            if isinstance(renewed, Grant):
                grant = renewed
            elif self._last_access is not None or not self._is_valid(grant):
                return renewed
            else:
                logger.warning("%s; using %s until it expires", renewed.why, grant.access)
        if grant.access is None:
            return ReadProblem(
                f"the file {self._spec.path} has no access token and no token endpoint: "
                "set `token_url`, or sign in with the program that owns it"
            )
        if problem := unsendable(grant.access.reveal()):
            return ReadProblem(f"the access token in {self._spec.path} {problem.why}")
        self._last_access = grant.access
        return Reading(grant.access, grant.expires)

    def _current(self) -> Grant | ReadProblem:
        """The grant in the file, or our refreshed one if the file has not changed since."""
        grant = read_grant(self._path, self._spec.path, self._spec.field)
        if isinstance(grant, ReadProblem) or self._own is None or self._base is None:
            return grant
        if grant.same_tokens(self._base) or grant.same_tokens(self._own):
            return self._own
        self._own = self._base = None
        return grant

    def _can_refresh(self, grant: Grant) -> bool:
        return grant.refresh is not None and bool(self._spec.token_url or grant.token_url)

    def _is_valid(self, grant: Grant) -> bool:
        return grant.access is not None and (grant.expires is None or self._clock() < grant.expires)

    def _is_fresh(self, grant: Grant, refused: Secret | None) -> bool:
        if grant.access is None or grant.access == refused:
            return False
        if grant is self._own:
            return self._clock() < self._own_renewal
        return grant.expires is None or self._clock() < grant.expires - REFRESH_BEFORE

    async def _renewed(self, grant: Grant, refused: Secret | None) -> Grant | ReadProblem:
        async with self._lock():
            if self._spec.write_back:
                latest = self._current()  # another worker may have refreshed while this one waited
                if isinstance(latest, Grant) and not latest.same_tokens(grant):
                    if self._is_fresh(latest, refused):
                        return latest
                    grant = latest if latest.refresh is not None else grant
            new = await refresh(self._spec, grant, self._environment, self._clock, self._post)
            if isinstance(new, RefreshRefused):
                return await self._refreshed_by_another(grant, refused) or new
            if isinstance(new, ReadProblem):
                return new
            await self._keep(grant, new)
            return new

    @asynccontextmanager
    async def _lock(self) -> AsyncGenerator[None]:
        """With `write_back`, workers share the file and refresh one at a time. Else, they need no lock."""
        if not self._spec.write_back:
            yield
            return
        async with self._file_lock(self._path):
            yield

    async def _keep(self, old: Grant, new: Grant) -> None:
        now = self._clock()
        self._refreshed_at = self._monotonic()
        # After a refresh that was not written back, the file still has the grant before it.
        in_file = self._base if old is self._own and self._base is not None else old
        self._base, self._own = in_file, new
        self._own_renewal = float("inf") if new.expires is None else renewal(new.expires, now)
        if self._spec.write_back:
            problem = await asyncio.to_thread(write_grant, self._path, self._spec.field, in_file, new, now)
            if problem is None:
                self._base = new
            else:
                logger.warning(
                    "the refreshed token was not written back: %s %s", self._spec.path, problem.why
                )

    async def _refreshed_by_another(self, grant: Grant, refused: Secret | None) -> Grant | None:
        for delay in RECHECK_DELAYS:
            await asyncio.sleep(delay)
            latest = self._current()
            if (
                isinstance(latest, Grant)
                and latest.access != grant.access
                and self._is_fresh(latest, refused)
            ):
                return latest
        return None
