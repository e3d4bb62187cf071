"""Tells other processes which targets cool down, and learns it from them.

The health table of each process stays complete, so no request waits for another process. A process that
starts asks the others once. Times are sent as seconds that are left: clocks of machines differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ...routing.health import Cooldown, Health
from ...shared import SharedState

_CHANNEL = "cooldowns"


class _Message(msgspec.Struct, frozen=True, omit_defaults=True):
    targets: dict[str, Cooldown] = {}
    asks: bool = False
    """Tell me what cools down."""


class SharedHealth:
    """Joins one process's health table to those of the others."""

    def __init__(self, health: Health, shared: SharedState, monotonic: Callable[[], float]) -> None:
        self._health = health
        self._shared = shared
        self._monotonic = monotonic
        health.on_change = self._changed
        shared.listen(_CHANNEL, self._received)
        shared.on_connect(self._connected)

    def _changed(self, key: str) -> None:
        self._tell((key,))

    def _connected(self) -> None:
        """Exchange what is known: either side may have missed something."""
        self._shared.publish(_CHANNEL, msgspec.json.encode(_Message(asks=True)))
        self._tell_all()

    def _tell_all(self) -> None:
        if self._health.failing:
            self._tell(self._health.failing, well=False)

    def _tell(self, keys: Iterable[str], *, well: bool = True) -> None:
        now = self._monotonic()
        known = {key: self._health.cooldown(key, now) for key in keys}
        targets = {key: cooldown for key, cooldown in known.items() if well or cooldown.cooldowns}
        if targets:
            self._shared.publish(_CHANNEL, msgspec.json.encode(_Message(targets)))

    def _received(self, data: bytes) -> None:
        message = msgspec.json.decode(data, type=_Message)
        now = self._monotonic()
        for key, cooldown in message.targets.items():
            self._health.adopt(key, cooldown, now)
        if message.asks:
            self._tell_all()
