"""The gateway an agent is to use: the one that runs already, or one for as long as the agent runs."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from ...config import find
from ...config.types import Config, ConfigError, ServerConfig
from ...gateway.listener import address_of
from ...gateway.process import serve
from ...observe import logs
from ...routing.model_limits import Limits
from ...routing.router import NoRoute, models, route
from ..serve.service import Settings, configured, data_folder, effective
from .wiring import PLACEHOLDER

LOG = "run.log"
_LARGEST_LOG = 8 * 1024 * 1024
_PATIENCE = 2.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Gateway(msgspec.Struct, frozen=True, kw_only=True):
    """One that answers."""

    url: str
    key: str | None = PLACEHOLDER
    models: tuple[str, ...] = ()
    config: Config | None = None
    """What it was told, as far as that is known here."""
    log: Path | None = None
    """Where it writes its log, if it is ours."""

    def window(self, model: str | None) -> int | None:
        """How many tokens `model` takes, where the config or the extra `limits` says so."""
        if self.config is None or model is None:
            return None
        try:
            choice = route(self.config, model)[0]
        except NoRoute:
            return None
        limits = Limits()
        if find_spec("genai_prices"):
            limits.load()
        return limits.of(choice.upstream, choice.model).context


def running(settings: Settings, env: Mapping[str, str]) -> Gateway | None:
    """The gateway at the configured place, if it is there."""
    config = _config(settings, env)
    server = ServerConfig() if config is None else config.server
    host = settings.host or server.host
    port = server.port if settings.port is None else settings.port
    host = _EVERYWHERE.get(host, host)
    if server.unix or server.tls or not port or not _is_dragoman(host, port):
        return None
    key = PLACEHOLDER if config is None else client_key(config, env)
    return Gateway(url=address_of(host, port), key=key, models=_listed(host, port, key), config=config)


def expected(settings: Settings, env: Mapping[str, str]) -> Gateway:
    """The gateway that runs, or the one `dragoman serve` would start."""
    gateway = running(settings, env)
    if gateway is not None:
        return gateway
    config = effective(settings)
    host = _EVERYWHERE.get(config.server.host, config.server.host)
    return Gateway(
        url=address_of(host, config.server.port), key=client_key(config, env), models=models(config)
    )


@contextlib.asynccontextmanager
async def started(settings: Settings, env: Mapping[str, str]) -> AsyncGenerator[Gateway]:
    """A gateway of our own. Its port is a free one unless one was asked for: several agents may run."""
    config = effective(msgspec.structs.replace(settings, port=settings.port or 0))
    # Nobody but the agent uses it, on this machine, and that has ended when this has to.
    server = msgspec.structs.replace(config.server, shutdown_grace=1.0, unix=None, tls=None)
    config = msgspec.structs.replace(config, server=server)
    key = client_key(config, env)
    log = log_to_file(settings.log_level, data_folder(env))
    stop, url = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(config, ready=url.set_result, stop=stop, signals=False, pinned=settings.pinned)
    )
    try:
        await asyncio.wait([serving, url], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield Gateway(url=url.result(), key=key, models=models(config), config=config, log=log)
    finally:
        stop.set()
        await serving


def client_key(config: Config, env: Mapping[str, str]) -> str | None:
    """What the agent has to send: our key, its own where an upstream wants that, or anything."""
    keys = config.keys(env)
    if keys:
        return keys[0].reveal()
    passed_on = any(upstream.credential.kind == "client" for upstream in config.upstreams.values())
    return None if passed_on else PLACEHOLDER


def log_to_file(level: str, folder: Path) -> Path:
    """The terminal is the agent's: what the gateway has to say goes to a file."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / LOG
    too_large = file.exists() and file.stat().st_size > _LARGEST_LOG
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if too_large else os.O_APPEND)
    logs.set_up(level, os.fdopen(os.open(file, flags, 0o600), "a", buffering=1))
    logging.getLogger().handlers[:] = logging.getLogger("dragoman").handlers
    return file


def _config(settings: Settings, env: Mapping[str, str]) -> Config | None:
    """None for somebody who has neither a config nor keys: the gateway that runs may need none."""
    if find(settings.file, env, Path.cwd()) is not None:
        return configured(settings.file)
    try:
        return configured(None)
    except ConfigError:
        return None


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
    """Headers and body, or None where nobody answers. Never through a proxy: it is this machine."""
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.headers, response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
