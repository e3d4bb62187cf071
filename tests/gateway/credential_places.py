"""Every credential source with a common way to rotate and break it, and helpers to watch it."""

import asyncio
import json
import logging
import os
import sqlite3
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.credentials import (
    CachedCredential,
    CredentialError,
    CredentialSource,
    CredentialSpec,
    Token,
    open_credential,
    parse,
)
from dragoman.credentials.base import Reading, ReadProblem

NOW = 1_800_000_000.0
PACKAGE = Path(dragoman.__file__).parent


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def age(*paths: Path) -> None:
    """Make a file look old, so that its `stat` can be trusted."""
    for path in paths:
        if path.exists():
            stat = path.stat()
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - 3_600_000_000_000))


@dataclass
class Place:
    """A credential and the other program that writes it."""

    spec: CredentialSpec
    rotate: Callable[[str], None]
    spoil: Callable[[], None]
    clock: Clock
    environment: dict[str, str]
    announces: bool = True
    """The change check shows a rotation."""
    reads: int = 0
    close: Callable[[], None] = lambda: None

    def open(self) -> CachedCredential:
        source = open_credential(
            self.spec,
            name="upper",
            environment=self.environment,
            clock=self.clock,
            monotonic=self.clock,
        )
        assert isinstance(source, CachedCredential)
        reader = source._reader
        read = reader.read

        async def counted(*, force: bool) -> Reading | ReadProblem:
            self.reads += 1
            return await read(force=force)

        reader.read = counted  # type: ignore[method-assign]
        return source


def env(folder: Path) -> Place:
    variables: dict[str, str] = {}
    spec = CredentialSpec(kind="env", name="UPPER_KEY")

    def rotate(token: str) -> None:
        variables["UPPER_KEY"] = token + "\n"

    return Place(spec, rotate, variables.clear, Clock(), variables)


def _file(folder: Path, spec: CredentialSpec, text: Callable[[str], str]) -> Place:
    path = folder / "key"

    def rotate(token: str) -> None:
        path.write_text(text(token))
        age(path)

    return Place(spec, rotate, path.unlink, Clock(), {})


def file(folder: Path) -> Place:
    return _file(
        folder, CredentialSpec(kind="file", path=str(folder / "key")), lambda token: f"\ufeff{token}\n"
    )


def json_file(folder: Path) -> Place:
    spec = CredentialSpec(kind="file", path=str(folder / "key"), field="login.token")
    return _file(folder, spec, lambda token: json.dumps({"login": {"token": token}}))


def oauth(folder: Path) -> Place:
    spec = CredentialSpec(kind="oauth", path=str(folder / "key"))
    return _file(folder, spec, lambda token: json.dumps({"access_token": token, "refresh_token": "r"}))


def command(folder: Path) -> Place:
    script = "import sys; sys.stderr.write(open(sys.argv[1]).read()); print(open(sys.argv[1]).read())"
    spec = CredentialSpec(
        kind="command", command=(sys.executable, "-SIc", script, str(folder / "key")), ttl=600
    )
    place = _file(folder, spec, str)
    place.announces = False
    return place


def sqlite(folder: Path) -> Place:
    path = folder / "state.vscdb"
    database = state_file(path)
    spec = CredentialSpec(kind="sqlite", path=str(path), key="antigravityAuthStatus", field="apiKey")

    def rotate(token: str) -> None:
        store(database, token)
        age(path, Path(f"{path}-wal"), Path(f"{path}-shm"))

    def spoil() -> None:
        database.execute("DELETE FROM ItemTable")

    return Place(spec, rotate, spoil, Clock(), {}, close=database.close)


PLACES = {"env": env, "file": file, "json": json_file, "command": command, "sqlite": sqlite, "oauth": oauth}


def state_file(path: Path) -> sqlite3.Connection:
    """A state file of VS Code and its forks."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    database.execute("INSERT INTO ItemTable VALUES ('workbench.theme', 'dark')")
    return database


def store(database: sqlite3.Connection, token: str) -> None:
    value = json.dumps({"name": "A", "apiKey": token, "email": "a@example.com"}).encode()
    database.execute("INSERT INTO ItemTable VALUES ('antigravityAuthStatus', ?)", (value,))


def revealed(token: Token) -> str:
    assert token.secret is not None
    return token.secret.reveal()


def opened(
    written: str | Mapping[str, Any],
    clock: Clock | None = None,
    environment: Mapping[str, str] = os.environ,
) -> CredentialSource:
    clock = clock or Clock()
    return open_credential(
        parse(written), name="upper", environment=environment, clock=clock, monotonic=clock
    )


def read(source: CredentialSource, *, force: bool = False) -> tuple[str, float | None]:
    token = asyncio.run(source.token(force=force))
    assert token.secret is not None
    return token.secret.reveal(), token.expires


def problem(source: CredentialSource) -> str:
    with pytest.raises(CredentialError) as caught:
        asyncio.run(source.token())
    return caught.value.message.partition("has no usable credential: ")[2]


class LogCollector(logging.Handler):
    """A log handler that keeps every record, formatted with its traceback."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record) + repr(record.args))

    def having(self, text: str) -> list[str]:
        return [line for line in self.lines if text in line]


def full_report(error: BaseException) -> str:
    """An error with its contexts and the variables of our frames, as an error reporter would show it."""
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    for frame in told.stack:
        if not Path(frame.filename).is_relative_to(PACKAGE):  # the checkout may be named dragoman, too
            frame.locals = None  # a test knows the secret
    hidden = error.__context__
    return "".join(told.format()) + repr(error) + (full_report(hidden) if hidden is not None else "")
