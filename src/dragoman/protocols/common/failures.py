"""Neutral failures, and the only table that maps HTTP statuses to them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...model.errors import BadRequest, DragomanError
from ...model.events import Failed, FailureKind
from ...wire import surrogates
from .fields import is_array, is_object
from .quotas import is_unpaid, is_used_up


class UpstreamFailed(Exception):
    """The request to the upstream failed before its answer began, or in the middle of it."""

    def __init__(self, failure: Failed, *, retryable: bool = True) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.retryable = retryable
        """May the gateway send the same request to the same target once more?"""


STATUS: dict[FailureKind, int] = {
    FailureKind.INVALID_REQUEST: 400,
    FailureKind.AUTHENTICATION: 401,
    FailureKind.BILLING: 402,
    FailureKind.PERMISSION: 403,
    FailureKind.NOT_FOUND: 404,
    FailureKind.CONFLICT: 409,
    FailureKind.TOO_LARGE: 413,
    FailureKind.RATE_LIMIT: 429,
    FailureKind.SERVER: 500,
    FailureKind.UPSTREAM: 502,
    FailureKind.OVERLOADED: 529,
    FailureKind.TIMEOUT: 504,
}

# OpenAI's error types. Chat and Responses share them.
OPENAI_TYPES: dict[FailureKind, str] = {
    FailureKind.INVALID_REQUEST: "invalid_request_error",
    FailureKind.AUTHENTICATION: "authentication_error",
    FailureKind.BILLING: "insufficient_quota",
    FailureKind.PERMISSION: "permission_error",
    FailureKind.NOT_FOUND: "not_found_error",
    FailureKind.CONFLICT: "conflict_error",
    FailureKind.TOO_LARGE: "request_too_large",
    FailureKind.RATE_LIMIT: "rate_limit_error",
    FailureKind.SERVER: "server_error",
    FailureKind.TIMEOUT: "timeout_error",
    FailureKind.OVERLOADED: "overloaded_error",
    FailureKind.UPSTREAM: "upstream_error",
}

_BY_STATUS: dict[int, FailureKind] = {status: kind for kind, status in STATUS.items()} | {
    408: FailureKind.TIMEOUT,
    424: FailureKind.UPSTREAM,  # Bedrock: the model failed
    422: FailureKind.INVALID_REQUEST,
    # Google answers 503 where Anthropic answers 529.
    503: FailureKind.OVERLOADED,
}

# Error types and codes of the providers. They decide when the HTTP status cannot: an error inside a stream
# that began with status 200 (OpenRouter, Groq).
_BY_WORD: dict[str, FailureKind] = {
    "invalid_request_error": FailureKind.INVALID_REQUEST,
    "invalid_argument": FailureKind.INVALID_REQUEST,
    "failed_precondition": FailureKind.INVALID_REQUEST,
    "tool_use_failed": FailureKind.INVALID_REQUEST,
    "context_length_exceeded": FailureKind.INVALID_REQUEST,
    "authentication_error": FailureKind.AUTHENTICATION,
    "invalid_api_key": FailureKind.AUTHENTICATION,
    "unauthenticated": FailureKind.AUTHENTICATION,
    # CLIProxyAPI, while it has no usable login.
    "auth_unavailable": FailureKind.AUTHENTICATION,
    "billing_error": FailureKind.BILLING,
    "billing_hard_limit_reached": FailureKind.BILLING,
    # OpenAI sends it with status 429. Another target may still have quota.
    "insufficient_quota": FailureKind.RATE_LIMIT,
    "permission_error": FailureKind.PERMISSION,
    "permission_denied": FailureKind.PERMISSION,
    "not_found_error": FailureKind.NOT_FOUND,
    "model_not_found": FailureKind.NOT_FOUND,
    "not_found": FailureKind.NOT_FOUND,
    "conflict_error": FailureKind.CONFLICT,
    "request_too_large": FailureKind.TOO_LARGE,
    "rate_limit_error": FailureKind.RATE_LIMIT,
    "rate_limit_exceeded": FailureKind.RATE_LIMIT,
    "resource_exhausted": FailureKind.RATE_LIMIT,
    "server_error": FailureKind.SERVER,
    "api_error": FailureKind.SERVER,
    "internal": FailureKind.SERVER,
    "internal_server_error": FailureKind.SERVER,
    "timeout_error": FailureKind.TIMEOUT,
    "deadline_exceeded": FailureKind.TIMEOUT,
    "overloaded_error": FailureKind.OVERLOADED,
    "unavailable": FailureKind.OVERLOADED,
    # AWS's exceptions, in a header of an error or inside an event stream.
    "validationexception": FailureKind.INVALID_REQUEST,
    "accessdeniedexception": FailureKind.PERMISSION,
    "expiredtokenexception": FailureKind.AUTHENTICATION,
    "unrecognizedclientexception": FailureKind.AUTHENTICATION,
    "invalidsignatureexception": FailureKind.AUTHENTICATION,
    "incompletesignature": FailureKind.AUTHENTICATION,
    "resourcenotfoundexception": FailureKind.NOT_FOUND,
    "throttlingexception": FailureKind.RATE_LIMIT,
    "toomanyrequestsexception": FailureKind.RATE_LIMIT,
    "servicequotaexceededexception": FailureKind.RATE_LIMIT,
    "internalserverexception": FailureKind.SERVER,
    "modeltimeoutexception": FailureKind.TIMEOUT,
    "modelnotreadyexception": FailureKind.OVERLOADED,
    "serviceunavailableexception": FailureKind.OVERLOADED,
}


_DURATION = re.compile(r"\d+(\.\d+)?s")


def by_status(status: int) -> FailureKind:
    known = _BY_STATUS.get(status)
    if known:
        return known
    return FailureKind.INVALID_REQUEST if 400 <= status < 500 else FailureKind.SERVER


def from_exception(error: DragomanError) -> Failed:
    """Turn a Dragoman exception into the event that ends an answer."""
    kind = FailureKind.INVALID_REQUEST if isinstance(error, BadRequest) else FailureKind.UPSTREAM
    if error.fault == "dragoman":
        kind = FailureKind.SERVER
    return Failed(kind, error.message, error.status)


def from_request_error(error: DragomanError) -> Failed:
    """Turn an error about a client's request into a failure. The status decides the kind (404: not found)."""
    if error.fault == "client":
        return Failed(by_status(error.status), error.message, error.status)
    return from_exception(error)


