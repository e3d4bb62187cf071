"""Fast state that processes share. `contract.py` says what an engine must do."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..credentials.secret import Secret
from .batches import BatchedCounters
from .contract import Counters, Messages, SharedState, SharedStateError
from .local import LocalState

__all__ = [
    "BatchedCounters",
    "Counters",
    "LocalState",
    "Messages",
    "SharedState",
    "SharedStateError",
    "open_shared",
]


def open_shared(address: Secret | None, clock: Callable[[], float] = time.time) -> SharedState:
    """The shared state at `address`, or that of this process alone. Does not wait for a connection."""
    if address is None:
        return LocalState(clock)
    try:
        from .redis import RedisState
    except ImportError as error:
        raise SharedStateError(
            f"server.redis is set, and its driver cannot be imported ({error}): "
            "install it with `pip install 'dragoman[redis]'`"
        ) from None
    return RedisState(address, clock)
