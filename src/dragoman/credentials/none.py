"""No credential, for upstreams that want none."""

from __future__ import annotations

from .base import Token

_NOTHING = Token(secret=None)


class NoCredential:
    """Gives nothing, always."""

    def at_hand(self) -> Token | None:
        return _NOTHING

    async def token(self, *, force: bool = False) -> Token:
        return _NOTHING

    async def close(self, *, landing: bool = False) -> None:
        """Nothing is ever read."""
