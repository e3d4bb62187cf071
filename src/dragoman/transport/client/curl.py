"""The HTTP client on libcurl. This module, `options`, `multi`, `transfer`, `uploading` and `faults`
know the library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any

from ..._version import __version__
from ..urls import Url, parse
from .contract import (
    CONNECT_TIMEOUT,
    DEFAULT_NETWORK,
    IDLE_TIMEOUT,
    NO_HEADERS,
    Client,
    Network,
    Response,
    Upload,
)
from .errors import BadTls, CutOff, Disconnected, HttpError, Unsendable
from .faults import explained, login_wanted, no_descriptor
from .multi import Multi
from .options import HandleKey, curl, prepared, write
from .proxies import proxy_for
from .response import CurlResponse
from .transfer import Transfer
from .trust import Trust, Unusable
from .uploading import Uploading

# One per origin and network settings. Reloads of the config may change both, so the cache needs a limit.
_MAX_ROUTES = 512
# The number of `HandleKey`s with cached handles. A reloaded config may bring new certificates each time.
_MAX_KEYS = 64
_MAX_FREE = 64  # cached handles for each `HandleKey`
# After so many seconds without a request, the client frees connections, handles and libcurl's caches.
_REST = 600.0
# Bytes per second. A slower upload counts as no progress: `idle_timeout` applies to the whole of it.
_SLOWEST_UPLOAD = 64 * 1024
_NAME = {"user-agent": f"dragoman/{__version__}"}


def open_client(headers: Mapping[str, str] = NO_HEADERS) -> Client:
    """Open a client with default headers. A request may replace each of them."""
    return _CurlClient(headers)


class _Route:
    """How requests reach one origin: through a proxy or directly, with TLS or without."""

    __slots__ = ("proxy", "secure", "url")

    def __init__(self, url: Url, network: Network) -> None:
        self.url = url
        self.proxy = proxy_for(url, network)
        self.secure = url.scheme == "https" or (self.proxy or "").startswith("https:")


class _CurlClient:
    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = {**_NAME, **headers}
        self._routes: dict[tuple[str, Network], _Route] = {}
        self._trust = Trust()
        self._multi: Multi | None = None
        self._free: dict[HandleKey, list[Any]] = {}
        self._running: set[Transfer] = set()
        self._rest: asyncio.TimerHandle | None = None
        self._rested_since = 0.0

    async def __aenter__(self) -> _CurlClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        for transfer in tuple(self._running):
            transfer.drop(CutOff("was not read to its end, because this process stops"))
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        self._give_back()
        self._trust.close()

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | Upload = b"",
        connect_timeout: float = CONNECT_TIMEOUT,
        idle_timeout: float = IDLE_TIMEOUT,
        network: Network = DEFAULT_NETWORK,
    ) -> Response:
        try:
            parsed = parse(url)
        except ValueError as error:
            raise Unsendable(str(error)) from None
        fields = {**self._headers, **headers}
        if parsed.login is not None:
            fields["authorization"] = parsed.login
        route = self._route(parsed, network)
        key = HandleKey(network, route.proxy, route.secure, connect_timeout)
        # Not the original URL: libcurl could parse an unusual one differently, and the credential would go to
        # another host than the one that was checked.
        put = partial(write, method=method, url=parsed.origin + parsed.target, fields=fields, body=body)
        if isinstance(body, Upload):
            return await self._upload(route, key, put, body, idle_timeout)
        patience = idle_timeout + len(body) / _SLOWEST_UPLOAD
        transfer = self._started(route, key, put)
        try:
            await _begun(transfer, patience)
        except Disconnected:
            # Only a request that no server has read may be sent twice: a model would answer it twice, and the
            # user would pay twice.
            if not transfer.lost:
                raise
            transfer = self._started(route, key, put, fresh=True)
            await _begun(transfer, patience)
        return await _answer(transfer, route, idle_timeout)

    async def _upload(
        self, route: _Route, key: HandleKey, put: partial[None], body: Upload, idle_timeout: float
    ) -> Response:
        """Send a body while it arrives. Each piece that is sent restarts the wait for the answer."""
        transfer = self._prepared(route, key, put, fresh=True)
        uploading = transfer.uploading = Uploading(transfer.handle, body, transfer.postpone)
        self._start(transfer)
        uploading.start(partial(transfer.drop, CutOff("was not sent to its end")))
        try:
            await _begun(transfer, idle_timeout)
        except HttpError:
            if uploading.error is not None:
                raise uploading.error from None
            raise
        return await _answer(transfer, route, idle_timeout)

    def _started(self, route: _Route, key: HandleKey, put: partial[None], *, fresh: bool = False) -> Transfer:
        transfer = self._prepared(route, key, put, fresh=fresh)
        self._start(transfer)
        return transfer

    def _prepared(self, route: _Route, key: HandleKey, put: partial[None], *, fresh: bool) -> Transfer:
        """A transfer on a free handle. Fresh: with a new connection. Its handle is not used again."""
        loop = asyncio.get_running_loop()
        handle = self._handle(key)
        put(handle)
        if fresh:
            handle.setopt(curl.FRESH_CONNECT, 1)
        ended = partial(self._ended, key, fresh)
        return Transfer(loop, handle, partial(explained, route.url, route.proxy), ended)

    def _start(self, transfer: Transfer) -> None:
        transfer.start(self._opened())
        self._running.add(transfer)

    def _opened(self) -> Multi:
        if self._multi is None:
            try:
                self._multi = Multi(asyncio.get_running_loop())
            except curl.error:
                raise no_descriptor() from None
        return self._multi

    def _handle(self, key: HandleKey) -> Any:
        free = self._free.get(key)
        if free:
            return free.pop()
        try:
            return prepared(key, self._trust.file(key.network.ca) if key.secure else None)
        except Unusable as error:
            raise BadTls(f"cannot be reached: {error}") from None

    def _ended(self, key: HandleKey, fresh: bool, transfer: Transfer, whole: bool) -> None:
        self._running.discard(transfer)
        handle = transfer.handle
        free = self._free.get(key)
        if free is None:
            if len(self._free) >= _MAX_KEYS:
                self._free.pop(next(iter(self._free)))
            free = self._free[key] = []
        # `FRESH_CONNECT` stays set on a fresh handle, and a transfer that failed may leave any state.
        if whole and not fresh and len(free) < _MAX_FREE:
            handle.setopt(curl.POSTFIELDS, b"")  # frees the body, which may be many megabytes
            free.append(handle)
        else:
            handle.close()
        if not self._running:
            self._begin_rest()

    def _begin_rest(self) -> None:
        loop = asyncio.get_running_loop()
        self._rested_since = loop.time()
        if self._rest is None:
            self._rest = loop.call_later(_REST, self._look_at_rest)

    def _look_at_rest(self) -> None:
        self._rest = None
        if self._running:
            return
        loop = asyncio.get_running_loop()
        left = self._rested_since + _REST - loop.time()
        if left > 0:
            self._rest = loop.call_later(left, self._look_at_rest)
        else:
            self._give_back()

    def _give_back(self) -> None:
        multi, self._multi = self._multi, None
        self._free.clear()
        if multi is not None:
            multi.close()

    def _route(self, url: Url, network: Network) -> _Route:
        key = (url.origin, network)
        route = self._routes.get(key)
        if route is None:
            if len(self._routes) >= _MAX_ROUTES:
                self._routes.clear()
            route = self._routes[key] = _Route(url, network)
        return route


async def _begun(transfer: Transfer, patience: float) -> None:
    try:
        await transfer.begun(patience)
    except BaseException:
        transfer.drop(CutOff("was not read to its end"))
        raise


async def _answer(transfer: Transfer, route: _Route, idle_timeout: float) -> Response:
    try:
        if transfer.head.status == 407 and route.proxy is not None:
            raise login_wanted(route.proxy)
        return CurlResponse(transfer, idle_timeout)
    except HttpError as error:
        transfer.drop(error)
        raise
