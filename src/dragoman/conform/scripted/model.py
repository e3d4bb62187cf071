"""The scripted model without I/O: the bytes of a request go in, a `Reply` comes out."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from ...model.errors import BadRequest
from ...model.events import Failed, FailureKind
from ...model.messages import Request
from ...protocols.common.failures import from_exception
from ...protocols.common.fields import is_object
from ...protocols.facts import Counting, ModelListFormat
from ...protocols.registry import protocol as wire_protocol
from . import answer_bytes, replies
from .answer_bytes import ReplyContext
from .behaviours import BEHAVIOURS, Behaviour
from .replies import Reply

_encode = msgspec.json.Encoder().encode
_REMEMBERED = 4096


def digest(path: str, body: bytes) -> str:
    """The default seed for ids: equal requests get equal ids, each turn of a conversation gets others."""
    return hashlib.sha256(path.partition("?")[0].encode() + b"\n" + body).hexdigest()[:24]


class ScriptedModel:
    """All scripted models. `clock` provides the time, `seed` the ids."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        seed: Callable[[str, bytes], str] = digest,
    ) -> None:
        self._clock = clock
        self._seed = seed
        self._attempts: OrderedDict[str, int] = OrderedDict()

    def answer(self, protocol: str, path: str, body: bytes, *, array: bool = False) -> Reply:
        """The reply to a model request. `array` sends a stream as one JSON array (Gemini)."""
        context = self._context(protocol, path, body)
        if isinstance(context, Reply):
            return context
        behaviour = _behaviour(context)
        if behaviour is None:
            return _unknown(context)
        reply = _identified(behaviour.play(context), context)
        if array and reply.content_type == replies.STREAM:
            steps = replies.as_array(reply.steps)
            return msgspec.structs.replace(reply, steps=steps, content_type=replies.JSON)
        return reply

    def count(self, protocol: str, path: str, body: bytes) -> Reply:
        """The reply to a token count request."""
        counting = wire_protocol(protocol).counting
        assert counting is not None
        context = self._context(protocol, path, _asked(counting, body))
        if isinstance(context, Reply):
            return context
        number = answer_bytes.prompt_tokens(context.request)
        return replies.body(_encode({**counting.around, counting.member: number}))

    def models(self, protocol: str) -> Reply:
        listing = wire_protocol(protocol).listing
        return replies.body(_encode(listing.page([_entry(listing, each) for each in BEHAVIOURS.values()])))

    def one_model(self, protocol: str, name: str) -> Reply:
        listing = wire_protocol(protocol).listing
        behaviour = BEHAVIOURS.get(name.removeprefix(listing.prefix))
        if behaviour is None:
            return _unknown(ReplyContext(protocol=protocol, request=Request(model=name, messages=())))
        return replies.body(_encode(_entry(listing, behaviour)))

    def no_such_path(self, protocol: str, path: str) -> Reply:
        context = ReplyContext(protocol=protocol, request=Request(model="", messages=()))
        return answer_bytes.fail(context, Failed(FailureKind.NOT_FOUND, f"there is nothing at {path}", 404))

    def _context(self, protocol: str, path: str, body: bytes) -> ReplyContext | Reply:
        seed = self._seed(path, body)
        empty = ReplyContext(protocol=protocol, request=Request(model="", messages=()), seed=seed)
        try:
            request = empty.wire.read_request(body, path)
        except BadRequest as error:
            return answer_bytes.fail(empty, from_exception(error))
        return msgspec.structs.replace(
            empty,
            request=request,
            body=body,
            created=int(self._clock()),
            attempt=self._attempt(digest(path, body)),
        )

    def _attempt(self, request: str) -> int:
        number = self._attempts[request] = self._attempts.pop(request, 0) + 1
        if len(self._attempts) > _REMEMBERED:
            self._attempts.popitem(last=False)
        return number


def _behaviour(context: ReplyContext) -> Behaviour | None:
    """The behaviour for the model's name. A name without `demo-` gets `demo`, so that any route works."""
    name = context.request.model.removeprefix(context.wire.listing.prefix)
    return BEHAVIOURS.get(name if name.startswith("demo-") else "demo")


def _identified(reply: Reply, context: ReplyContext) -> Reply:
    """Add the provider's request id header."""
    name = context.wire.server.id_header
    if not name:
        return reply
    return msgspec.structs.replace(reply, headers={**reply.headers, name: f"req_{context.seed}"})


def _unknown(context: ReplyContext) -> Reply:
    message = f"unknown model {context.request.model!r}; known models: {', '.join(BEHAVIOURS)}"
    return answer_bytes.fail(context, Failed(FailureKind.NOT_FOUND, message, 404))


def _asked(counting: Counting, body: bytes) -> bytes:
    """The request inside a token count request."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    asked = counting.to_request(value) if is_object(value) else value
    return body if asked is value else _encode(asked)


def _entry(listing: ModelListFormat, behaviour: Behaviour) -> dict[str, Any]:
    return listing.entry(behaviour.name, f"{behaviour.name}: {behaviour.description}")
