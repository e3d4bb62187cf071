"""The re-read-once rule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .base import CredentialError, CredentialSource, Token

T = TypeVar("T")


class Refused(CredentialError):
    """The upstream would not take the credential: 401, 403, or an "auth unavailable" of a proxy's.

    `passing` says that the same credential may well be taken the next time.
    """

    def __init__(self, message: str, *, status: int = 401, passing: bool = False) -> None:
        super().__init__(message, fault="upstream")
        self.status = status
        self.passing = passing


async def with_fresh(source: CredentialSource, call: Callable[[Token], Awaitable[T]]) -> T:
    """Do `call` with the current token; when it raises `Refused`, once more with a newer one, if any."""
    token = await source.token()
    try:
        return await call(token)
    except Refused as refused:
        # Others may have been refused with the same token before, and have seen to a new one.
        newer = await source.token()
        if newer.secret == token.secret:
            newer = await source.token(force=True)
        if newer.secret == token.secret and not refused.passing:
            raise
    return await call(newer)
