"""The contracts: `CredentialSource` for the gateway, `SecretReader` for a place that holds a secret.

Most secrets go into one header. A token with `sign` writes its own headers, from the finished request: AWS
signs the method, URL, headers and body of each request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from ..model.errors import DragomanError, Fault
from .secret import Secret


class CredentialError(DragomanError):
    """There is no usable credential. The message names the upstream and the source, never the secret."""

    status = 503

    def __init__(self, message: str, fault: Fault = "dragoman") -> None:
        super().__init__(message)
        self.fault = fault
        if fault == "client":
            self.status = 401


class FinishedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that lacks only its credential."""

    method: str
    url: str
    headers: Mapping[str, str]
    """The headers that are known. The transport may add others, which are not signed."""
    body: bytes


Signer = Callable[[FinishedRequest], dict[str, str]]
"""Returns the headers that authenticate a request. It runs for every request and must not wait."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """The secret that authenticates one request."""

    secret: Secret | None
    """None: the upstream needs no credential."""
    expires: float | None = None
    """Seconds since the epoch; None if it is not known."""
    changed: bool = False
    """Did this call read a new secret?"""
    sign: Signer | None = None
    """Set if the token writes its own headers. None: the secret goes into one header."""


class CredentialSource(Protocol):
    """Gives the token for each request. There is no separate refresh: calling again refreshes if needed."""

    def cached(self) -> Token | None:
        """The token that `token()` would return, if it is known without waiting."""
        ...

    async def token(self, *, force: bool = False) -> Token:
        """The current token. `force` reads it again even if nothing seems to have changed."""
        ...

    @property
    def problem(self) -> str:
        """Why the last read failed; empty if it did not."""
        ...

    async def close(self, *, wait: bool = False) -> None:
        """Cancel a pending read. With `wait`, let it finish first."""
        ...


class Stamp(NamedTuple):
    """The result of a cheap change check. Equal marks mean that the secret need not be read again."""

    marks: tuple[object, ...] = ()
    settled: bool = True
    """False: the last change is so recent that another one may leave equal marks. Read again to be sure."""


class Reading(msgspec.Struct, frozen=True):
    """A secret that was read."""

    secret: Secret
    expires: float | None = None
    """Seconds since the epoch."""
    ttl: float | None = None
    """Seconds after which to read again."""
    sign: Signer | None = None
    """See `Token.sign`."""


class ReadProblem(msgspec.Struct, frozen=True):
    """Why no secret could be read, as a sentence that says what to do.

    Returned, not raised: the traceback of an exception would hold frames with the text of the secret.
    """

    why: str
    passing: bool = False
    """It will be readable soon: another program is writing."""


class SecretReader(Protocol):
    """Reads a secret from one kind of place. `CachedCredential` decides when to call it."""

    @property
    def renews(self) -> bool:
        """Can reading again give a newer token although `stamp` has not changed?"""
        ...

    @property
    def pause(self) -> float:
        """Seconds to wait before the next read after a failed read, or a forced read without a new secret."""
        ...

    def stamp(self) -> Stamp:
        """The change check. It runs for every request, so it must cost no more than a `stat`."""
        ...

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        """Read the secret. Calls never overlap. Must not block the event loop, nor raise outside errors."""
        ...
