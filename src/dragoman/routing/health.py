"""Which targets are in trouble, and until when. Pure: the time comes in with every call.

A target that keeps failing, or says itself how long to stay away, is left to cool down. When that is over,
one request may try it again; if that fails too, the next pause is twice as long. Cooling targets are tried
last and never left out: when all of them are cooling, one still has to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Literal, TypeVar

import msgspec

State = Literal["well", "cooling", "probe"]
Item = TypeVar("Item")
# Clients may name models themselves: what is remembered must not grow with their inventions.
_MOST = 4096


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers, in seconds."""

    failures: int = 3
    """How many in a row make a target cool down. Those that say how long to wait need only one."""
    first: float = 5.0
    longest: float = 300.0
    longest_asked: float = 3600.0
    """An upstream that asks for more is asked again after this."""
    probe: float = 60.0
    """A trial that says nothing for so long was given up, and another may try."""


class _Trouble(msgspec.Struct):
    """What is known of one target that is not simply well."""

    failures: int = 0
    pauses: int = 0
    until: float = 0.0
    probing_since: float | None = None


class Health:
    """The state of all targets. A key is `upstream/model`: a limit on one model says nothing of the next."""

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        self.trouble: dict[str, _Trouble] = {}
        """Of those that are not simply well: usually none."""

    def state(self, key: str, now: float) -> State:
        """`cooling`: leave it alone. `probe`: its pause is over, one request may find out."""
        trouble = self.trouble.get(key)
        if trouble is None or not trouble.pauses:
            return "well"
        probing = trouble.probing_since
        if now < trouble.until or (probing is not None and now < probing + self._policy.probe):
            return "cooling"
        return "probe"

    def began(self, key: str, now: float) -> None:
        """A request is on its way. After a pause it is the only one, until it succeeds or fails."""
        if key in self.trouble and self.state(key, now) == "probe":
            self.trouble[key].probing_since = now

    def succeeded(self, key: str) -> None:
        self.trouble.pop(key, None)

    def failed(self, key: str, now: float, retry_after: float | None = None) -> None:
        """It failed by the target's own fault; `retry_after` is how many seconds it asked for."""
        trouble = self.trouble.setdefault(key, _Trouble())
        if len(self.trouble) > _MOST:
            self.trouble.pop(next(iter(self.trouble)))
        if now < trouble.until and trouble.probing_since is None:
            # An answer to a request from before the pause, or from when all were cooling: nothing new,
            # unless it asks for longer.
            trouble.until = max(trouble.until, now + self._asked(retry_after))
            return
        trouble.failures += 1
        was_trial = trouble.pauses > 0
        trouble.probing_since = None
        if was_trial or retry_after is not None or trouble.failures >= self._policy.failures:
            trouble.until = now + max(self._pause(trouble.pauses), self._asked(retry_after))
            trouble.pauses += 1

    def abandoned(self, key: str) -> None:
        """The request was given up by the client: it says nothing about the target."""
        if key in self.trouble:
            self.trouble[key].probing_since = None

    def until(self, key: str) -> float:
        """When its pause ends; 0 when there is none."""
        trouble = self.trouble.get(key)
        return trouble.until if trouble else 0.0

    def order(self, items: Iterable[Item], key: Callable[[Item], str], now: float) -> list[Item]:
        """`items` in order of trial: those that cool down last, the soonest ready first among them."""

        def ready_at(item: Item) -> float:
            name = key(item)
            return self.until(name) if self.state(name, now) == "cooling" else -inf

        return sorted(items, key=ready_at)

    def snapshot(self, now: float) -> dict[str, float]:
        """The targets that cool down, and for how many seconds more: for people and metrics."""
        return {
            key: max(0.0, trouble.until - now)
            for key, trouble in self.trouble.items()
            if self.state(key, now) == "cooling"
        }

    def keep_only(self, keys: Iterable[str]) -> None:
        """Forget targets that a new config no longer has; `upstream/*` keeps all of an upstream's."""
        kept = set(keys)
        self.trouble = {
            key: trouble
            for key, trouble in self.trouble.items()
            if key in kept or f"{key.partition('/')[0]}/*" in kept
        }

    def _pause(self, pauses: int) -> float:
        policy = self._policy
        return min(policy.longest, policy.first * 2.0 ** min(pauses, 30))

    def _asked(self, retry_after: float | None) -> float:
        return min(self._policy.longest_asked, max(0.0, retry_after or 0.0))


def backoff(tries: int, random: float, *, first: float = 0.5, longest: float = 8.0) -> float:
    """Seconds before the next try at the same target, after `tries` (from 1) failed. `random` is in 0…1.

    Between a half and the whole of a time that doubles: those that failed together do not come back together.
    """
    whole = min(longest, first * 2.0 ** min(max(tries, 1) - 1, 30))
    return whole * (0.5 + random / 2)
