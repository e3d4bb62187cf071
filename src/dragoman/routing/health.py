"""Circuit breaker: which targets cool down, and until when. Pure: the caller passes the time.

`on_change` and `adopt` let processes tell each other about cooldowns (`gateway/process/shared_health.py`).

A target cools down after several failures in a row, or if it sends a Retry-After. After the cooldown, one
request probes the target. If the probe fails, the next cooldown is twice as long. Cooling targets are tried
last, but never left out: if all targets cool down, one of them still has to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Literal, TypeVar

import msgspec

from ..model.events import FailureKind

TRANSIENT = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.SERVER,
        FailureKind.UPSTREAM,
        FailureKind.TIMEOUT,
        FailureKind.OVERLOADED,
    }
)
"""The upstream has a passing problem: the same target or another one may succeed."""
TARGET_SPECIFIC = frozenset(
    {
        FailureKind.AUTHENTICATION,
        FailureKind.PERMISSION,
        FailureKind.BILLING,
        FailureKind.NOT_FOUND,
    }
)
"""This target fails again whenever it is tried. Another target may succeed."""

State = Literal["well", "cooling", "probe"]
Item = TypeVar("Item")
# Clients may invent model names. This bounds the memory that they can use.
_MAX_TARGETS = 4096


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """When and how long targets cool down. Times are in seconds."""

    failures: int = 3
    """Failures in a row before a cooldown. One failure is enough if it has a Retry-After."""
    first: float = 5.0
    longest: float = 300.0
    longest_asked: float = 3600.0
    """The longest Retry-After that is respected."""
    probe: float = 60.0
    """After this time without a result, a probe counts as lost, and another request may probe."""


class Cooldown(msgspec.Struct, frozen=True):
    """What processes tell each other about a target. The default says that it is well."""

    seconds: float = 0.0
    """How long it still cools down."""
    cooldowns: int = 0
    """Cooldowns in a row. The next one is longer."""
    probing: bool = False
    """A request tries it now."""


class _FailureState(msgspec.Struct):
    """The recent failures of one target."""

    failures: int = 0
    cooldowns: int = 0
    until: float = 0.0
    probing_since: float | None = None


class Health:
    """The state of all targets. The key is `upstream/model`, because rate limits are often per model."""

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        self.failing: dict[str, _FailureState] = {}
        """Targets with recent failures: usually none."""
        self.on_change: Callable[[str], None] = lambda key: None
        """Gets the key of a target whose cooldown begins, changes or ends."""

    def state(self, key: str, now: float) -> State:
        """`cooling`: try other targets first. `probe`: the cooldown is over, and one request may try."""
        state = self.failing.get(key)
        if state is None or not state.cooldowns:
            return "well"
        probing = state.probing_since
        if now < state.until or (probing is not None and now < probing + self._policy.probe):
            return "cooling"
        return "probe"

    def began(self, key: str, now: float) -> None:
        """A request to the target starts. After a cooldown, it is the only probe until it ends."""
        if key in self.failing and self.state(key, now) == "probe":
            self.failing[key].probing_since = now
            self.on_change(key)

    def succeeded(self, key: str) -> None:
        state = self.failing.pop(key, None)
        if state is not None and state.cooldowns:
            self.on_change(key)

    def failed(self, key: str, now: float, retry_after: float | None = None) -> None:
        """A request failed because of the target. `retry_after`: the seconds that the upstream asked for."""
        state = self.failing.setdefault(key, _FailureState())
        if len(self.failing) > _MAX_TARGETS:
            self.failing.pop(next(iter(self.failing)))
        if now < state.until and state.probing_since is None:
            # This request started before the cooldown, or while all targets were cooling. It says nothing new
            # unless the upstream asks for a longer wait.
            longer = now + self._bounded(retry_after)
            if longer > state.until:
                state.until = longer
                self.on_change(key)
            return
        state.failures += 1
        was_probe = state.cooldowns > 0
        state.probing_since = None
        if was_probe or retry_after is not None or state.failures >= self._policy.failures:
            state.until = now + max(self._cooldown(state.cooldowns), self._bounded(retry_after))
            state.cooldowns += 1
            self.on_change(key)

    def abandoned(self, key: str) -> None:
        """The client went away. That says nothing about the target."""
        state = self.failing.get(key)
        if state is not None and state.probing_since is not None:
            state.probing_since = None
            self.on_change(key)

    def cooldown(self, key: str, now: float) -> Cooldown:
        """What this process knows about a target, to tell others."""
        state = self.failing.get(key)
        if state is None or not state.cooldowns:
            return Cooldown()
        return Cooldown(max(0.0, state.until - now), state.cooldowns, state.probing_since is not None)

    def adopt(self, key: str, cooldown: Cooldown, now: float) -> None:
        """Take over what another process knows about a target."""
        if not cooldown.cooldowns:
            self.failing.pop(key, None)
            return
        state = self.failing.setdefault(key, _FailureState())
        if len(self.failing) > _MAX_TARGETS:
            self.failing.pop(next(iter(self.failing)))
        longest = max(self._policy.longest, self._policy.longest_asked)
        state.until = max(state.until, now + min(cooldown.seconds, longest))
        state.cooldowns = max(state.cooldowns, cooldown.cooldowns)
        state.probing_since = now if cooldown.probing else None

    def until(self, key: str) -> float:
        """When the cooldown ends; 0 if there is none."""
        state = self.failing.get(key)
        return state.until if state else 0.0

    def order(self, items: Iterable[Item], key: Callable[[Item], str], now: float) -> list[Item]:
        """`items` in the order to try them. Cooling targets come last, the soonest ready first."""

        def ready_at(item: Item) -> float:
            name = key(item)
            return self.until(name) if self.state(name, now) == "cooling" else -inf

        return sorted(items, key=ready_at)

    def keep_only(self, keys: Iterable[str]) -> None:
        """Forget targets that the new config does not have. `upstream/*` keeps all models of an upstream."""
        kept = set(keys)
        self.failing = {
            key: state
            for key, state in self.failing.items()
            if key in kept or f"{key.partition('/')[0]}/*" in kept
        }

    def _cooldown(self, cooldowns: int) -> float:
        policy = self._policy
        return min(policy.longest, policy.first * 2.0 ** min(cooldowns, 30))

    def _bounded(self, retry_after: float | None) -> float:
        return min(self._policy.longest_asked, max(0.0, retry_after or 0.0))


def backoff(tries: int, random: float, *, first: float = 0.5, longest: float = 8.0) -> float:
    """Seconds before the next retry at the same target, after `tries` failures. `random` is in 0…1.

    Exponential backoff with jitter: requests that failed together do not retry together.
    """
    # Half of the delay is fixed, half is random: a delay near zero would hit a limit again at once.
    whole = min(longest, first * 2.0 ** min(max(tries, 1) - 1, 30))
    return whole * (0.5 + random / 2)
