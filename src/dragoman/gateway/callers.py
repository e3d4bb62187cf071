"""Who asks, as far as the head of a request tells: looked at once, however often a client says the same."""

from __future__ import annotations

from ..credentials.client import KEY_HEADERS
from ..http.server import LENGTH, Request
from ..profiles import head_clues
from ..secret import Secret, familiar
from ..tap import harmless_headers, harmless_path

_BEARERS, _BEARER = "authorization", "bearer "
_PLACES = (*KEY_HEADERS, _BEARERS)


class Caller:
    """What is the same in all requests that begin with the same head."""

    __slots__ = ("_shown", "betas", "clues", "keys", "target")

    def __init__(self, http: Request) -> None:
        self.keys = presented_keys(http)
        self.clues = head_clues(http.path, http.headers)
        """By which a client is known."""
        self.betas = http.headers.get("anthropic-beta", "")
        """What an Anthropic client opted into: part of what it asks."""
        self.target = harmless_path(http.target)
        """Path and query, as they may be shown."""
        self._shown = harmless_headers(http.headers)

    def shown(self, http: Request) -> dict[str, str]:
        """The headers, as they may be shown. Only the length of the body is another one each time."""
        length = http.headers.get(LENGTH)
        return self._shown if length is None else {**self._shown, LENGTH: length}


def caller_of(http: Request) -> Caller:
    """Who sent `http`."""
    head = http.head
    if head.noted is None:
        head.noted = Caller(http)
    return head.noted


def presented_keys(request: Request) -> tuple[Secret, ...]:
    """The keys a client sent, in whichever places its SDK puts them."""
    headers = request.headers
    keys: list[Secret] = []
    for name in _PLACES:
        text = headers.get(name)
        key = None if text is None else _bearer(text) if name == _BEARERS else text.strip()
        if key:
            keys.append(familiar(key))
    if "?" in request.target and (key := request.query.get("key")):
        keys.append(familiar(key))
    return tuple(keys)


def _bearer(text: str) -> str:
    return text[len(_BEARER) :].strip() if text[: len(_BEARER)].lower() == _BEARER else ""
