"""The caller's own key, passed on to the upstream."""

from __future__ import annotations

from ..protocols.registry import key_headers
from .base import CredentialError, CredentialSource, Token
from .secret import Secret


class ClientCredential:
    """One caller's key. The one that is opened from the config has none yet: see `for_caller`."""

    def __init__(self, name: str, key: Secret | None = None) -> None:
        self.name = name
        self._key = key

    def at_hand(self) -> Token | None:
        return None if self._key is None else Token(secret=self._key)

    async def token(self, *, force: bool = False) -> Token:
        if self._key is None:
            raise CredentialError(
                f"upstream {self.name} takes the caller's own key, and the request came without one: "
                f"send it as {', '.join(key_headers())} or Authorization: Bearer",
                fault="client",
            )
        return Token(secret=self._key)

    async def close(self, *, landing: bool = False) -> None:
        """Nothing is ever read."""


def for_caller(source: CredentialSource, key: Secret | None) -> CredentialSource:
    """The source to use for a request that came with `key`: the same one, unless it passes keys on."""
    # By the type itself: that it is none, `isinstance` takes long to tell.
    return ClientCredential(source.name, key) if type(source) is ClientCredential else source
