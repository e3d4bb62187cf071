"""Turns aiohttp's request into an `HttpRequest`: checks the head, and reads the body within limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from aiohttp import HttpVersion, web
from aiohttp.web import RequestPayloadError

from .answers import COMMON_HEADERS
from .connection import Connection
from .decompression import decompressed
from .forwarded import TrustedProxies
from .limits import MAX_HEAD, MIN_BODY_RATE, ServerLimits
from .refusals import BodyTooLarge, BodyTooSlow, BodyUnreadable, RefusedRequest
from .request import ClientGone, HttpRequest
from .user_agents import RENAMED

# Separators for fields that occur more than once. The default is ", ".
# Google's SDK sends two User-Agent fields.
_SEPARATORS = {"user-agent": " ", "cookie": "; "}
# Request smuggling uses duplicates of these. (aiohttp itself refuses a second Host or Content-Length.)
_UNIQUE = frozenset({"host", "authorization", "content-type", "transfer-encoding"})
_HTTP_1_1 = HttpVersion(1, 1)
_VERSIONS = frozenset({(1, 0), (1, 1)})
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class HttpSink:
    """Sends the answer to one HTTP request."""

    __slots__ = ("_connection", "_http", "response")

    def __init__(self, http: web.BaseRequest, connection: Connection) -> None:
        self._http = http
        self._connection = connection
        self.response: web.StreamResponse | None = None
        """aiohttp's response, once it is started."""

    @property
    def slow(self) -> bool:
        return self._connection.stalled_since > 0

    @property
    def transport(self) -> asyncio.Transport | None:
        """For the scripted server of the conformance suite, which breaks HTTP on purpose. None: closed."""
        return self._http.transport

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.response = web.StreamResponse(status=status, headers={**COMMON_HEADERS, **headers})
        if self._http.version < _HTTP_1_1:
            self.response.force_close()  # HTTP/1.0 has no chunks: the end of the connection ends the answer
        try:
            await self.response.prepare(self._http)
        except ConnectionError:
            raise ClientGone from None

    async def write(self, data: bytes) -> None:
        assert self.response is not None
        self._connection.mark_write()
        try:
            await self.response.write(data)
        except ConnectionError:
            raise ClientGone from None

    async def end(self, last: bytes = b"") -> None:
        assert self.response is not None
        self._connection.mark_write()
        try:
            await self.response.write_eof(last)
        except ConnectionError:
            raise ClientGone from None

    def abort(self) -> None:
        self._connection.abort()


def convert_request(
    http: web.BaseRequest, connection: Connection, limits: ServerLimits, proxies: TrustedProxies
) -> HttpRequest:
    """Raises a `RefusedRequest` for a head that the gateway cannot serve."""
    fields = _fields(http)
    if (http.version.major, http.version.minor) not in _VERSIONS:
        raise RefusedRequest(
            "only HTTP/1.0 and HTTP/1.1 are supported", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
        )
    if fields.get("transfer-encoding", "chunked").strip().lower() != "chunked":
        raise RefusedRequest("the only supported transfer coding is chunked", HTTPStatus.NOT_IMPLEMENTED)

    async def read() -> bytes:
        return await _body(http, fields, limits)

    def chunks(largest: int) -> AsyncIterator[bytes]:
        return _chunks(http, limits, largest)

    return HttpRequest(
        http.method,
        _target(http.raw_path, fields),
        fields,
        read,
        HttpSink(http, connection),
        chunks=chunks,
        client=proxies.client_of(http.remote or "", fields),
        wants_websocket=_wants_websocket(http, fields),
    )


def _wants_websocket(http: web.BaseRequest, fields: Mapping[str, str]) -> bool:
    return http.method == "GET" and "upgrade" in fields and web.WebSocketResponse().can_prepare(http).ok


def _fields(http: web.BaseRequest) -> dict[str, str]:
    """The header fields by lower-case name. Values of repeated fields are joined."""
    fields: dict[str, str] = {}
    size = 0
    for name, value in http.headers.items():
        key = name.lower()
        size += len(key) + len(value)
        if key == RENAMED:
            key = "user-agent"
        if key not in fields:
            fields[key] = value
        elif key in _UNIQUE:
            raise RefusedRequest(f"the header {key} must not occur twice")
        else:
            fields[key] += _SEPARATORS.get(key, ", ") + value
    if size > MAX_HEAD:
        raise RefusedRequest(
            "the head of the request is too large", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        )
    return fields


def _target(raw: str, fields: dict[str, str]) -> str:
    """Path and query. The form for proxies, `http://host/path`, is accepted if it names this host."""
    if raw.startswith("/"):
        return raw
    parts = urlsplit(raw)
    if parts.scheme not in ("http", "https"):
        raise RefusedRequest("the first line of the request has no path")
    # A URL in the request line that names another host is a known way around Host checks.
    if parts.netloc.lower() != fields.get("host", "").strip().lower():
        raise RefusedRequest("the URL of the request and its Host header differ; this server is not a proxy")
    path = parts.path if parts.path.startswith("/") else "/" + parts.path
    return f"{path}?{parts.query}" if parts.query else path


def expects_continue(http: web.BaseRequest) -> bool:
    """Does the client wait for `100 Continue` before it sends its body?"""
    return http.headers.get("expect", "").lower() == "100-continue"


async def _body(http: web.BaseRequest, fields: Mapping[str, str], limits: ServerLimits) -> bytes:
    """The complete body, decompressed."""
    chunks = [chunk async for chunk in _chunks(http, limits, limits.body)]
    coding = fields.get("content-encoding", "identity").strip().lower()
    return await decompressed(b"".join(chunks), coding, limits.body)


async def _chunks(http: web.BaseRequest, limits: ServerLimits, largest: int) -> AsyncIterator[bytes]:
    """The body in pieces, as it is sent."""
    if http.content_length is not None and http.content_length > largest:
        raise BodyTooLarge
    if expects_continue(http) and http.transport is not None:
        http.transport.write(_CONTINUE)
    size = 0
    waited = 0.0  # only for the client: an upstream that takes a streamed body slowly is not its fault
    time = asyncio.get_running_loop().time
    try:
        while not http.content.at_eof():
            began = time()
            async with asyncio.timeout_at(began + limits.timeout + size / MIN_BODY_RATE - waited):
                chunk = await http.content.readany()
            waited += time() - began
            size += len(chunk)
            if size > largest:
                raise BodyTooLarge
            yield chunk
    except TimeoutError:
        raise BodyTooSlow(f"the body did not arrive within {limits.timeout:g} seconds") from None
    except (RequestPayloadError, ValueError):
        raise BodyUnreadable from None
