"""Tests on real servers, by `make test-services`: a default run has none of them."""

import os
from collections.abc import Iterator

import pytest
import services

collect_ignore_glob = [] if os.environ.get("DRAGOMAN_SERVICES") else ["test_*.py"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[services.Postgres]:
    """One PostgreSQL for all tests of this process. A test has a database of its own in it."""
    server = services.Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def pgbouncer(postgres: services.Postgres) -> Iterator[services.PgBouncer]:
    """A pooler in front of `postgres`."""
    server = services.PgBouncer(postgres)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def redis() -> Iterator[services.Redis]:
    """One Valkey or Redis for all tests of this process."""
    server = services.Redis()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def database(postgres: services.Postgres) -> Iterator[str]:
    """The address of a new, empty database. It is dropped: hundreds of them would fill a small disk."""
    url = services.new_database(postgres)
    yield url
    services.drop_database(postgres, url)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a server may take seconds for what else takes a millisecond.

    Without an answer in time a gateway goes on alone. That is right, and not what most tests are about.
    """
    from dragoman.shared import redis
    from dragoman.store.postgres import database, store

    monkeypatch.setattr(store, "_MAX_WAIT", 30.0)
    monkeypatch.setattr(store.PostgresStore._read, "__defaults__", (30.0,))
    monkeypatch.setattr(database, "_CONNECTION_WAIT", 30.0)
    monkeypatch.setattr(redis, "_TIMEOUT", 30.0)
