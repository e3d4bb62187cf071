"""Anthropic's clients in their modes for clouds, with the gateway as the cloud's base URL.

Claude Code (`CLAUDE_CODE_USE_BEDROCK`, `CLAUDE_CODE_USE_VERTEX`) and the SDKs then post to the cloud's paths.
The model's name and the choice to stream are in the path. Bedrock's clients read AWS's event streams, and
AWS's errors.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from ...model.events import Failed
from ...model.messages import Request
from ...wire.event_stream import encode_event, encode_message
from ...wire.sse import SSEReader
from ..common.fields import Body, Obj, is_object, reject
from ..common.typed_json import body_members, reads_body
from ..facts import Counting, Endpoints
from .answer import objects
from .request.read import read_request

_COUNTING = "count-tokens"
_BEDROCK = re.compile(
    r"/model/(?P<model>.+)/(?:invoke|(?P<stream>invoke-with-response-stream)|(?P<counts>count-tokens))$"
)
_VERTEX = re.compile(
    r"/publishers/anthropic/models/(?:(?P<counts>count-tokens)|(?P<model>[^/]+))"
    r":(?:rawPredict|(?P<stream>streamRawPredict))$"
)
_MODELS = "/projects/{project}/locations/{location}/publishers/anthropic/models"
_EXCEPTIONS = {
    "invalid_request_error": "validationException",
    "rate_limit_error": "throttlingException",
    "overloaded_error": "serviceUnavailableException",
    "timeout_error": "modelTimeoutException",
}
"""AWS's exceptions for Anthropic's error types. Any other is an `internalServerException`."""
_REFUSALS = _EXCEPTIONS | {
    "authentication_error": "unrecognizedClientException",
    "permission_error": "accessDeniedException",
    "billing_error": "accessDeniedException",
    "not_found_error": "resourceNotFoundException",
    "request_too_large": "validationException",
}
"""Those that AWS sends only as a response, not inside a stream."""
_betas = msgspec.json.Decoder(list[str]).decode


def _reading(pattern: re.Pattern[str]) -> Callable[[Body, str], Request]:
    """A reader of requests whose path fits `pattern`."""

    @reads_body
    def read(body: Body, path: str = "") -> Request:
        found = pattern.search(path.partition("?")[0])
        if found is None:
            reject("the path names no model", "model")
        members = body_members(body)
        members.pop("anthropic_version", None)
        features = members.pop("anthropic_beta", None)
        if found["model"]:  # on Vertex AI, a request to count has the name in its body
            members["model"] = msgspec.Raw(msgspec.json.encode(unquote(found["model"])))
        if found["counts"]:
            return read_request(msgspec.json.encode(members), "/v1/messages/count_tokens")
        members["stream"] = msgspec.Raw(b"true" if found["stream"] else b"false")
        request = read_request(msgspec.json.encode(members), "/v1/messages")
        return request if features is None else msgspec.structs.replace(request, betas=_features(features))

    return read


def _features(value: msgspec.Raw) -> tuple[str, ...]:
    try:
        return tuple(_betas(value))
    except msgspec.ValidationError:
        reject("must be a list of strings", "anthropic_beta")


class ChunkWriter:
    """Writes server-sent events as the messages of AWS's event streams."""

    content_type = "application/vnd.amazon.eventstream"

    def __init__(self) -> None:
        self._reader = SSEReader()

    def feed(self, data: bytes) -> bytes:
        return b"".join([_message(frame.data) for frame in self._reader.feed(data)])

    def close(self) -> bytes:
        return b""


def _message(data: bytes) -> bytes:
    event: dict[str, Any] = msgspec.json.decode(data)
    if event["type"] != "error":
        return encode_event("chunk", msgspec.json.encode({"bytes": base64.b64encode(data).decode()}))
    error = event["error"]
    headers = {
        ":exception-type": _EXCEPTIONS.get(error["type"], "internalServerException"),
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(headers, msgspec.json.encode({"message": error["message"]}))


def aws_error(failure: Failed, request_id: str = "") -> bytes:
    """An error as AWS writes it, and as Anthropic writes it: clients of Bedrock read the one or the other."""
    body = msgspec.json.decode(objects.error_body(failure, request_id), type=dict[str, Any])
    kind = _REFUSALS.get(body["error"]["type"], "internalServerException")
    return msgspec.json.encode({**body, "message": failure.message, "__type": kind[0].upper() + kind[1:]})


def _counted(body: Obj) -> Obj:
    """The request of which CountTokens is to count the tokens: the body of an InvokeModel, as base64."""
    given = body.get("input")
    invoke = given.get("invokeModel") if is_object(given) else None
    encoded = invoke.get("body") if is_object(invoke) else None
    if not isinstance(encoded, str):
        reject(
            "must be the body of a request for InvokeModel: Dragoman counts no others",
            "input.invokeModel.body",
        )
    try:
        found: Any = msgspec.json.decode(base64.b64decode(encoded, validate=True))
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        reject("must be JSON, written as base64", "input.invokeModel.body")
    if not is_object(found):
        reject("must be a JSON object", "input.invokeModel.body")
    return found


def _always(query: object, headers: object) -> bool:
    return True


read_bedrock, read_vertex = _reading(_BEDROCK), _reading(_VERTEX)
BEDROCK_ENDPOINTS = Endpoints(
    roots=("",),
    # An ARN contains slashes.
    answers=("/model/{model:.+}/{verb:invoke|invoke-with-response-stream}",),
    counts=("/model/{model:.+}/count-tokens",),
    own=("/model/",),
    reframes=_always,
    writer=ChunkWriter,
)
BEDROCK_COUNTING = Counting(
    suffix="/count-tokens", body=lambda body, model: body, to_request=_counted, member="inputTokens"
)
"""How Bedrock's clients count. No upstream is asked in this way."""
VERTEX_ENDPOINTS = Endpoints(
    answers=(f"{_MODELS}/{{model:(?!{_COUNTING}:)[^/]+}}:{{verb:rawPredict|streamRawPredict}}",),
    counts=(f"{_MODELS}/{_COUNTING}:rawPredict",),
    own=("/v1/projects/", "/projects/"),
)
