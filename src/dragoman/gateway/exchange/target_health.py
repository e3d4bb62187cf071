"""Learn from the attempts of one exchange which targets and keys fail, and whether to try again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from ...model.events import Failed, FailureKind
from ...protocols.common.failures import UpstreamFailed
from ...routing.health import TARGET_SPECIFIC, TRANSIENT, backoff
from ...routing.key_order import cooldown
from ...routing.router import ChosenTarget
from ..upstreams.keys import KeyInUse, all_keys_failed, ordered_keys
from ..upstreams.upstreams import Upstreams
from .attempt import Attempt

T = TypeVar("T")

UNAUTHORIZED = frozenset({FailureKind.AUTHENTICATION, FailureKind.PERMISSION})
"""The upstream refused the key, so it is read again."""
# Seconds. Client SDKs retry by themselves: a longer wait is left to them, with `retry-after`.
_MAX_RETRY_DELAY = 5.0


def belongs_to_target(failure: Failed) -> bool:
    """May another target succeed? If not, the request itself is wrong, so it fails at every target."""
    return failure.kind in TRANSIENT or failure.kind in TARGET_SPECIFIC


class TargetHealth:
    """Reports the attempts of one exchange to the table of cooldowns."""

    __slots__ = ("_upstreams", "key")

    def __init__(self, upstreams: Upstreams) -> None:
        self._upstreams = upstreams
        self.key: KeyInUse | None = None
        """Set while an upstream with several keys is tried."""

    async def try_keys(
        self,
        choice: ChosenTarget,
        conversation: Callable[[], str] | None,
        ask: Callable[[ChosenTarget], Awaitable[T | Failed]],
    ) -> T | Failed:
        """Try one target with its keys, until one of them is not the reason for a failure.

        Without a `conversation`, only the first key is tried.
        """
        upstream, self.key = choice.upstream, None
        if not upstream.each_key or conversation is None:
            return await ask(choice)
        keys = await ordered_keys(self._upstreams, upstream, choice.key, conversation)
        answer = None
        for key in keys:
            self.key = KeyInUse(self._upstreams, key, is_last=key is keys[-1])
            answer = await ask(msgspec.structs.replace(choice, upstream=key.upstream))
            if not isinstance(answer, Failed) or not self.key.is_reason:
                return answer
        assert isinstance(answer, Failed)
        return await all_keys_failed(self._upstreams, upstream, choice.key, answer)

    def began(self, choice: ChosenTarget) -> None:
        health = self._upstreams.health
        if health.failing:
            health.began(choice.key, self._upstreams.monotonic())
            if self.key is not None:
                self.key.began()

    def abandoned(self, choice: ChosenTarget) -> None:
        """The attempt says nothing about the target, nor about its key."""
        self._upstreams.health.abandoned(choice.key)
        if self.key is not None:
            self.key.abandoned()

    def succeeded(self, choice: ChosenTarget, attempt: Attempt) -> None:
        health = self._upstreams.health
        if health.failing:
            health.succeeded(choice.key)
            if self.key is not None:
                self.key.sent(attempt.sent_headers.credential)
                self.key.succeeded()

    def failed(self, choice: ChosenTarget, failure: Failed, attempt: Attempt) -> bool:
        """Count a failure if the target, or its key, caused it. Returns whether it did."""
        health, key = self._upstreams.health, self.key
        wait = 0.0 if failure.used_up and failure.retry_after is None else failure.retry_after
        if key is not None:
            key.sent(attempt.sent_headers.credential)
            if key.failed(failure, unreadable=attempt.has_no_key):
                if not key.is_last:
                    health.abandoned(choice.key)  # the target has other keys
                    return True
                # All keys failed. Not this key's time: another one may be ready sooner.
                wait = None if cooldown(failure) is None else 0.0
        if belongs_to_target(failure):
            health.failed(choice.key, self._upstreams.monotonic(), wait)
            return True
        health.abandoned(choice.key)
        return False

    async def may_be_renewed(self, choice: ChosenTarget, attempt: Attempt) -> bool:
        """Is a refused key worth another try? While other keys are left, only if it has changed."""
        if self.key is None or self.key.is_last:
            return True
        return await self._upstreams.keyring.changed_since(choice.upstream, attempt.sent_headers)

    def explain_failure(self, choice: ChosenTarget, failure: Failed) -> Failed:
        """The failure, with why a refused key could not be read again: its user may have to sign in."""
        why = self._upstreams.keyring.problem(choice.upstream) if failure.kind in UNAUTHORIZED else ""
        if not why or why in failure.message:
            return failure
        message = f"{failure.message} (the key of {choice.upstream.name} could not be read again: {why})"
        return msgspec.structs.replace(failure, message=message)

    def retry_delay(
        self, choice: ChosenTarget, failed: UpstreamFailed, attempt: Attempt, tries: int, retries: int
    ) -> float | None:
        """Seconds to wait before the same target is tried again. None: do not retry it."""
        failure = failed.failure
        if not self.failed(choice, failure, attempt) or not failed.retryable:
            return None
        if failure.kind not in TRANSIENT or failure.used_up or tries > retries:
            return None
        delay = failure.retry_after
        if delay is None:
            delay = backoff(tries, self._upstreams.random())
        return delay if delay <= _MAX_RETRY_DELAY else None
