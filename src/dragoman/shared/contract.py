"""The contract of every engine for shared state: `local.py` (this process alone) and `redis.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ..model.errors import DragomanError
from ..store import Addition


class SharedStateError(DragomanError):
    """The shared state cannot be reached."""

    status = 503


class Counters(Protocol):
    """Counters that several processes share. Every store has them too."""

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        """Add to counters, all or none, at once for every process. Returns their new values, in order.

        The names must differ. A counter whose time is over begins at 0. Raises DragomanError if the counters
        cannot be reached.
        """
        ...


class Messages(Protocol):
    """Messages between processes. They may get lost: a receiver must be able to do without any of them."""

    def publish(self, channel: str, message: bytes) -> None:
        """Send `message` to the other processes that listen. Never waits, and never fails."""
        ...

    def listen(self, channel: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        """Call `on_message` for each message of another process. Returns a function that ends this."""
        ...

    def on_connect(self, call: Callable[[], None]) -> None:
        """Call `call` whenever a connection is made: messages, or even counters, may have been lost."""
        ...


class Notes(Protocol):
    """What a process wants others to find if it dies."""

    def note(self, name: str, value: bytes | None) -> None:
        """Keep `value` for this process; None removes it. Never waits, and never fails."""
        ...

    async def take_orphaned(self) -> list[bytes]:
        """The notes of processes that have died. Only one caller of all processes gets each of them."""
        ...


class SharedState(Counters, Messages, Notes, Protocol):
    """All of it. Running streams need no leases of their own: `access/holds.py` makes them from counters."""

    @property
    def problem(self) -> str:
        """Why nothing is shared at the moment, as a sentence; empty if all is well. Must not wait."""
        ...

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock `name` among all processes.

        A process that dies, or takes very long, loses the lock. A process that waits too long, or cannot
        reach the others, continues without the lock. So use it only for work that is safe without it, even
        if wasteful.
        """
        ...

    async def close(self) -> None: ...
