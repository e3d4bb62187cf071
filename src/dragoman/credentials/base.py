"""What a credential is to the rest of the house, and what a place it can come from has to offer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec

from ..model.errors import DragomanError, Fault
from .secret import Secret


class CredentialError(DragomanError):
    """There is no usable credential. The text names the upstream and the place, never the secret."""

    status = 503

    def __init__(self, message: str, fault: Fault = "dragoman") -> None:
        super().__init__(message)
        self.fault = fault
        if fault == "client":
            self.status = 401


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What to authenticate one request with."""

    secret: Secret | None
    """None: the upstream wants nothing."""
    expires: float | None = None
    """Seconds since the epoch, where it is known."""
    changed: bool = False
    """This call brought another secret than the one before it."""


class CredentialSource(Protocol):
    """Asked once per request. Asking again is the refresh: what is behind it decides what that costs."""

    def at_hand(self) -> Token | None:
        """The same as `token()` would give, where nobody has to wait for it."""
        ...

    async def token(self, *, force: bool = False) -> Token:
        """The current token. `force` reads it anew even if nothing seems to have changed."""
        ...

    async def close(self, *, landing: bool = False) -> None:
        """Give up a read that is under way; with `landing`, let it end first."""
        ...


class Stamp(NamedTuple):
    """What a cheap look at a place shows. The same marks twice mean: no need to read again."""

    marks: tuple[object, ...] = ()
    settled: bool = True
    """False: so young that a later change might leave the same marks; read again to be sure."""


class Reading(msgspec.Struct, frozen=True):
    """What a place held."""

    secret: Secret
    expires: float | None = None
    """Seconds since the epoch."""
    ttl: float | None = None
    """Seconds from now after which it is to be read again."""


class Problem(msgspec.Struct, frozen=True):
    """Why a place gave nothing, as a sentence that says what to do.

    Returned, not raised: an exception would drag the frames along that saw the secret's text.
    """

    why: str


class Reader(Protocol):
    """One place a secret can come from. The cache in front of it does the rest."""

    @property
    def renews(self) -> bool:
        """Does reading again bring a newer token, although nothing changed?"""
        ...

    @property
    def pause(self) -> float:
        """Seconds to wait before reading again when a read failed or was forced and brought nothing new."""
        ...

    def stamp(self) -> Stamp:
        """The change check, done for every request: a `stat`, not more."""
        ...

    async def read(self, *, force: bool) -> Reading | Problem:
        """Never two at a time. Must not hold up the event loop, nor raise for what can go wrong outside."""
        ...
