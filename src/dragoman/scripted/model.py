"""The scripted model's server without its sockets: a request's bytes in, a `Reply` out."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import msgspec

from ..errors import BadRequest
from ..events import Failed, FailureKind
from ..messages import Request
from ..protocols.failures import from_exception
from ..protocols.fields import is_object
from . import replies, speech
from .behaviours import BEHAVIOURS, Behaviour
from .replies import Reply
from .speech import Scene

_encode = msgspec.json.Encoder().encode
_REMEMBERED = 4096
_WINDOW, _OUTPUT = 200_000, 32_000


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
        """The answer to a request for one; `array` is Gemini's stream without `alt=sse`."""
        scene = self._scene(protocol, path, body)
        if isinstance(scene, Reply):
            return scene
        behaviour = _behaviour(scene.request.model)
        if behaviour is None:
            return _unknown(scene)
        reply = _identified(behaviour.play(scene), scene)
        if array and reply.content_type == replies.STREAM:
            steps = replies.as_array(reply.steps)
            return msgspec.structs.replace(reply, steps=steps, content_type=replies.JSON)
        return reply

    def count(self, protocol: str, path: str, body: bytes) -> Reply:
        """How many tokens a request has, in the words of the protocol."""
        if protocol == "gemini":
            body = _unwrapped(body)
        scene = self._scene(protocol, path, body)
        if isinstance(scene, Reply):
            return scene
        number = speech.prompt_tokens(scene.request)
        said: dict[str, Any] = {"input_tokens": number}
        if protocol == "gemini":
            said = {
                "totalTokens": number,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": number}],
            }
        elif protocol == "openai-responses":
            said = {"object": "response.input_tokens", **said}
        return replies.body(_encode(said))

    def models(self, protocol: str) -> Reply:
        """All models there are."""
        listed = [_described(protocol, behaviour) for behaviour in BEHAVIOURS.values()]
        if protocol == "gemini":
            return replies.body(_encode({"models": listed}))
        value: dict[str, Any] = {"data": listed}
        if protocol == "anthropic":
            value |= {"has_more": False, "first_id": listed[0]["id"], "last_id": listed[-1]["id"]}
        else:
            value = {"object": "list", **value}
        return replies.body(_encode(value))

    def one_model(self, protocol: str, name: str) -> Reply:
        behaviour = BEHAVIOURS.get(name.removeprefix("models/"))
        if behaviour is None:
            return _unknown(Scene(protocol=protocol, request=Request(model=name, messages=())))
        return replies.body(_encode(_described(protocol, behaviour)))

    def no_such_path(self, protocol: str, path: str) -> Reply:
        scene = Scene(protocol=protocol, request=Request(model="", messages=()))
        return speech.fail(scene, Failed(FailureKind.NOT_FOUND, f"there is nothing at {path}", 404))

    def _scene(self, protocol: str, path: str, body: bytes) -> Scene | Reply:
        seed = self._seed(path, body)
        empty = Scene(protocol=protocol, request=Request(model="", messages=()), seed=seed)
        try:
            request = empty.wire.read_request(body, path)
        except BadRequest as error:
            return speech.fail(empty, from_exception(error))
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


def _behaviour(model: str) -> Behaviour | None:
    """Names that are not ours are well behaved, so that any route may lead here."""
    name = model.removeprefix("models/")
    return BEHAVIOURS.get(name if name.startswith("demo-") else "demo")


def _identified(reply: Reply, scene: Scene) -> Reply:
    """With the header by which the provider names its answers."""
    if scene.protocol == "gemini":
        return reply
    name = "request-id" if scene.protocol == "anthropic" else "x-request-id"
    return msgspec.structs.replace(reply, headers={**reply.headers, name: f"req_{scene.seed}"})


def _unknown(scene: Scene) -> Reply:
    message = f"there is no model {scene.request.model!r}; there are {', '.join(BEHAVIOURS)}"
    return speech.fail(scene, Failed(FailureKind.NOT_FOUND, message, 404))


def _unwrapped(body: bytes) -> bytes:
    """Gemini counts a whole request under `generateContentRequest`, or bare contents."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    inner = value.get("generateContentRequest") if is_object(value) else None
    return _encode(inner) if is_object(inner) else body


def _described(protocol: str, behaviour: Behaviour) -> dict[str, Any]:
    name, title = behaviour.name, f"{behaviour.name}: {behaviour.description}"
    if protocol == "anthropic":
        return {"type": "model", "id": name, "display_name": title, "created_at": "2026-01-01T00:00:00Z"}
    if protocol == "gemini":
        return {
            "name": f"models/{name}",
            "version": "1",
            "displayName": title,
            "inputTokenLimit": _WINDOW,
            "outputTokenLimit": _OUTPUT,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        }
    return {"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "dragoman"}
