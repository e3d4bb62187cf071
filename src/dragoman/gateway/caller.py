"""The client behind a request: its keys, profile, session and beta features, from the headers."""

from __future__ import annotations

from typing import NamedTuple

from ..access.identity import Identity
from ..access.keys import KeyTable
from ..credentials import key_headers
from ..credentials.secret import Secret
from ..model.errors import DragomanError, Fault
from ..model.messages import Request
from ..observe.tap import harmless_headers, harmless_path
from ..profiles import Profile, detect, head_clues
from ..protocols.registry import beta_headers
from ..transport.server import HttpRequest
from .conversation import session_in

_AUTHORIZATION, _BEARER = "authorization", "bearer "


class NotAuthenticated(DragomanError):
    """The request has no valid key."""

    status = 401
    fault: Fault = "client"


class CallerIdentity(NamedTuple):
    """Who sends a request."""

    identity: Identity
    key: Secret | None
    """The client's own key, for upstreams with the credential `client`. Never a key of the gateway."""
    scope: str
    """The scope of stored state (`Identity.scope`)."""


NOBODY = CallerIdentity(Identity(), None, "")


class Caller:
    """What the headers of one request say about the client."""

    __slots__ = ("_clues", "betas", "headers", "keys", "session", "target")

    def __init__(self, http: HttpRequest) -> None:
        self.keys = presented_keys(http)
        self._clues = head_clues(http.path, http.headers)
        self.betas = {name: http.headers[name] for name in beta_headers() if name in http.headers}
        """Beta features that the client turned on, by header name. The upstream needs the same header."""
        self.session = session_in(http.headers)
        self.target = harmless_path(http.target)
        """Path and query without secrets."""
        self.headers = harmless_headers(http.headers)
        """Without secrets."""

    def identify(self, gateway_keys: KeyTable) -> CallerIdentity:
        """Who sends the request. Raises `NotAuthenticated` if its key is not valid any more."""
        identity = _valid(gateway_keys, self.keys)
        own = self.keys
        if not gateway_keys.empty:
            own = tuple(key for key in own if not gateway_keys.knows(key))
        shown = own[0].fingerprint if own else ""
        if not identity.name and not shown and self.keys:
            shown = self.keys[0].fingerprint
        return CallerIdentity(identity, own[0] if own else None, identity.scope(shown))

    def profile(self, request: Request) -> Profile:
        """The profile of the client that sent `request`."""
        return detect(self._clues, request)


def identity_of(keys: KeyTable, request: HttpRequest) -> Identity:
    """The identity of the client. Raises `NotAuthenticated` if its key is not valid any more."""
    return _valid(keys, presented_keys(request))


async def still_valid(keys: KeyTable, request: HttpRequest, identity: Identity) -> bool:
    """Does the key of a long request still mean the same?"""
    if keys.stale():
        await keys.refresh()
    return keys.identify(presented_keys(request)).identity == identity


def _valid(keys: KeyTable, presented: tuple[Secret, ...]) -> Identity:
    # The guard has let the request in, but the key may have been revoked since.
    found = keys.identify(presented)
    if found.identity is None:
        raise NotAuthenticated(found.refusal or "this key is not valid any more")
    return found.identity


def presented_keys(request: HttpRequest) -> tuple[Secret, ...]:
    """The keys in a request, from every place in which an SDK puts one."""
    headers = request.headers
    keys: list[Secret] = []
    for name in (*key_headers(), _AUTHORIZATION):
        text = headers.get(name)
        key = None if text is None else _bearer(text) if name == _AUTHORIZATION else text.strip()
        if key:
            keys.append(Secret(key))
    if "?" in request.target and (key := request.query.get("key")):
        keys.append(Secret(key))
    return tuple(keys)


def _bearer(text: str) -> str:
    return text[len(_BEARER) :].strip() if text[: len(_BEARER)].lower() == _BEARER else ""
