"""The models that upstreams offer, for `/v1/models`. The lists are fetched in the background and cached."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from ...config.types import Config, UpstreamConfig
from ...credentials import CredentialError
from ...model.errors import DragomanError, UpstreamError
from ...routing.router import NoRoute, models, route
from ...transport.client import HttpError
from .call import Pool
from .model_list import MAX_LIST_SIZE, list_url, parse_list

log = logging.getLogger("dragoman.gateway")

_FRESH = 600.0
_FAILED = 60.0  # seconds until an upstream that failed is asked again
_TIMEOUT = 10.0
# Seconds. The first client waits so long for new lists. Later clients get the cached lists at once.
_PATIENCE = 1.5
_MAX_NAMES = 1000  # of one upstream

Headers = Callable[[UpstreamConfig, str], Awaitable[Mapping[str, str]]]


class _CachedList(msgspec.Struct, frozen=True):
    upstream: UpstreamConfig
    names: tuple[str, ...]
    until: float


class Catalogue:
    """Caches one list per upstream. `headers` returns the headers for a request to an upstream."""

    def __init__(self, pool: Callable[[], Pool], headers: Headers) -> None:
        self._pool = pool
        self._headers = headers
        self._cache: dict[str, _CachedList] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def models(self, config: Config) -> tuple[str, ...]:
        """All names that clients may use: first those of the config, then those of the upstreams."""
        listed = await self._lists(_upstreams_to_ask(config))
        names = (_short_name(config, upstream, name) for upstream, found in listed.items() for name in found)
        return tuple(dict.fromkeys([*models(config), *(name for name in names if name)]))

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _lists(self, upstreams: list[UpstreamConfig]) -> dict[str, tuple[str, ...]]:
        now = asyncio.get_running_loop().time()
        unknown: list[asyncio.Task[None]] = []
        for upstream in upstreams:
            known = self._cache.get(upstream.name)
            same = known is not None and known.upstream == upstream
            if same and known is not None and now < known.until:
                continue
            # A stale list is better than a slow one: clients get the old list while the new one is fetched.
            task = self._ask(upstream)
            if not same:
                unknown.append(task)
        if unknown:
            await asyncio.wait(unknown, timeout=_PATIENCE)
        names = {upstream.name for upstream in upstreams}
        return {name: known.names for name, known in self._cache.items() if name in names}

    def _ask(self, upstream: UpstreamConfig) -> asyncio.Task[None]:
        """Start a fetch, or return the fetch that already runs for this upstream."""
        name = upstream.name
        if name not in self._asking:
            task = asyncio.get_running_loop().create_task(self._fetch(upstream))
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        return self._asking[name]

    async def _fetch(self, upstream: UpstreamConfig) -> None:
        known = self._cache.get(upstream.name)
        names = known.names if known is not None and known.upstream == upstream else ()
        good_for = _FAILED
        try:
            names = (await self._fetched(upstream))[:_MAX_NAMES]
            good_for = _FRESH
        except (DragomanError, TimeoutError, HttpError, ValueError) as error:
            log.debug("no list of models", extra={"upstream": upstream.name, "why": type(error).__name__})
        until = asyncio.get_running_loop().time() + good_for
        self._cache[upstream.name] = _CachedList(upstream, names, until)

    async def _fetched(self, upstream: UpstreamConfig) -> tuple[str, ...]:
        url = list_url(upstream)
        async with asyncio.timeout(_TIMEOUT):
            *others, last = upstream.each_key or (upstream,)
            for one in others:
                with contextlib.suppress(CredentialError):
                    headers = await self._headers(one, url)
                    status, body = await self._pool().get(url, headers, one, max_size=MAX_LIST_SIZE)
                    if 200 <= status < 300:
                        return parse_list(body).names
            headers = await self._headers(last, url)
            status, body = await self._pool().get(url, headers, last, max_size=MAX_LIST_SIZE)
        if not 200 <= status < 300:
            raise UpstreamError(f"{upstream.name} answered {status}")
        return parse_list(body).names


def _upstreams_to_ask(config: Config) -> list[UpstreamConfig]:
    """Not upstreams whose models the config lists, and not those that need a client's own key."""
    reached = {t.upstream for r in config.routes for t in r.to if "*" in t.model}
    return [
        upstream
        for upstream in config.upstreams.values()
        if not upstream.models
        and upstream.credential.kind != "client"
        and (config.server.direct or upstream.name in reached)
    ]


def _short_name(config: Config, upstream: str, name: str) -> str | None:
    """The model's own name if it routes to this upstream, else `upstream/name`."""
    try:
        first = route(config, name)[0]
    except NoRoute:
        first = None
    if first is not None and (first.upstream.name, first.model) == (upstream, name):
        return name
    return f"{upstream}/{name}" if config.server.direct else None
