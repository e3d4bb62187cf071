"""Responses over a WebSocket: the client's messages, and the messages for the client.

A `response.create` message is the body of a POST plus a `type`. Each event of the answer is one message with
the data of the server-sent event. An error message has a `status`, because there is no HTTP status. After an
error without a status, Codex keeps waiting for the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...model.errors import BadRequest
from ...model.events import Failed
from ...wire.frames import Frame
from ..common import failures
from ..common.fields import Obj, is_object
from ..common.typed_json import Members, body_members, value
from ..facts import Headers, SocketFormat, SocketMessage
from .answer.objects import error_object

_CREATE, _STEER = "response.create", "response.steer"
# Members of the message that do not belong to the request. The answer is always a stream.
_ABOUT_THE_MESSAGE = frozenset({"type", "stream_id", "generate", "stream", "background"})
_TRUE = msgspec.Raw(b"true")
_MAX_LANE_LENGTH = 256
# A WebSocket message has no headers. Codex sends its trace headers in this member.
_METADATA = "client_metadata"
_HEADERS = {
    "ws_request_header_traceparent": "traceparent",
    "ws_request_header_tracestate": "tracestate",
}
# Headers of an HTTP error that the error message has to include.
_ERROR_HEADERS = ("retry-after", "x-request-id", "x-dragoman-exchange")
_NO_STEERING = (
    "this gateway does not steer running responses; wait for the response and send the input with "
    "response.create and previous_response_id"
)


class _Typed(msgspec.Struct, frozen=True):
    type: Any = None


_json = msgspec.json.Encoder().encode
_decode_type = msgspec.json.Decoder(_Typed).decode


def read_message(message: bytes) -> SocketMessage:
    """Read a client's message. An invalid one gets an immediate reply."""
    lane: str | None = None
    try:
        members = body_members(message)
        kind = _read(members, "type")
        if kind == _STEER:
            return SocketMessage(reply=_not_steered(members))
        lane = _lane(members)
        if kind != _CREATE:
            raise BadRequest(f"{_shown(kind)} is unknown; send {_CREATE}", "type")
        return _created(members, lane)
    except BadRequest as refused:
        return SocketMessage(lane=lane, reply=_refused(refused, lane))
    except RecursionError:
        return SocketMessage(lane=lane, reply=_refused(BadRequest("the message is nested too deeply"), lane))


def _created(members: Members, lane: str | None) -> SocketMessage:
    if _read(members, "background"):
        raise BadRequest("is not possible over a WebSocket; post the request instead", "background")
    generate = _read(members, "generate")
    if generate is not None and not isinstance(generate, bool):
        raise BadRequest(f"expected a boolean, got {_shown(generate)}", "generate")
    previous = _read(members, "previous_response_id")
    body = {key: raw for key, raw in members.items() if key not in _ABOUT_THE_MESSAGE}
    return SocketMessage(
        lane=lane,
        body=_json(body | {"stream": _TRUE}),
        headers=_headers(_read(members, _METADATA)),
        previous=previous if isinstance(previous, str) else None,
        # Codex sends `generate: false` as soon as it is connected (see `gateway/exchange/prewarm.py`).
        generate=generate is not False and not _prewarms(_read(members, "prompt_cache_options")),
    )


def _read(members: Members, key: str) -> Any:
    return value(members[key], key) if key in members else None


def _shown(given: Any) -> str:
    return _json(given).decode()[:80]


def _lane(members: Members) -> str | None:
    lane = _read(members, "stream_id")
    if lane is None or (isinstance(lane, str) and 0 < len(lane) <= _MAX_LANE_LENGTH):
        return lane
    raise BadRequest(f"expected a string of 1 to {_MAX_LANE_LENGTH} characters", "stream_id")


def _prewarms(options: Any) -> bool:
    return is_object(options) and options.get("prewarm") is True


def _headers(metadata: Any) -> Mapping[str, str]:
    if not is_object(metadata):
        return {}
    found = ((header, metadata.get(key)) for key, header in _HEADERS.items())
    return {header: text for header, text in found if isinstance(text, str)}


def _not_steered(members: Members) -> bytes:
    """Refuse to steer a response. The reply holds the input: the client can send it with its next request."""
    steer = {key: members[key] for key in ("input", "previous_response_id") if key in members}
    error = {
        "type": "invalid_request_error",
        "code": "steering_not_supported",
        "message": _NO_STEERING,
    }
    return _json({"type": "response.steer.failed", "sequence_number": 0, "steer": steer, "error": error})


def _refused(refused: BadRequest, lane: str | None) -> bytes:
    failure = failures.from_request_error(refused)
    return _error(error_object(failure), failure.status, {}, lane)


def error(body: bytes, status: int, headers: Headers, lane: str | None) -> bytes:
    """Write an HTTP error (body, status, headers) as a message."""
    details: Obj = msgspec.json.decode(body)["error"]
    return _error(details, status, {name: headers[name] for name in _ERROR_HEADERS if name in headers}, lane)


def _error(details: Obj, status: int, headers: Headers, lane: str | None) -> bytes:
    """Write an error message. Codex reads `headers` at the top level, OpenAI's SDK inside `error`."""
    event: Obj = {"type": "error", "status": status, "error": details}
    if headers:
        event |= {"headers": headers, "error": {**details, "headers": headers}}
    return _json(event if lane is None else event | {"stream_id": lane})


def event(frame: Frame, lane: str | None) -> bytes:
    """Write one event as a message. A frame that is not an object (`[DONE]`) becomes no message."""
    data = frame.data.strip()
    if not data.startswith(b"{"):
        return b""
    added: Obj = {} if lane is None else {"stream_id": lane}
    kind = _type_of(data)
    if not isinstance(kind, str):
        # Some upstreams send the type only as SSE event name. A message has no event name, so add it.
        kind = added["type"] = frame.event
    if kind == "error":
        added["status"] = _status(data)
    return data[:-1] + b"," + _json(added)[1:] if added else data


def _type_of(data: bytes) -> Any:
    try:
        return _decode_type(data).type
    except (ValueError, RecursionError):
        return ""  # the frame passes unchanged


def _status(data: bytes) -> int:
    failure: Failed = failures.from_body(None, data)
    return failure.status


SOCKET_FORMAT = SocketFormat(read_message=read_message, event=event, error=error)
