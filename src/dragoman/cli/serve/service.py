"""Start the gateway: load the config, set up the logs, and run one process or several workers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from ...config import FILE as CONFIG_FILE
from ...config import discover, user_folder, with_server
from ...config.types import Config
from ...credentials import missing
from ...gateway.process import event_loop
from ...gateway.process.listener import address_of
from ...gateway.process.run import reserve, serve
from ...model.errors import DragomanError
from ...observe import logs, metrics

log = logging.getLogger("dragoman.cli")

STORE = "dragoman.db"
_LARGE_BODY = 4 * 1024 * 1024


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line's options. Workers get these, not the config, because the config may hold secrets."""

    file: Path | None = None
    host: str | None = None
    port: int | None = None
    log_level: str = "info"
    record: Path | None = None

    @property
    def pinned(self) -> frozenset[str]:
        """The keys of [server] that a reload of the config file must not change."""
        given = {key for key in ("host", "port", "record") if getattr(self, key) is not None}
        return frozenset(given | {"store"})


def run(options: ServeOptions, workers: int | None) -> None:
    """Serve until interrupted."""
    config = effective_config(options)
    config.named_secrets(os.environ)  # report a key that is not set once, not in every worker
    count = workers or config.server.workers
    logs.set_up(options.log_level)
    for problem in missing_credentials(config, os.environ):
        log.warning(problem)
    if count == 1:
        work = serve(config, ready=partial(_say_ready, config), pinned=options.pinned)
        until_interrupted(work)
        return
    from ...gateway.process.workers import Workers

    if config.server.unix is not None:
        raise DragomanError(
            "several workers cannot share a Unix socket: remove server.unix, or run one worker"
        )
    with reserve(config.server.host, config.server.port) as held, metrics.shared_metrics():
        options = msgspec.structs.replace(options, port=held.getsockname()[1])
        place = address_of(config.server.host, held.getsockname()[1], secure=config.server.tls is not None)
        ready = partial(_say_ready, config, place, count)
        Workers(count, partial(_worker, options), ready, metrics.worker_died).run()


def missing_credentials(config: Config, env: Mapping[str, str]) -> list[str]:
    """A sentence for each upstream without its credential. The gateway starts anyway: another upstream may be
    enough, and a credential file may appear later."""
    found: list[str] = []
    for name, upstream in config.upstreams.items():
        reasons = [missing(spec, env) for spec in upstream.credentials]
        state = "cannot be used" if all(reasons) else "lacks a key"
        found += [
            f"the upstream {name} {state}: {why}; `dragoman check` tests all upstreams"
            for why in reasons
            if why
        ]
    return found


def load_config(file: Path | None, *, needs_upstream: bool = True) -> Config:
    """The config of `file`, of the default locations, or of the keys in the environment.

    A command that only reads the store, or talks to a running gateway, needs no upstream: the keys may be set
    only where the gateway runs.
    """
    return discover(file, os.environ, needs_upstream=needs_upstream)


def effective_config(options: ServeOptions, *, needs_upstream: bool = True) -> Config:
    """The config with the command line's options applied and a default location for the store."""
    config = load_config(options.file, needs_upstream=needs_upstream)
    config = with_server(config, host=options.host, port=options.port, record=options.record)
    if config.server.store is not None:
        return config
    server = msgspec.structs.replace(config.server, store=default_store(config, os.environ))
    return msgspec.structs.replace(config, server=server)


def default_store(config: Config, env: Mapping[str, str]) -> Path:
    """The store of a config that names none. Each config file has its own, so that they do not mix.

    The config in the user's config folder, and a gateway without a config, use the file that all used before.
    """
    folder = data_folder(env)
    if config.path is None:
        return folder / STORE
    path = config.path.resolve()
    if path == (user_folder(env) / CONFIG_FILE).resolve():
        return folder / STORE
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return folder / f"dragoman-{digest}.db"


def data_folder(env: Any, platform: str = sys.platform) -> Path:
    """The user's data folder for Dragoman, by the convention of the platform."""
    xdg = env.get("XDG_DATA_HOME", "")
    if xdg and Path(xdg).is_absolute():  # the XDG specification says to ignore relative paths
        return Path(xdg) / "dragoman"
    home = Path(env.get("HOME") or Path.home())
    if platform == "win32" and env.get("LOCALAPPDATA"):
        return Path(env["LOCALAPPDATA"]) / "dragoman"
    if platform == "darwin":
        return home / "Library" / "Application Support" / "dragoman"
    return home / ".local" / "share" / "dragoman"


def _tune_garbage_collector() -> None:
    """Exclude the loaded modules from garbage collection, and collect less often.

    Requests leave few reference cycles behind. Reading a conversation of one megabyte creates about a hundred
    thousand objects: with the default thresholds the collector would run dozens of times for one request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _tune_allocator() -> None:
    """Make glibc keep the memory of large bodies instead of returning it to the system.

    By default glibc maps each large allocation and unmaps it when it is freed. The page faults of such a
    buffer cost more than filling it. When a mapped buffer is freed, glibc raises its threshold to that size
    (see M_MMAP_THRESHOLD in mallopt(3)), so freeing one large buffer at the start is enough.
    """
    bytes(_LARGE_BODY)


def _raise_descriptors() -> None:
    """Raise the limit of open files: each stream takes two, and the default is often 1,024."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run until a signal ends the work. A second signal, before the running answers end, exits with 130."""
    _tune_garbage_collector()
    _tune_allocator()
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
        click.echo(f"The inspector is at {place}/inspector.", err=True)


def _worker(options: ServeOptions, ready: Callable[[], None]) -> None:
    logs.set_up(options.log_level)
    try:
        config = effective_config(options)
        until_interrupted(serve(config, ready=lambda _: ready(), shared_port=True, pinned=options.pinned))
    except DragomanError as error:
        click.echo(f"Error: {error.message}", err=True)
        raise SystemExit(1) from None
