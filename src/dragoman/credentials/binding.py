"""Putting a secret on a request: in the header its protocol wants, and only towards its own upstream."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..http.urls import parse
from ..secret import Secret
from .base import CredentialError, Token


class HeaderStyle(msgspec.Struct, frozen=True):
    """How a protocol wants to be shown a key, and which keys it wants as a bearer token instead."""

    header: str = "authorization"
    bearer_prefixes: tuple[str, ...] = ()
    """Tokens from a sign-in begin so; for `authorization` all are bearer tokens."""


BEARER = HeaderStyle()

STYLES: Mapping[str, HeaderStyle] = {
    "anthropic": HeaderStyle("x-api-key", ("sk-ant-oat",)),
    "openai-chat": BEARER,
    "openai-responses": BEARER,
    "gemini": HeaderStyle("x-goog-api-key", ("ya29.",)),
    "azure": HeaderStyle("api-key", ("eyJ",)),
}

AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def style_for(protocol: str, base_url: str) -> HeaderStyle:
    """The style of an upstream. Azure speaks OpenAI's protocols with a header of its own."""
    origin = Origin.of(base_url)
    if protocol.startswith("openai") and origin is not None and origin.host.endswith(AZURE_HOSTS):
        return STYLES["azure"]
    return STYLES.get(protocol, BEARER)


def named_style(header: str) -> HeaderStyle:
    """The style a config names by its header. Tokens from a sign-in stay bearer tokens."""
    if header == "bearer":
        return BEARER
    return next((style for style in STYLES.values() if style.header == header), HeaderStyle(header))


class Origin(msgspec.Struct, frozen=True):
    """Scheme, host and port: where a credential may go."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """None when there is none to be seen, or when it is made to be misread (`https://good@evil`)."""
        try:
            parsed = parse(url)
        except ValueError:
            return None
        return None if parsed.login is not None else cls(parsed.scheme, parsed.host, parsed.port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class BoundCredential:
    """One token, for one upstream's origin and no other."""

    __slots__ = ("_secret", "origin", "style")

    def __init__(self, token: Token, base_url: str, protocol: str, header: str | None = None) -> None:
        """`header`: what the upstream's config says, where it differs from its protocol's habit."""
        origin = Origin.of(base_url)
        if origin is None:
            raise CredentialError(
                "a credential needs an upstream with a full address such as https://host/v1"
            )
        self._secret: Secret | None = token.secret
        self.origin = origin
        self.style = style_for(protocol, base_url) if header is None else named_style(header)

    def headers(self, url: str) -> dict[str, str]:
        """What authenticates a request to `url`; an error when that is not where the credential belongs."""
        if self._secret is None:
            return {}
        origin = Origin.of(url)
        if origin != self.origin:
            raise CredentialError(
                f"the credential for {self.origin} is not sent to {origin or 'an address without a host'}; "
                "give that upstream its own"
            )
        text = self._secret.reveal()
        if self.style.header == "authorization" or text.startswith(self.style.bearer_prefixes):
            return {"authorization": f"Bearer {text}"}
        return {self.style.header: text}

    def __repr__(self) -> str:
        return f"BoundCredential({self.origin}, {self._secret or 'nothing'})"
