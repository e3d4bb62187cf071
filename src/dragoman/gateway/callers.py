"""Who asks, as far as the head of a request tells: looked at once, however often a client says the same."""

from __future__ import annotations

from collections.abc import Sequence

from ..credentials import key_headers
from ..http.server import Request
from ..messages import Message, Tool
from ..messages import Request as Neutral
from ..profiles import Profile, detect, head_clues
from ..protocols.history import History
from ..protocols.registry import beta_headers
from ..secret import Secret, familiar
from ..tap import harmless_headers, harmless_path
from .conversation import PROMPTS, session_in

_BEARERS, _BEARER = "authorization", "bearer "
_NOTE = "who has this conversation"


class Caller:
    """What is the same in all requests that begin with the same head."""

    __slots__ = ("_clues", "_last", "_ours", "_who", "betas", "headers", "keys", "session", "target")

    def __init__(self, http: Request) -> None:
        self.keys = presented_keys(http)
        self._clues = head_clues(http.path, http.headers)
        self._last: tuple[object, Sequence[Tool], list[str], Profile] | None = None
        """Prompt, tools and members of a request before, and whose it was."""
        self.betas = {name: http.headers[name] for name in beta_headers() if name in http.headers}
        """Features that the client opted into, by the header that says so: part of what it asks."""
        self.session = session_in(http.headers)
        self.target = harmless_path(http.target)
        """Path and query, as they may be shown."""
        self.headers = harmless_headers(http.headers)
        """As they may be shown, but for the length of the body, which is another one each time."""
        self._ours: tuple[Secret, ...] | None = None
        self._who: tuple[Secret | None, str] = (None, "")

    def who(self, ours: tuple[Secret, ...]) -> tuple[Secret | None, str]:
        """The key that is passed on to upstreams that want it, and what may be shown of who it belongs to.

        Its own key comes before one of the gateway's, `ours`, which is nobody else's business.
        """
        if self._ours is not ours:
            own = tuple(key for key in self.keys if not any_is_good((key,), ours))
            named = own or self.keys
            self._who = (own[0] if own else None, named[0].fingerprint if named else "")
            self._ours = ours
        return self._who

    def profile(self, request: Neutral) -> Profile:
        """Which client it is. Looked for once, as long as it asks with the same prompt and tools, which are
        the very same objects then, as they are read once; of several, once in a conversation."""
        messages, tools, raw = request.messages, request.tools, request.raw
        history = messages if type(messages) is History and messages.leading else None
        prompt = _prompt(messages) if history is None else history.leading
        members = [] if raw is None else list(raw.value)
        known = None if history is None else history.noted(_NOTE, self._clues)[1]
        last = known or self._last
        if last is None or last[0] is not prompt or last[1] is not tools or last[2] != members:
            last = self._last = (prompt, tools, members, detect(self._clues, request))
        if history is not None and last is not known:
            history.note(_NOTE, self._clues, last)
        return last[3]


def _prompt(messages: Sequence[Message]) -> Message | None:
    first = messages[0] if messages else None
    return first if first is not None and first.role in PROMPTS else None


def caller_of(http: Request) -> Caller:
    """Who sent `http`."""
    head = http.head
    if head.noted is None:
        head.noted = Caller(http)
    return head.noted


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
            keys.append(familiar(key))
    if "?" in request.target and (key := request.query.get("key")):
        keys.append(familiar(key))
    return tuple(keys)


def _bearer(text: str) -> str:
    return text[len(_BEARER) :].strip() if text[: len(_BEARER)].lower() == _BEARER else ""
