"""The client behind a request: its keys, profile, session and beta features, from the headers."""

from __future__ import annotations

from ..credentials import key_headers
from ..credentials.secret import Secret
from ..model.messages import Request
from ..observe.tap import harmless_headers, harmless_path
from ..profiles import Profile, detect, head_clues
from ..protocols.registry import beta_headers
from ..transport.server import HttpRequest
from .conversation import session_in

_AUTHORIZATION, _BEARER = "authorization", "bearer "


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

    def identify(self, gateway_keys: tuple[Secret, ...]) -> tuple[Secret | None, str]:
        """The client's own key, for upstreams with the credential `client`, and the client's scope.

        The scope is the fingerprint of a key. Keys of the gateway (`server.keys`) never go to an upstream.
        """
        own = tuple(key for key in self.keys if not any_valid((key,), gateway_keys))
        named = own or self.keys
        return own[0] if own else None, named[0].fingerprint if named else ""

    def profile(self, request: Request) -> Profile:
        """The profile of the client that sent `request`."""
        return detect(self._clues, request)


def any_valid(presented: tuple[Secret, ...], keys: tuple[Secret, ...]) -> bool:
    """Is one of the presented keys valid? Compares all of them, so that the time tells nothing."""
    good = False
    for key in keys:
        for candidate in presented:
            good |= candidate == key
    return good


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
