"""Keys that are made at run time: made, changed, and read from the store."""

from __future__ import annotations

import binascii

import msgspec

from ..config.limits import NO_LIMITS, UsageLimits
from ..config.types import Role
from ..credentials.secret import Secret
from ..model.errors import DragomanError, Fault
from ..store import Store, StoredKey
from .secrets import digest, new_secret, shown_part


class KeyCommandError(DragomanError):
    """A command about a key cannot be carried out."""

    fault: Fault = "client"


class StoredSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON in `StoredKey.limits`."""

    limits: UsageLimits = NO_LIMITS
    previous: str = ""
    """The hash of the secret before the last rotation, in hex. It is valid until `previous_until`."""
    previous_until: float = 0.0


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key to make."""

    name: str
    role: Role = "user"
    team: str = ""
    models: tuple[str, ...] = ()
    limits: UsageLimits = NO_LIMITS
    expires: float | None = None


def settings(key: StoredKey) -> StoredSettings:
    """A newer Dragoman may have written members that this one does not know: they are ignored."""
    try:
        return msgspec.json.decode(key.limits, type=StoredSettings)
    except msgspec.DecodeError as error:
        raise DragomanError(f'the limits of the key "{key.name}" cannot be read: {error}') from None


def hashes(key: StoredKey) -> dict[bytes, float | None]:
    """The hashes of the key's secrets, and the time when each expires."""
    kept = settings(key)
    found = {key.hash: key.expires}
    if kept.previous:
        until = kept.previous_until if key.expires is None else min(key.expires, kept.previous_until)
        found[binascii.unhexlify(kept.previous)] = until
    return found


async def create(store: Store, new: NewKey, now: float) -> Secret:
    """Make a key. Returns its secret, which is stored only as a hash."""
    secret = new_secret()
    key = StoredKey(
        name=new.name,
        hash=digest(secret),
        prefix=shown_part(secret),
        team=new.team,
        role=new.role,
        models=new.models,
        limits=msgspec.json.encode(StoredSettings(limits=new.limits)),
        created=now,
        expires=new.expires,
    )
    # A revoked key keeps its name: another person with that name would see the exchanges of the first.
    if not await store.put_key(key, replace=False):
        raise KeyCommandError(
            f'there is a key "{new.name}" already; choose another name, or give this key a new secret with '
            f"`dragoman keys rotate {new.name}`"
        )
    return secret


async def revoke(store: Store, name: str, now: float) -> StoredKey:
    """Revoke a key for good. Returns it."""
    key = await _usable_key(store, name)
    key = msgspec.structs.replace(key, revoked=now)
    await store.put_key(key)
    return key


async def rotate(store: Store, name: str, now: float, grace: float) -> Secret:
    """Give a key a new secret. The old one stays valid for `grace` seconds."""
    key = await _usable_key(store, name)
    secret = new_secret()
    kept = settings(key)
    if grace:
        kept = msgspec.structs.replace(kept, previous=key.hash.hex(), previous_until=now + grace)
    else:
        kept = msgspec.structs.replace(kept, previous="", previous_until=0.0)
    changed = msgspec.structs.replace(
        key, hash=digest(secret), prefix=shown_part(secret), limits=msgspec.json.encode(kept)
    )
    await store.put_key(changed)
    return secret


async def _usable_key(store: Store, name: str) -> StoredKey:
    found = {key.name: key for key in await store.keys()}
    key = found.get(name)
    if key is None:
        known = ", ".join(found) or "none"
        raise KeyCommandError(f'there is no key "{name}" in the store; its keys are: {known}')
    if key.revoked is not None:
        raise KeyCommandError(f'the key "{name}" is revoked; create another one')
    return key
