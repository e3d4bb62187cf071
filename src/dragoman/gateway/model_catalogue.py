"""What upstreams list themselves, for `/v1/models`: asked in the background, never waited for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from ..config.types import Config, UpstreamConfig
from ..model.errors import DragomanError, UpstreamError
from ..routing.router import NoRoute, models, route
from ..transport.client import HttpError
from .model_list import LARGEST, address, read
from .upstream import Pool

log = logging.getLogger("dragoman.gateway")

_FRESH = 600.0
_FAILED = 60.0  # seconds before one that could not be asked is asked again
_TIMEOUT = 10.0
# A client that asks for the first time waits that long for the lists; later ones get what is known.
_PATIENCE = 1.5
_MOST = 1000  # names of one upstream

Headers = Callable[[UpstreamConfig, str], Awaitable[Mapping[str, str]]]


class _Known(msgspec.Struct, frozen=True):
    upstream: UpstreamConfig
    names: tuple[str, ...]
    until: float


class Catalogue:
    """`headers` gives what a request to an upstream is sent with."""

    def __init__(self, pool: Callable[[], Pool], headers: Headers) -> None:
        self._pool = pool
        self._headers = headers
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def models(self, config: Config) -> tuple[str, ...]:
        """The names clients may use: the config's, then those upstreams list, as short as they work."""
        listed = await self._listed(_open(config))
        ways = (_shortest(config, upstream, name) for upstream, names in listed.items() for name in names)
        return tuple(dict.fromkeys([*models(config), *(name for name in ways if name)]))

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listed(self, upstreams: list[UpstreamConfig]) -> dict[str, tuple[str, ...]]:
        now = asyncio.get_running_loop().time()
        unknown: list[asyncio.Task[None]] = []
        for upstream in upstreams:
            known = self._known.get(upstream.name)
            same = known is not None and known.upstream == upstream
            if same and known is not None and now < known.until:
                continue
            task = self._ask(upstream)
            if not same:
                unknown.append(task)
        if unknown:
            await asyncio.wait(unknown, timeout=_PATIENCE)
        names = {upstream.name for upstream in upstreams}
        return {name: known.names for name, known in self._known.items() if name in names}

    def _ask(self, upstream: UpstreamConfig) -> asyncio.Task[None]:
        """Once at a time, for whoever wants to know."""
        name = upstream.name
        if name not in self._asking:
            task = asyncio.get_running_loop().create_task(self._fetch(upstream))
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        return self._asking[name]

    async def _fetch(self, upstream: UpstreamConfig) -> None:
        known = self._known.get(upstream.name)
        names = known.names if known is not None and known.upstream == upstream else ()
        good_for = _FAILED
        try:
            names = (await self._fetched(upstream))[:_MOST]
            good_for = _FRESH
        except (DragomanError, TimeoutError, HttpError, ValueError) as error:
            log.debug("no list of models", extra={"upstream": upstream.name, "why": type(error).__name__})
        until = asyncio.get_running_loop().time() + good_for
        self._known[upstream.name] = _Known(upstream, names, until)

    async def _fetched(self, upstream: UpstreamConfig) -> tuple[str, ...]:
        url = address(upstream)
        async with asyncio.timeout(_TIMEOUT):
            headers = await self._headers(upstream, url)
            status, body = await self._pool().get(url, headers, upstream, largest=LARGEST)
        if not 200 <= status < 300:
            raise UpstreamError(f"{upstream.name} answered {status}")
        return read(body).names


def _open(config: Config) -> list[UpstreamConfig]:
    """Those worth asking: not where the config says which models there are, nor with a client's own key."""
    reached = {t.upstream for r in config.routes for t in r.to if "*" in t.model}
    return [
        upstream
        for upstream in config.upstreams.values()
        if not upstream.models
        and upstream.credential.kind != "client"
        and (config.server.direct or upstream.name in reached)
    ]


def _shortest(config: Config, upstream: str, name: str) -> str | None:
    """The name by which a request gets there: its own, or with the upstream before it."""
    try:
        first = route(config, name)[0]
    except NoRoute:
        first = None
    if first is not None and (first.upstream.name, first.model) == (upstream, name):
        return name
    return f"{upstream}/{name}" if config.server.direct else None
