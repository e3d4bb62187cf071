"""The work of the `store` commands."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, TypeVar

import click
import msgspec

from ...config.store_address import store_place
from ...config.types import Config
from ...credentials.secret import Secret
from ...gateway.process import event_loop
from ...gateway.process.retention import failure_limits, recording_limits, retention_of
from ...recording.kept_failures import failures_folder
from ...recording.retention import prune as prune_recordings
from ...store import Receipt, Store, StoreError, StoreStatus, open_store, store_status
from ..serve.service import ServeOptions, effective_config

T = TypeVar("T")

# Seconds between two lines of progress.
_PROGRESS = 1.0


class _Line(msgspec.Struct, frozen=True):
    """One receipt in an export."""

    id: str
    at: float
    key: str
    team: str
    session: str
    upstream: str
    model: str
    outcome: str
    input: int
    output: int
    cached: int
    reasoning: int
    cost: float | None
    """US dollars; null if the price is unknown."""
    summary: msgspec.Raw
    detail: msgspec.Raw


def _config(file: Path | None) -> tuple[Config, Path | Secret]:
    config = effective_config(ServeOptions(file=file), needs_upstream=False)
    place = store_place(config.server.store, os.environ)
    assert place is not None  # `effective_config` names the default
    if isinstance(place, Path) and not place.exists():
        raise StoreError(f"there is no store at {place} yet: a gateway makes it when it starts")
    return config, place


def with_store(file: Path | None, work: Callable[[Store, Config], Awaitable[T]]) -> T:
    """The result of `work` with the store of the config, which exists already. Closes the store."""
    config, place = _config(file)

    async def run() -> T:
        store = open_store(place, retention=retention_of(config), fallback=False)
        try:
            return await work(store, config)
        finally:
            await store.close()

    return event_loop.run(run())


def status(file: Path | None, *, as_json: bool) -> str:
    _, place = _config(file)
    found = store_status(place)
    if as_json:
        return msgspec.json.encode(found).decode()
    return "\n".join(f"{name:<11}{value}" for name, value in _rows(found))


def _rows(found: StoreStatus) -> list[tuple[str, str]]:
    about = "about " if found.estimated else ""
    todo = f"migrations to do: {found.pending} (dragoman store migrate)" if found.pending else "up to date"
    oldest = datetime.fromtimestamp(found.oldest, UTC).strftime("%Y-%m-%d %H:%M UTC") if found.oldest else "-"
    return [
        ("engine", found.engine),
        ("place", found.place),
        ("tables", f"version {found.version}, {todo}"),
        ("size", f"{found.bytes / 1e6:,.1f} MB"),
        ("receipts", f"{about}{found.receipts:,}"),
        ("oldest", oldest),
        ("entries", f"{about}{found.entries:,} (carried reasoning, stored responses)"),
    ]


def migrate(file: Path | None) -> str:
    _, place = _config(file)
    before = store_status(place)

    async def work(store: Store, config: Config) -> StoreStatus:
        return await store.status()

    after = with_store(file, work)
    if not before.pending:
        return f"The tables are up to date (version {after.version})."
    done = after.version - before.version
    return f"The tables are at version {after.version} now. Migrations done: {done}."


def export(file: Path | None, since: float, before: float, output: Path | None) -> None:
    async def work(store: Store, config: Config) -> None:
        with _opened(output) as target, _Progress() as progress:
            async for receipt in store.export(since, before):
                target.write(_encode(_line(receipt)) + b"\n")
                progress.add()

    with_store(file, work)


_encode = msgspec.json.Encoder().encode


def _line(receipt: Receipt) -> _Line:
    return _Line(
        receipt.id, receipt.at, receipt.key, receipt.team, receipt.session, receipt.upstream, receipt.model,
        receipt.outcome, receipt.input, receipt.output, receipt.cached, receipt.reasoning,
        None if receipt.micros is None else receipt.micros / 1e6,
        msgspec.Raw(receipt.summary or b"null"), msgspec.Raw(receipt.value or b"null"),
    )  # fmt: skip


@contextmanager
def _opened(output: Path | None) -> Generator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    # Receipts are conversations: only this user may read them.
    with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        yield target


class _Progress:
    """Counts receipts on stderr: once a second on a terminal, and at the end."""

    def __init__(self) -> None:
        self._count = 0
        self._shown = time.monotonic()
        self._live = sys.stderr.isatty()

    def add(self) -> None:
        self._count += 1
        if self._live and time.monotonic() - self._shown > _PROGRESS:
            self._shown = time.monotonic()
            click.echo(f"\r{self._count:,} receipts", err=True, nl=False)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        start = "\r" if self._live else ""
        end = " before the error" if failed else ""
        click.echo(f"{start}Receipts exported{end}: {self._count:,}.", err=True)


def prune(file: Path | None) -> str:
    async def work(store: Store, config: Config) -> str:
        pruned = await store.prune()
        recordings = 0
        if config.server.record is not None and config.server.record.is_dir():
            # A recording that a running gateway still writes was changed a moment ago, so it is the newest.
            recordings = prune_recordings(config.server.record, recording_limits(config), time.time(), ())
        failures = failures_folder(config.server.store)
        if failures is not None and failures.is_dir():
            recordings += prune_recordings(failures, failure_limits(config), time.time(), ())
        return (
            f"Deleted: receipts {pruned.receipts:,}, entries {pruned.entries:,}, recordings {recordings:,}."
        )

    return with_store(file, work)
