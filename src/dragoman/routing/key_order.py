"""The order in which the keys of one upstream are tried, and the failures that belong to a key. Pure."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ..config.types import UpstreamConfig
from ..credentials import CredentialSpec
from ..model.events import Failed, FailureKind
from .router import sticky

# Another key of the same upstream may succeed.
_KEY_SPECIFIC = frozenset(
    {FailureKind.RATE_LIMIT, FailureKind.AUTHENTICATION, FailureKind.PERMISSION, FailureKind.BILLING}
)
# The next request with this key fails as well, so the key cools down at once.
_LASTING = frozenset({FailureKind.AUTHENTICATION, FailureKind.BILLING})


def keys_for(upstream: UpstreamConfig, conversation: str) -> list[UpstreamConfig]:
    """The keys of `upstream` in the order for one conversation. The order of all conversations differs.

    Each key has its own number for the conversation, and the highest comes first (rendezvous hashing). If the
    config gets another key, the other conversations stay with theirs: a prompt cache belongs to an account.
    """

    def number(key: UpstreamConfig) -> float:
        return sticky(f"{conversation}\0{_identity(key.credential)}")

    return sorted(upstream.each_key, key=number, reverse=True)


def belongs_to_key(failure: Failed) -> bool:
    """May the same request succeed with another key?"""
    return failure.kind in _KEY_SPECIFIC


def cooldown(failure: Failed) -> float | None:
    """The `retry_after` for `Health.failed`: at least 0 if a retry with the same key is useless."""
    if failure.retry_after is None and (failure.used_up or failure.kind in _LASTING):
        return 0.0
    return failure.retry_after


@lru_cache(maxsize=256)
def _identity(spec: CredentialSpec) -> str:
    return repr(msgspec.structs.astuple(spec))
