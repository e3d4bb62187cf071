"""Finds the identity behind a request's key: keys of the config, and keys of the store.

Keys of the store are read again at the first request after a second, so a key that is made or revoked at run
time counts in every gateway within a second.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ..config.limits import NO_LIMITS, UsageLimits
from ..config.types import Config, KeyConfig
from ..credentials.secret import Secret
from ..model.errors import DragomanError
from ..store import Store, StoredKey
from .identity import ANYBODY, Identity
from .secrets import digest
from .stored_keys import hashes, settings

log = logging.getLogger("dragoman.gateway")

_FRESH = 1.0
"""Seconds for which keys that were read from the store are used without reading it again."""
_TOUCH = 60.0
"""Seconds between two writes of `last_used`."""


class _Entry(msgspec.Struct, frozen=True):
    """One secret, as its hash."""

    hash: bytes
    identity: Identity
    expires: float | None = None
    revoked: bool = False
    stored: bool = False
    replaced: bool = False
    """Was the key rotated since? Then this secret is valid only for a while."""

    def refusal(self, now: float) -> str | None:
        """Why the key is not valid; None if it is."""
        if self.revoked:
            return f'the key "{self.identity.name}" was revoked; ask the operator for another'
        if self.expires is not None and now >= self.expires:
            if self.replaced:
                return f'the key "{self.identity.name}" has a new secret since; use that one'
            return f'the key "{self.identity.name}" has expired; ask the operator for another'
        return None


class KeyLookup(msgspec.Struct, frozen=True):
    """What the keys of a request say."""

    identity: Identity | None
    """None: no valid key."""
    refusal: str = ""
    """Why the key of the request is not valid any more, if it was valid once."""


NOT_FOUND = KeyLookup(None)
_OPEN = KeyLookup(ANYBODY)


class KeyTable:
    """All keys of the gateway."""

    def __init__(self, store: Store, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._configured: dict[bytes, _Entry] = {}
        self._stored: dict[bytes, _Entry] = {}
        self._config = Config()
        self._rows: list[StoredKey] = []
        self._read_at: float | None = None
        self.read_once = False
        """Were the keys of the store read once?"""
        self._lost = False
        """Has the store lost its keys, so that the rows here are from before?"""
        self._reading: asyncio.Task[None] | None = None
        self._used: dict[str, float] = {}
        self._touched = -_TOUCH

    def configure(self, config: Config, env: Mapping[str, str]) -> tuple[Secret, ...]:
        """Use the keys of `config`. Returns their secrets. Raises ConfigError."""
        named = config.named_secrets(env)
        unnamed = config.keys(env)
        entries = [_Entry(digest(secret), ANYBODY) for secret in unnamed]
        for name, secret in named.items():
            key = config.named_keys[name]
            entries.append(_Entry(digest(secret), _identity(key, config), key.expires))
        self._configured = {entry.hash: entry for entry in entries}
        self._config = config
        self._use(self._rows)
        return (*unnamed, *named.values())

    @property
    def empty(self) -> bool:
        """Is there no key at all? Then every client may use the gateway."""
        return not self._configured and not self._stored

    def stale(self) -> bool:
        """Must the store be asked again before a key is judged?"""
        return self._read_at is None or self._monotonic() - self._read_at >= _FRESH

    async def refresh(self) -> None:
        """Read the keys of the store. Only one task waits for it, unless they were never read."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        elif self._read_at is not None:
            return  # another request reads them: this one goes on with those of a moment ago
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        try:
            self._use(self._unless_lost(await self._store.keys()))
            self.read_once = True
            await self._touch()
        except DragomanError as error:
            log.warning("the keys in the store cannot be read: %s", error.message)
        finally:
            self._read_at = self._monotonic()
            self._reading = None

    def _unless_lost(self, rows: list[StoredKey]) -> list[StoredKey]:
        """`rows`, or the rows of before if all are gone. No command deletes a key, so the store was replaced.

        Without them, a gateway whose keys are all in the store would be open to everybody.
        """
        if rows or not self._rows:
            self._lost = False
            return rows
        if not self._lost:
            self._lost = True
            log.warning("the store has lost its keys; they stay as they were until the gateway stops")
        return self._rows

    def _use(self, rows: list[StoredKey]) -> None:
        if rows is not self._rows and rows == self._rows and self._read_at is not None:
            return
        self._rows = rows
        found: dict[bytes, _Entry] = {}
        for row in rows:
            if row.name in self._config.named_keys:
                continue  # the config's key of that name wins: its limits are what the operator sees
            try:
                identity = _stored_identity(row, self._config)
                for hash, expires in hashes(row).items():
                    replaced = hash != row.hash
                    revoked = row.revoked is not None
                    found[hash] = _Entry(hash, identity, expires, revoked, stored=True, replaced=replaced)
            except (DragomanError, ValueError) as error:
                log.warning("a key is ignored: %s", error)
        self._stored = found

    def identify(self, presented: Sequence[Secret]) -> KeyLookup:
        """The identity of the first valid key. The caller must call `refresh` if `stale`."""
        if self.empty:
            return _OPEN
        refused = NOT_FOUND
        now = self._clock()
        for secret in presented:
            entry = self._entry(secret)
            if entry is None:
                continue
            why = entry.refusal(now)
            if why is None:
                if entry.stored:
                    self._used[entry.identity.name] = now
                return KeyLookup(entry.identity)
            refused = KeyLookup(None, why)
        return refused

    def knows(self, secret: Secret) -> bool:
        """Is it a key of this gateway, valid or not? Such a key never goes to an upstream."""
        return self._entry(secret) is not None

    def _entry(self, secret: Secret) -> _Entry | None:
        hash = digest(secret)
        entry = self._configured.get(hash) or self._stored.get(hash)
        # The time of the lookup depends on the hash, and a hash reveals nothing about the secret.
        return entry if entry is not None and hmac.compare_digest(entry.hash, hash) else None

    async def _touch(self) -> None:
        """Write when keys were last used. Not at every request: a list of keys needs no exact time."""
        now = self._monotonic()
        if self._used and now - self._touched >= _TOUCH:
            used, self._used, self._touched = self._used, {}, now
            await self._store.touch_keys(used)

    async def close(self) -> None:
        self._touched = -_TOUCH
        try:
            await self._touch()
        except DragomanError as error:
            log.warning("the last use of keys is not written: %s", error.message)


def _identity(key: KeyConfig, config: Config) -> Identity:
    return Identity(
        name=key.name,
        team=key.team,
        role=key.role,
        models=key.models,
        limits=key.limits,
        team_limits=_team_limits(key.team, config),
    )


def _stored_identity(key: StoredKey, config: Config) -> Identity:
    return Identity(
        name=key.name,
        team=key.team,
        role="admin" if key.role == "admin" else "user",
        models=key.models,
        limits=settings(key).limits,
        team_limits=_team_limits(key.team, config),
    )


def _team_limits(team: str, config: Config) -> UsageLimits:
    known = config.teams.get(team)
    return NO_LIMITS if known is None else known.limits
