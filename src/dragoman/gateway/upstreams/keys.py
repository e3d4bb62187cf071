"""Upstreams with several keys: which key a request uses, and which one follows after a failure."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from ...config.types import UpstreamConfig
from ...credentials.secret import Secret
from ...model.events import Failed, FailureKind
from ...routing.key_order import belongs_to_key, cooldown, keys_for
from .upstreams import Upstreams


class UpstreamKey(msgspec.Struct, frozen=True):
    """One key of an upstream, for one target."""

    upstream: UpstreamConfig
    """The upstream with this key."""
    target: str
    """The target's key in `Health`."""
    name: str
    """The fingerprint, or the place that the key comes from if it was not read yet."""

    @property
    def health(self) -> str:
        """The key in `Health`. It has the model, too: rate limits are often per model."""
        return f"{self.target} {self.name}"


async def ordered_keys(
    upstreams: Upstreams, upstream: UpstreamConfig, target: str, conversation: Callable[[], str]
) -> list[UpstreamKey]:
    """The keys of `upstream`, in the order to try them. `target` is the target's key in `Health`.

    All requests of a conversation begin with the same key, unless it cools down. A request without a
    conversation begins with a random one.
    """
    listed = keys_for(upstream, conversation() or str(upstreams.random()))
    found = [await _key_of(upstreams, one, target) for one in listed]
    return upstreams.health.order(found, lambda one: one.health, upstreams.monotonic())


async def first_key(
    upstreams: Upstreams, upstream: UpstreamConfig, target: str, conversation: Callable[[], str] = str
) -> UpstreamConfig:
    """The upstream with the key to try first."""
    if not upstream.each_key:
        return upstream
    return (await ordered_keys(upstreams, upstream, target, conversation))[0].upstream


class KeyInUse:
    """The key of the current attempt, and how its result counts for the key."""

    __slots__ = ("_health", "_key", "_now", "is_last", "is_reason")

    def __init__(self, upstreams: Upstreams, key: UpstreamKey, *, is_last: bool) -> None:
        self._health = upstreams.health
        self._now = upstreams.monotonic
        self._key = key
        self.is_last = is_last
        """Is no other key left for this request?"""
        self.is_reason = False
        """Was the key the reason for the last failure?"""

    def began(self) -> None:
        self._health.began(self._key.health, self._now())

    def sent(self, credential: Secret | None) -> None:
        """The key that was sent. Until then, its fingerprint may not be known."""
        if credential is not None:
            self._key = msgspec.structs.replace(self._key, name=credential.fingerprint)

    def succeeded(self) -> None:
        self._health.succeeded(self._key.health)

    def abandoned(self) -> None:
        self._health.abandoned(self._key.health)

    def failed(self, failure: Failed, *, unreadable: bool = False) -> bool:
        """Count a failure. Returns whether the key is the reason for it: another key may succeed.

        `unreadable`: there was no key to send.
        """
        self.is_reason = unreadable or belongs_to_key(failure)
        if not self.is_reason:
            self.abandoned()
            return False
        wait = 0.0 if unreadable else cooldown(failure)
        self._health.failed(self._key.health, self._now(), wait)
        return True


async def all_keys_failed(
    upstreams: Upstreams, upstream: UpstreamConfig, target: str, failure: Failed
) -> Failed:
    """`failure` of the last key, with what it says about all keys: when the first of them is tried again."""
    first = (await ordered_keys(upstreams, upstream, target, str))[0]
    wait = upstreams.health.until(first.health) - upstreams.monotonic()
    if wait <= 0:
        return failure  # the failure was too short for a cooldown
    count = len(upstream.each_key)
    message = (
        f"{failure.message} (none of the {count} keys of {upstream.name} works now; the first of them is "
        f"tried again in {math.ceil(wait)} s)"
    )
    known = failure.kind is FailureKind.RATE_LIMIT
    return msgspec.structs.replace(
        failure, message=message, retry_after=wait if known else failure.retry_after
    )


async def _key_of(upstreams: Upstreams, upstream: UpstreamConfig, target: str) -> UpstreamKey:
    return UpstreamKey(upstream, target, await upstreams.keyring.key_name(upstream))
