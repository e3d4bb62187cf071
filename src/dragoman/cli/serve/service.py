"""`dragoman serve`: the config that counts, the logs, and one process or several."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from ...config import find, from_environment, load, with_server
from ...config.types import Config
from ...gateway import event_loop
from ...gateway.listener import address_of
from ...gateway.process import reserve, serve
from ...model.errors import DragomanError
from ...observe import logs, metrics

STORE = "dragoman.db"
_LARGE_BODY = 4 * 1024 * 1024


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says. Workers are given this, not the config: that may hold secrets."""

    file: Path | None = None
    host: str | None = None
    port: int | None = None
    log_level: str = "info"
    record: Path | None = None

    @property
    def pinned(self) -> frozenset[str]:
        """The keys of [server] that the file has no say in."""
        said = {key for key in ("host", "port", "record") if getattr(self, key) is not None}
        return frozenset(said | {"store"})


def run(settings: Settings, workers: int | None) -> None:
    """Serve until interrupted."""
    config = effective(settings)
    config.keys(os.environ)  # a key that is not set is said once, not by every worker
    count = workers or config.server.workers
    logs.set_up(settings.log_level)
    if count == 1:
        work = serve(config, ready=partial(_say_ready, config), pinned=settings.pinned)
        until_interrupted(work)
        return
    from ...gateway.workers import Workers

    if config.server.unix is not None:
        raise DragomanError("workers cannot share a Unix socket: leave server.unix or --workers out")
    with reserve(config.server.host, config.server.port) as held, metrics.counted_together():
        settings = msgspec.structs.replace(settings, port=held.getsockname()[1])
        place = address_of(config.server.host, held.getsockname()[1], secure=config.server.tls is not None)
        ready = partial(_say_ready, config, place, count)
        Workers(count, partial(_worker, settings), ready, metrics.gone).run()


def configured(file: Path | None) -> Config:
    """The config in `file`, in the usual places, or in the environment."""
    found = find(file, os.environ, Path.cwd())
    return from_environment(os.environ) if found is None else load(found)


def effective(settings: Settings) -> Config:
    """The config with what the command line says, and a place to keep things."""
    config = with_server(
        configured(settings.file), host=settings.host, port=settings.port, record=settings.record
    )
    if config.server.store is not None:
        return config
    server = msgspec.structs.replace(config.server, store=data_folder(os.environ) / STORE)
    return msgspec.structs.replace(config, server=server)


def data_folder(env: Any, platform: str = sys.platform) -> Path:
    """Where this user's programs keep their data."""
    xdg = env.get("XDG_DATA_HOME", "")
    if xdg and Path(xdg).is_absolute():  # the standard says to ignore relative ones
        return Path(xdg) / "dragoman"
    home = Path(env.get("HOME") or Path.home())
    if platform == "win32" and env.get("LOCALAPPDATA"):
        return Path(env["LOCALAPPDATA"]) / "dragoman"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "dragoman"
    return home / ".local" / "share" / "dragoman"


def _settle_garbage() -> None:
    """What was loaded lives as long as the process: no need to look through it again and again.

    Requests leave few cycles behind, and a conversation of a megabyte is a hundred thousand objects: by
    default the collector would run dozens of times while one is read.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _settle_memory() -> None:
    """What requests take and give back stays with the process.

    glibc asks the system for each large piece of memory, and gives it back at once: to get half a megabyte
    costs more, page by page, than to fill it. It stops that up to the size of what was ever given back.
    """
    bytes(_LARGE_BODY)


def _raise_descriptors() -> None:
    """Every stream takes two descriptors, and many systems allow 1,024 unless asked for more."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """A signal ends it quietly; a second one, before answers under way have finished, says so by its code."""
    _settle_garbage()
    _settle_memory()
    _raise_descriptors()
    try:
        with contextlib.suppress(KeyboardInterrupt):
            event_loop.run(work)
    except asyncio.CancelledError:
        raise SystemExit(130) from None


def _say_ready(config: Config, place: str, count: int = 1) -> None:
    names = ", ".join(config.upstreams)
    several = f", {count} workers" if count > 1 else ""
    click.echo(f"Dragoman is at {place}: {names}{several}. Ctrl-C ends it.", err=True)
    if config.server.unix is None:
        click.echo(f"Look in at {place}/inspector.", err=True)


def _worker(settings: Settings, ready: Callable[[], None]) -> None:
    logs.set_up(settings.log_level)
    try:
        config = effective(settings)
        until_interrupted(serve(config, ready=lambda _: ready(), shared_port=True, pinned=settings.pinned))
    except DragomanError as error:
        click.echo(f"Error: {error.message}", err=True)
        raise SystemExit(1) from None
