"""No credential, for upstreams that need none."""

from __future__ import annotations

from .base import Token

_NOTHING = Token(secret=None)


class NoCredential:
    """Always gives a token without a secret."""

    def cached(self) -> Token | None:
        return _NOTHING

    async def token(self, *, force: bool = False) -> Token:
        return _NOTHING

    @property
    def problem(self) -> str:
        return ""

    async def close(self, *, wait: bool = False) -> None:
        """Nothing to close."""
