"""Pass the client's own key on to the upstream."""

from __future__ import annotations

from ..protocols.registry import key_headers
from .base import CredentialError, CredentialSource, Token
from .secret import Secret


class ClientCredential:
    """The key of one caller. The source from the config has no key yet; `for_caller` adds it."""

    def __init__(self, name: str, key: Secret | None = None) -> None:
        self.name = name
        self._key = key

    def cached(self) -> Token | None:
        return None if self._key is None else Token(secret=self._key)

    async def token(self, *, force: bool = False) -> Token:
        if self._key is None:
            raise CredentialError(
                f"upstream {self.name} takes the client's own key, and this request has none: "
                f"send it as {', '.join(key_headers())} or Authorization: Bearer",
                fault="client",
            )
        return Token(secret=self._key)

    @property
    def problem(self) -> str:
        return ""

    async def close(self, *, wait: bool = False) -> None:
        """Nothing to close."""


def for_caller(source: CredentialSource, key: Secret | None) -> CredentialSource:
    """The source for a request with `key`. Only a `client` source depends on the caller."""
    # Not `isinstance`, which is slow here: it runs for every request and is nearly always false.
    return ClientCredential(source.name, key) if type(source) is ClientCredential else source