def cut_off(message: str) -> Failed:
    """The failure for a stream that ends before the answer is complete."""
    return Failed(FailureKind.UPSTREAM, message, 502, "stream_cut")


def from_error(error: Any, status: int | None = None, name: str = "") -> Failed:
    """Read an upstream's error value. Known shapes: object, string, list with one item, nested object.

    `name` is the name of the error, if it is known from elsewhere.

    >>> from_error({"message": "Slow down", "type": "rate_limit_error"}).status
    429
    >>> from_error("upstream timeout").message
    'upstream timeout'
    """
    try:
        return _from_error(error, status, name)
    except RecursionError:
        return _failed("the upstream reported an error that is nested too deeply to be read", status, ())


def _from_error(error: Any, status: int | None, name: str) -> Failed:
    error = surrogates.replace_lone_surrogates(_innermost(error))
    if not is_object(error):
        return _failed(str(error) if error else "the upstream reported an error", status, _named(name))
    words = [*_named(name), *(error.get(k) for k in ("code", "type", "status"))]
    if status is None:
        numbers = (error.get("status_code"), *words)
        status = next((n for n in map(_as_status, numbers) if n), None)
    names = tuple(str(w) for w in words if w is not None and not _as_status(w))
    details = error.get("details")
    failed = _failed(_message(error), status, names, details)
    param = error.get("param")
    return msgspec.structs.replace(
        failed,
        retry_after=_retry_delay(details),
        param=param if isinstance(param, str) else None,
    )


def _failed(message: str, status: int | None, names: tuple[str, ...], details: Any = None) -> Failed:
    kind = next((_BY_WORD[n.lower()] for n in names if n.lower() in _BY_WORD), None)
    if kind is None:
        kind = by_status(status) if status else FailureKind.UPSTREAM
    if kind is FailureKind.INVALID_REQUEST and is_unpaid(message):
        kind = FailureKind.BILLING
    code = names[0] if names else None
    used_up = kind is FailureKind.RATE_LIMIT and is_used_up(names, message, details)
    return Failed(kind, message, status or STATUS[kind], code, used_up=used_up)


def _innermost(error: Any) -> Any:
    """Unwrap an error. Gemini wraps it in a list; gateways wrap the provider's error in their own."""
    for _ in range(4):
        if is_array(error) and error:
            error = error[0]
            continue
        inner = [error.get(key) for key in ("error", "errors")] if is_object(error) else []
        found = [value for value in inner if value and (is_object(value) or is_array(value))]
        if not found:
            break
        error = found[0]
    return error


def _message(fields: dict[str, Any]) -> str:
    for key in ("message", "Message", "error", "detail", "msg", "status_msg", "error_message"):
        value = fields.get(key)
        if isinstance(value, str) and value:
            return value
    return msgspec.json.encode(fields).decode()


def _retry_delay(details: Any) -> float | None:
    """Google sends the retry delay in the body: `"34.07s"` in a `google.rpc.RetryInfo`, not in a header."""
    for detail in details if is_array(details) else ():
        delay = detail.get("retryDelay") if is_object(detail) else None
        if isinstance(delay, str) and _DURATION.fullmatch(delay):
            return float(delay[:-1])
    return None


def _as_status(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if type(value) is int and 400 <= value <= 599 else None


def from_body(status: int | None, body: bytes, name: str = "") -> Failed:
    """Read the body of an error answer: JSON in any shape, an HTML page of a proxy, or nothing.

    `name` is the name of the error in a header.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = " ".join(body[:2000].decode("utf-8", "replace").split())
        return _failed(text[:300] or f"the upstream answered {status}", status, _named(name))
    failed = from_error(value, status, name)
    if name and status == 400 and failed.kind is FailureKind.RATE_LIMIT:
        # AWS answers 400 for a used-up quota. The request itself is right.
        return msgspec.structs.replace(failed, status=STATUS[failed.kind])
    return failed


def _named(name: str) -> tuple[str, ...]:
    """AWS writes a URL behind the name of an error: `ThrottlingException:http://…`."""
    short = name.partition(":")[0].strip()
    return (short,) if short else ()
