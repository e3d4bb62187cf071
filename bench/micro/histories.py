"""Long conversations from a client's body to an upstream's, without HTTP: all that grows with a history.

Each kind is counted when it is new and when it goes on, so none can lose what was won for it unnoticed.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from functools import cache
from itertools import count, product
from typing import Any, TypeVar, cast

import msgspec

from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.conversations import MOST
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.store import Key, Store, carry
from dragoman.store.lookups import Carriage
from dragoman.tools import circles

from ..answers import ANTHROPIC, CHAT
from ..requests import Talk, conversation
from ..shapes import BRIEF
from ..talks import KINDS, PLAIN
from . import habits
from .work import Work

T = TypeVar("T")

TURNS, MORE = 30, 3
"""So long, and then it goes on by so many turns: of an agent's, no two are alike."""
_FEWER = 12
"""Of what there is much: habits, and pairs of protocols."""
_SEEDS = count(20_000_000)
_TARGET = Target(model="m", issuer="bench", chat_compatible=True, max_tokens_field="max_tokens")
"""An upstream of which the config says nothing special."""


class _EmptyStore:
    """Nothing was kept of anything."""

    async def get(self, _: Sequence[Key]) -> dict[Key, bytes]:
        return {}

    def may_hold(self, _: str) -> bool:
        return False


_STORE = cast(Store, _EmptyStore())


@cache
def _carriage(client: str, upstream: str, asked: bool) -> Carriage:
    return Carriage(client=client, issuer="bench", same=client == upstream, asked=asked, named=False)


def carried(client: str, upstream: str, path: str, body: bytes) -> Outgoing:
    """What the gateway does with a request before it is sent."""
    request = protocol(client).read_request(body, path)
    carriage = _carriage(client, upstream, carry.asks_for_reasoning(request))
    if not carry.nothing_kept(_STORE, request, carriage):
        request = _done(carry.restore(_STORE, request, carriage)).request
    assert circles.noticed(request) is None
    outgoing = protocol(upstream).write_request(request, _TARGET)
    outgoing.written()
    return outgoing


def _done(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of what never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


class _Way:
    """Conversations of a kind, by clients of a protocol."""

    def __init__(self, kind: str, client: str, upstream: str, habit: str = "", turns: int = TURNS) -> None:
        self._kind = kind
        self._habit = habit
        self.turns = turns
        self._client = client
        self._upstream = upstream
        self._asked: list[tuple[str, bytes]] = []

    @property
    def messages(self) -> int:
        return 2 * self.turns + 1

    def begin(self) -> None:
        """A new one, with known tools."""
        self._asked = [self._made(self._talk())]

    def begin_anew(self) -> None:
        """A new one, with new tools."""
        talk = self._talk()
        self._asked = [self._made(msgspec.structs.replace(talk, tools=talk.seed))]

    def go_on(self) -> None:
        """One that was seen, and what comes after it."""
        talk = self._talk()
        self._asked = [self._made(talk)]
        self.ask()
        self._asked = [self._made(talk.gone_on(turns)) for turns in range(1, MORE + 1)]

    def ask(self) -> None:
        for path, body in self._asked:
            carried(self._client, self._upstream, path, body)

    def _talk(self) -> Talk:
        return Talk(next(_SEEDS), self.turns, kind=self._kind)

    def _made(self, talk: Talk) -> tuple[str, bytes]:
        """Path and body, for other protocols as Dragoman itself writes them."""
        body, path = conversation(talk, BRIEF), "/v1/messages"
        if self._habit:
            body = habits.spelled(self._habit, body)
        if self._client == ANTHROPIC:
            return path, body
        request = protocol(ANTHROPIC).read_request(body, path)
        outgoing = protocol(self._client).write_request(request, Target(model="m"))
        return outgoing.path, msgspec.json.encode(outgoing.body)


def works() -> Iterator[Work]:
    """Every kind and every habit, and an agent's conversations between all protocols."""
    anew = _Way(PLAIN, ANTHROPIC, CHAT)
    for _ in range(MOST):  # as many as are remembered at all, as in a gateway that runs for a while
        anew.begin()
        anew.ask()
    yield Work("long: tools and calls, new", "message", anew.messages, anew.ask, anew.begin_anew)
    for kind in KINDS:
        yield from _both(f"long: {kind}", _Way(kind, ANTHROPIC, CHAT))
    for client, upstream in product(PROTOCOLS, PROTOCOLS):
        name = f"long: {client} -> {upstream}".replace("openai-", "")
        yield from _both(name, _Way("agent", client, upstream, turns=_FEWER))
    for habit in habits.NAMES:
        yield from _both(f"habit: {habit}", _Way(PLAIN, ANTHROPIC, CHAT, habit, _FEWER))


def _both(name: str, way: _Way) -> Iterator[Work]:
    yield Work(f"{name}, new", "message", way.messages, way.ask, way.begin)
    yield Work(f"{name}, gone on", "message", MORE * way.messages, way.ask, way.go_on)
