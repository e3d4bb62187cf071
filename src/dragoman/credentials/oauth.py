"""The tokens of a program's user, from the file the program keeps them in, renewed when it does not.

The file is the truth: whatever another program puts there counts at once. Only when the token in it is
about to expire, or was refused, the refresh token is used; and since a refresh token may be good for one
use only, the file is looked at again before (another worker may have been first) and after (another
program may have won).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from .base import Problem, Reading, Stamp
from .filelock import between_processes
from .grant import Grant, read_grant, write_grant
from .refresh import Post, RefreshRefused, refresh
from .secret import Secret
from .spec import CredentialSpec
from .stamps import file_stamp
from .values import renewal, unsendable

logger = logging.getLogger("dragoman.credentials")

DUE = 60.0
"""A token from the file that ends sooner is renewed."""
UNFORCED = 30.0
"""Seconds after a refresh in which a refusal does not cause another: the fault lies elsewhere."""
AFTERTHOUGHTS = (0.0, 0.2, 0.5, 1.0)
"""When a refresh was refused: seconds to look whether another program is just writing down its own."""


class OAuthReader:
    """Follows the file, and refreshes where the config says how."""

    pause = 10.0

    def __init__(
        self,
        spec: CredentialSpec,
        *,
        environment: Mapping[str, str],
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        post: Post,
    ) -> None:
        self._spec = spec
        self._path = os.path.expanduser(spec.path)
        self._environment = environment
        self._clock = clock
        self._monotonic = monotonic
        self._post = post
        self._given: Secret | None = None
        self._base: Grant | None = None
        """What stood in the file when `_own` was got with it."""
        self._own: Grant | None = None
        self._own_renewal = 0.0
        self._refreshed_at = float("-inf")
        """By the monotonic clock."""
        self.renews = bool(spec.token_url)

    def stamp(self) -> Stamp:
        return file_stamp(self._path)

    async def read(self, *, force: bool) -> Reading | Problem:
        grant = self._current()
        if isinstance(grant, Problem):
            return grant
        self.renews = self._can_refresh(grant)
        refused = self._given if force and self._monotonic() >= self._refreshed_at + UNFORCED else None
        if self.renews and not self._good(grant, refused):
            renewed = await self._renewed(grant, refused)
            if isinstance(renewed, Grant):
                grant = renewed
            elif self._given is not None or not self._alive(grant):
                return renewed
            else:
                logger.warning("%s; using %s while it lasts", renewed.why, grant.access)
        if grant.access is None:
            return Problem(
                f"the file {self._spec.path} has no access token, and nothing says how to get one: "
                "give `token_url`, or sign in to the program that keeps it"
            )
        if problem := unsendable(grant.access.reveal()):
            return Problem(f"the access token in {self._spec.path} {problem.why}")
        self._given = grant.access
        return Reading(grant.access, grant.expires)

    def _current(self) -> Grant | Problem:
        """What is in the file, or what was got with it, unless the file has moved on."""
        grant = read_grant(self._path, self._spec.path, self._spec.field)
        if isinstance(grant, Problem) or self._own is None or self._base is None:
            return grant
        if grant.same_tokens(self._base) or grant.same_tokens(self._own):
            return self._own
        self._own = self._base = None
        return grant

    def _can_refresh(self, grant: Grant) -> bool:
        return grant.refresh is not None and bool(self._spec.token_url or grant.token_url)

    def _alive(self, grant: Grant) -> bool:
        return grant.access is not None and (grant.expires is None or self._clock() < grant.expires)

    def _good(self, grant: Grant, refused: Secret | None) -> bool:
        if grant.access is None or grant.access == refused:
            return False
        if grant is self._own:
            return self._clock() < self._own_renewal
        return grant.expires is None or self._clock() < grant.expires - DUE

    async def _renewed(self, grant: Grant, refused: Secret | None) -> Grant | Problem:
        async with self._alone():
            if self._spec.write_back:
                latest = self._current()
                if isinstance(latest, Grant) and not latest.same_tokens(grant):
                    if self._good(latest, refused):
                        return latest
                    grant = latest if latest.refresh is not None else grant
            new = await refresh(self._spec, grant, self._environment, self._clock, self._post)
            if isinstance(new, RefreshRefused):
                return await self._won_by_another(grant, refused) or new
            if isinstance(new, Problem):
                return new
            await self._keep(grant, new)
            return new

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[None]:
        """Workers that share what they write also take turns; others have nothing to share."""
        if not self._spec.write_back:
            yield
            return
        async with between_processes(self._path):
            yield

    async def _keep(self, old: Grant, new: Grant) -> None:
        now = self._clock()
        self._refreshed_at = self._monotonic()
        in_file = self._base if old is self._own and self._base is not None else old
        self._base, self._own = in_file, new
        self._own_renewal = float("inf") if new.expires is None else renewal(new.expires, now)
        if self._spec.write_back:
            problem = await asyncio.to_thread(write_grant, self._path, self._spec.field, in_file, new, now)
            if problem is None:
                self._base = new
            else:
                logger.warning("the refreshed token is not written back: %s %s", self._spec.path, problem.why)

    async def _won_by_another(self, grant: Grant, refused: Secret | None) -> Grant | None:
        for delay in AFTERTHOUGHTS:
            await asyncio.sleep(delay)
            latest = self._current()
            if isinstance(latest, Grant) and latest.access != grant.access and self._good(latest, refused):
                return latest
        return None
