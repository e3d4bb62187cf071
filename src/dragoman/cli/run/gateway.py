"""The gateway for an agent: the one that is already running, or one that runs as long as the agent."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...config.types import Config
from ...gateway.process.listener import address_of
from ...gateway.process.run import serve
from ...observe import logs
from ...routing.model_limits import LimitsCache
from ...routing.router import NoRoute, models, route
from ..gateway_address import reachable
from ..serve.service import ServeOptions, data_folder, effective_config, load_config
from .wiring import PLACEHOLDER

LOG = "run.log"
_LARGEST_LOG = 8 * 1024 * 1024
_TIMEOUT = 2.0


class GatewayInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a gateway, and what it serves."""

    url: str
    key: str | None = PLACEHOLDER
    models: tuple[str, ...] = ()
    config: Config | None = None
    """Its config, if this process can read it."""
    log: Path | None = None
    """Its log file, if this process started it."""

    def window(self, model: str | None) -> int | None:
        """The context window of `model` in tokens, if the config or the table of prices knows it."""
        if self.config is None or model is None:
            return None
        try:
            choice = route(self.config, model)[0]
        except NoRoute:
            return None
        return LimitsCache().of(choice.upstream, choice.model).context


def running(options: ServeOptions, env: Mapping[str, str]) -> GatewayInfo | None:
    """The gateway at the configured address, if one answers there."""
    config = load_config(options.file, needs_upstream=False)
    server = config.server
    host = reachable(options.host or server.host)
    port = server.port if options.port is None else options.port
    if server.unix or server.tls or not port or not _is_dragoman(host, port):
        return None
    key = client_key(config, env)
    return GatewayInfo(url=address_of(host, port), key=key, models=_listed(host, port, key), config=config)


def expected(options: ServeOptions, env: Mapping[str, str]) -> GatewayInfo:
    """The running gateway, or the one that `dragoman serve` would start."""
    gateway = running(options, env)
    if gateway is not None:
        return gateway
    config = effective_config(options)
    url = address_of(reachable(config.server.host), config.server.port)
    return GatewayInfo(url=url, key=client_key(config, env), models=models(config))


@contextlib.asynccontextmanager
async def started(options: ServeOptions, env: Mapping[str, str]) -> AsyncGenerator[GatewayInfo]:
    """Run a gateway in this process. It takes a free port by default, because several agents may run."""
    config = effective_config(msgspec.structs.replace(options, port=options.port or 0))
    # Only the agent uses this gateway, on this machine. It needs no TLS and no Unix socket, and no long grace
    # period at the end: the agent has exited by then.
    server = msgspec.structs.replace(config.server, shutdown_grace=1.0, unix=None, tls=None)
    config = msgspec.structs.replace(config, server=server)
    key = client_key(config, env)
    log = log_to_file(options.log_level, data_folder(env))
    stop, url = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(config, ready=url.set_result, stop=stop, signals=False, pinned=options.pinned)
    )
    try:
        await asyncio.wait([serving, url], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield GatewayInfo(url=url.result(), key=key, models=models(config), config=config, log=log)
    finally:
        stop.set()
        await serving


def client_key(config: Config, env: Mapping[str, str]) -> str | None:
    """The key for the agent. None keeps the agent's own key, because an upstream is configured to get it."""
    key = config.local_key(env)
    if key is not None:
        return key.reveal()
    if any(upstream.credential.kind == "client" for upstream in config.upstreams.values()):
        return None
    return env.get("DRAGOMAN_KEY") or PLACEHOLDER  # the store may have keys that this process cannot know


def log_to_file(level: str, folder: Path) -> Path:
    """Write the gateway's log to a file, because the terminal belongs to the agent."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / LOG
    too_large = file.exists() and file.stat().st_size > _LARGEST_LOG
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if too_large else os.O_APPEND)
    logs.set_up(level, os.fdopen(os.open(file, flags, 0o600), "a", buffering=1))
    logging.getLogger().handlers[:] = logging.getLogger("dragoman").handlers
    return file


def _is_dragoman(host: str, port: int) -> bool:
    answer = _get(host, port, "/healthz", {})
    return answer is not None and answer[0].get("x-dragoman-exchange") is not None


def _listed(host: str, port: int, key: str | None) -> tuple[str, ...]:
    answer = _get(host, port, "/v1/models", {"authorization": f"Bearer {key or PLACEHOLDER}"})
    if answer is None:
        return ()
    value: Any = msgspec.json.decode(answer[1])
    return tuple(entry["id"] for entry in value.get("data", ()))


def _get(
    host: str, port: int, path: str, headers: dict[str, str]
) -> tuple[http.client.HTTPMessage, bytes] | None:
    """Headers and body, or None without an answer. `http.client` uses no proxy, as localhost needs."""
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.headers, response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
