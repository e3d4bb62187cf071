"""The scripted model's server without its sockets: a request's bytes in, a `Reply` out."""

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
from .answer_bytes import Scene
from .behaviours import BEHAVIOURS, Behaviour
from .replies import Reply

_encode = msgspec.json.Encoder().encode
_REMEMBERED = 4096


def digest(path: str, body: bytes) -> str:
    """The same request gets the same ids, and every turn of a conversation its own."""
    return hashlib.sha256(path.partition("?")[0].encode() + b"\n" + body).hexdigest()[:24]


class ScriptedModel:
    """All scripted models. `clock` and `seed` are where time and ids come from."""

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
        """The answer to a request for one; `array` is a stream as one JSON array."""
        scene = self._scene(protocol, path, body)
        if isinstance(scene, Reply):
            return scene
        behaviour = _behaviour(scene)
        if behaviour is None:
            return _unknown(scene)
        reply = _identified(behaviour.play(scene), scene)
        if array and reply.content_type == replies.STREAM:
            steps = replies.as_array(reply.steps)
            return msgspec.structs.replace(reply, steps=steps, content_type=replies.JSON)
        return reply

    def count(self, protocol: str, path: str, body: bytes) -> Reply:
        """How many tokens a request has, in the words of the protocol."""
        counting = wire_protocol(protocol).counting
        assert counting is not None
        scene = self._scene(protocol, path, _asked(counting, body))
        if isinstance(scene, Reply):
            return scene
        number = answer_bytes.prompt_tokens(scene.request)
        return replies.body(_encode({**counting.around, counting.member: number}))

    def models(self, protocol: str) -> Reply:
        """All models there are."""
        listing = wire_protocol(protocol).listing
        return replies.body(_encode(listing.page([_entry(listing, each) for each in BEHAVIOURS.values()])))

    def one_model(self, protocol: str, name: str) -> Reply:
        listing = wire_protocol(protocol).listing
        behaviour = BEHAVIOURS.get(name.removeprefix(listing.prefix))
        if behaviour is None:
            return _unknown(Scene(protocol=protocol, request=Request(model=name, messages=())))
        return replies.body(_encode(_entry(listing, behaviour)))

    def no_such_path(self, protocol: str, path: str) -> Reply:
        scene = Scene(protocol=protocol, request=Request(model="", messages=()))
        return answer_bytes.fail(scene, Failed(FailureKind.NOT_FOUND, f"there is nothing at {path}", 404))

    def _scene(self, protocol: str, path: str, body: bytes) -> Scene | Reply:
        seed = self._seed(path, body)
        empty = Scene(protocol=protocol, request=Request(model="", messages=()), seed=seed)
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


def _behaviour(scene: Scene) -> Behaviour | None:
    """Names that are not ours are well behaved, so that any route may lead here."""
    name = scene.request.model.removeprefix(scene.wire.listing.prefix)
    return BEHAVIOURS.get(name if name.startswith("demo-") else "demo")


def _identified(reply: Reply, scene: Scene) -> Reply:
    """With the header by which the provider names its answers."""
    name = scene.wire.server.id_header
    if not name:
        return reply
    return msgspec.structs.replace(reply, headers={**reply.headers, name: f"req_{scene.seed}"})


def _unknown(scene: Scene) -> Reply:
    message = f"there is no model {scene.request.model!r}; there are {', '.join(BEHAVIOURS)}"
    return answer_bytes.fail(scene, Failed(FailureKind.NOT_FOUND, message, 404))


def _asked(counting: Counting, body: bytes) -> bytes:
    """The request whose tokens are to be counted."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    asked = counting.asked(value) if is_object(value) else value
    return body if asked is value else _encode(asked)


def _entry(listing: ModelListFormat, behaviour: Behaviour) -> dict[str, Any]:
    return listing.entry(behaviour.name, f"{behaviour.name}: {behaviour.description}")
