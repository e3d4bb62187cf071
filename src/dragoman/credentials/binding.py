"""Put a secret on a request: in the header of the upstream's protocol, and only for the upstream's origin."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from ..protocols import registry
from ..protocols.facts import BEARER, Auth
from ..protocols.registry import PROTOCOLS, upstream_protocol
from ..transport.urls import parse
from .base import CredentialError, FinishedRequest, Token
from .secret import Secret

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
AZURE = Auth("api-key", ("eyJ",))
"""Azure speaks OpenAI's protocols but wants keys in `api-key`. Entra ID tokens (`eyJ…`) are bearer tokens."""
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def auth_for(protocol: str, base_url: str) -> Auth:
    """The header for the key of an upstream."""
    auth, origin = upstream_protocol(protocol).auth, Origin.of(base_url)
    if auth == BEARER and origin is not None and origin.host.endswith(AZURE_HOSTS):
        return AZURE
    return auth


def auth_in(header: str) -> Auth:
    """The header that a config names in `auth`. Tokens from a sign-in stay bearer tokens."""
    if header == "bearer":
        return BEARER
    known = (AZURE, *(record.auth for record in PROTOCOLS.values()))
    return next((auth for auth in known if auth.header == header), Auth(header))


def key_headers() -> tuple[str, ...]:
    """The headers that may hold a key, besides `Authorization: Bearer`."""
    return (*registry.key_headers(), AZURE.header)


class Origin(msgspec.Struct, frozen=True):
    """Scheme, host and port. A credential is sent to one origin only."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """None if the URL has no origin, or has a login: `https://good@evil` misleads readers."""
        try:
            parsed = parse(url)
        except ValueError:
            return None
        return None if parsed.login is not None else cls(parsed.scheme, parsed.host, parsed.port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class BoundCredential:
    """A token that is bound to the origin of one upstream."""

    __slots__ = ("_auth", "_secret", "_sign", "origin")

    def __init__(self, token: Token, base_url: str, protocol: str, header: str | None = None) -> None:
        """`header` is `auth` of the upstream's config; None: the header of the protocol."""
        origin = Origin.of(base_url)
        if origin is None:
            raise CredentialError("a credential needs an upstream with a full URL such as https://host/v1")
        self._secret: Secret | None = token.secret
        self._sign = token.sign
        self.origin = origin
        self._auth = auth_for(protocol, base_url) if header is None else auth_in(header)

    def headers(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] = _NO_HEADERS, body: bytes = b""
    ) -> dict[str, str]:
        """The headers that authenticate this request. Raises CredentialError for another origin."""
        if self._secret is None:
            return {}
        origin = Origin.of(url)
        if origin != self.origin:
            raise CredentialError(
                f"the credential for {self.origin} is not sent to {origin or 'an address without a host'}; "
                "configure a credential for that upstream"
            )
        if self._sign is not None:
            return self._sign(FinishedRequest(method=method, url=url, headers=headers, body=body))
        text = self._secret.reveal()
        if self._auth.header == "authorization" or text.startswith(self._auth.bearer_prefixes):
            return {"authorization": f"Bearer {text}"}
        return {self._auth.header: text}

    def __repr__(self) -> str:
        return f"BoundCredential({self.origin}, {self._secret or 'nothing'})"
