"""The client, made with pyqwest (reqwest and hyper in Rust). Only this file and `faults` know pyqwest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any

from pyqwest import Headers, HTTPTransport, HTTPVersion, Proxy, Request
from pyqwest import Response as Raw

from ..._version import __version__
from ..urls import parse
from .contract import CONNECT_TIMEOUT, DEFAULT_NETWORK, IDLE_TIMEOUT, NO_HEADERS, Client, Network, Response
from .errors import BadTls, Disconnected, HttpError, Malformed, ProxyRefused, Silent, Unsendable
from .faults import LIBRARY_ERRORS, before_answer, login_wanted
from .proxies import problem, shown
from .response import HttpResponse
from .routes import KEPT, Route, Way
from .trust import Unusable, environment_roots

_MOST_KEPT = 1024  # unused connections to one host
_MOST_ROUTES = 512
# A config that is read again may bring new certificates each time.
_MOST_TRANSPORTS = 64
# Bytes a second. A server that takes the request slower than that does not take it.
_SLOWEST_UPLOAD = 64 * 1024
_NAME = {"user-agent": f"dragoman/{__version__}"}
# reqwest looks for a proxy in the environment unless it is given one. This one is used for no host.
_UNUSED_PROXY = Proxy("http://unused.invalid", no_proxy="*,0.0.0.0/0,::/0")


def open_client(headers: Mapping[str, str] = NO_HEADERS) -> Client:
    """A client whose requests have `headers` unless they say otherwise."""
    return _ReqwestClient(headers)


class _ReqwestClient:
    """One library client ("transport") for each `Way`, made when it is first needed."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {**_NAME, **headers}
        self._transports: dict[Way, HTTPTransport] = {}
        self._routes: dict[tuple[str, Network], Route] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.open: set[HttpResponse] = set()
        """The answers that are not over."""

    async def __aenter__(self) -> _ReqwestClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for answer in tuple(self.open):
            await answer.close()
        transports = tuple(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()

    async def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        connect_timeout: float = CONNECT_TIMEOUT,
        idle_timeout: float = IDLE_TIMEOUT,
        network: Network = DEFAULT_NETWORK,
    ) -> Response:
        route = self._route(url, network)
        write = partial(_written, method, url, {**self._headers, **headers}, body)
        patience = idle_timeout + len(body) / _SLOWEST_UPLOAD
        exchange = _Exchange(self, route, route.enter())
        try:
            raw = await exchange.sent(write, connect_timeout, patience)
            return await exchange.answer(raw, idle_timeout)
        except BaseException:
            exchange.over()
            raise

    def transport(self, way: Way) -> HTTPTransport:
        found = self._transports.get(way)
        if found is None:
            if len(self._transports) >= _MOST_TRANSPORTS:
                self._transports.pop(next(iter(self._transports)))  # the oldest; its answers go on
            found = self._transports[way] = _opened(way)
        return found

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _route(self, url: str, network: Network) -> Route:
        try:
            parsed = parse(url)
        except ValueError as error:
            raise Unsendable(str(error)) from None
        key = (parsed.origin, network)
        route = self._routes.get(key)
        if route is None:
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            route = self._routes[key] = Route(parsed, network)
        return route


class _Exchange:
    """One request and its answer, on one lane of a route."""

    __slots__ = ("_answer", "_answering", "_client", "_lane", "_route")

    def __init__(self, client: _ReqwestClient, route: Route, lane: int) -> None:
        self._client = client
        self._route = route
        self._lane = lane
        self._answering = False
        self._answer: HttpResponse | None = None

    async def sent(self, write: Callable[[], Request], connect_timeout: float, patience: float) -> Raw:
        """The answer's head. What a kept connection has lost is sent once more, on a new connection."""
        route = self._route
        begun = monotonic()
        try:
            return await self._send(write(), route.way(connect_timeout, self._lane), patience)
        except Disconnected:
            if not route.may_have_kept(begun):
                raise
        return await self._send(write(), route.way(connect_timeout, self._lane, kept=False), patience)

    async def _send(self, request: Request, way: Way, patience: float) -> Raw:
        route = self._route
        transport = self._client.transport(way)
        limit = asyncio.timeout(patience)
        try:
            async with limit:
                raw = await transport.execute(request)
        except LIBRARY_ERRORS as error:
            if limit.expired():
                raise Silent("sent nothing for too long") from None
            raise before_answer(error, route.url, route.proxy) from None
        route.multiplexed = raw.http_version >= HTTPVersion.HTTP2
        route.begin_answer()
        self._answering = True
        return raw

    async def answer(self, raw: Raw, idle_timeout: float) -> HttpResponse:
        try:
            if raw.status < 200:
                raise Malformed("switches to another protocol")
            if raw.status == 407 and self._route.proxy is not None:
                raise login_wanted(self._route.proxy)
            self._answer = HttpResponse(raw.status, dict(raw.headers.items()), raw, self, idle_timeout)
            self._client.open.add(self._answer)
            return self._answer
        except HttpError:
            await raw.aclose()
            raise

    def over(self) -> None:
        self._route.leave(self._lane)
        if self._answering:
            self._route.end_answer()
        if self._answer is not None:
            self._client.open.discard(self._answer)
            self._answer = None

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        self._client.spawn(work)


def _written(method: str, url: str, fields: Mapping[str, str], body: bytes) -> Request:
    parsed = parse(url)
    if parsed.login is not None:
        fields = {**fields, "authorization": parsed.login}
    try:
        # The address as it was checked: the library would read a strange one in its own way.
        return Request(method, parsed.origin + parsed.target, Headers(fields.items()), body)
    except ValueError:
        raise Unsendable("a header or the address has characters that cannot be sent") from None


def _opened(way: Way) -> HTTPTransport:
    network = way.network
    if way.proxy is not None and problem(way.proxy):
        raise ProxyRefused(f"cannot be reached: the proxy {shown(way.proxy)} {problem(way.proxy)}")
    try:
        roots = b"\n".join(filter(None, (network.ca, environment_roots()))) if way.secure else b""
        return HTTPTransport(
            tls_include_system_certs=way.secure,
            tls_ca_cert=roots or None,
            tls_cert=network.client_cert or None,
            tls_key=b"" if network.client_cert else None,  # it stands behind the certificate
            proxy=way.proxy or _UNUSED_PROXY,
            connect_timeout=way.connect_timeout,
            pool_idle_timeout=KEPT,
            pool_max_idle_per_host=_MOST_KEPT if way.kept else 0,
            use_system_dns=True,
            follow_redirects=False,
            enable_otel=False,
        )
    except Unusable as error:
        raise BadTls(f"cannot be asked: {error}") from None
    except (RuntimeError, ValueError):
        raise BadTls(
            "cannot be asked: this machine has no certificates to trust; install ca-certificates, "
            "or set SSL_CERT_FILE"
        ) from None
