"""Who asks, as far as the head of a request tells."""

from __future__ import annotations

from ..credentials import key_headers
from ..credentials.secret import Secret
from ..model.messages import Request as Neutral
from ..observe.tap import harmless_headers, harmless_path
from ..profiles import Profile, detect, head_clues
from ..protocols.registry import beta_headers
from ..transport.server import Request
from .conversation import session_in

_BEARERS, _BEARER = "authorization", "bearer "


class Caller:
    """What the head of one request says about the client that sent it."""

    __slots__ = ("_clues", "betas", "headers", "keys", "session", "target")

    def __init__(self, http: Request) -> None:
        self.keys = presented_keys(http)
        self._clues = head_clues(http.path, http.headers)
        self.betas = {name: http.headers[name] for name in beta_headers() if name in http.headers}
        """Features that the client opted into, by the header that says so: part of what it asks."""
        self.session = session_in(http.headers)
        self.target = harmless_path(http.target)
        """Path and query, as they may be shown."""
        self.headers = harmless_headers(http.headers)
        """As they may be shown."""

    def who(self, ours: tuple[Secret, ...]) -> tuple[Secret | None, str]:
        """The key that is passed on to upstreams that want it, and what may be shown of who it belongs to.

        Its own key comes before one of the gateway's, `ours`, which is nobody else's business.
        """
        own = tuple(key for key in self.keys if not any_is_good((key,), ours))
        named = own or self.keys
        return own[0] if own else None, named[0].fingerprint if named else ""

    def profile(self, request: Neutral) -> Profile:
        """Which client sent `request`."""
        return detect(self._clues, request)


def any_is_good(presented: tuple[Secret, ...], keys: tuple[Secret, ...]) -> bool:
    """Every key is compared, whichever fits: the time taken tells nothing."""
    good = False
    for mine in keys:
        for theirs in presented:
            good |= theirs == mine
    return good


def presented_keys(request: Request) -> tuple[Secret, ...]:
    """The keys a client sent, in whichever places its SDK puts them."""
    headers = request.headers
    keys: list[Secret] = []
    for name in (*key_headers(), _BEARERS):
        text = headers.get(name)
        key = None if text is None else _bearer(text) if name == _BEARERS else text.strip()
        if key:
            keys.append(Secret(key))
    if "?" in request.target and (key := request.query.get("key")):
        keys.append(Secret(key))
    return tuple(keys)


def _bearer(text: str) -> str:
    return text[len(_BEARER) :].strip() if text[: len(_BEARER)].lower() == _BEARER else ""
