"""The contract of the store, over PostgreSQL."""

from collections.abc import Callable
from typing import Any

import pytest
from support.store_contract import *  # noqa: F403 - every test of the contract

from dragoman.credentials.secret import Secret
from dragoman.store import Store, open_store

pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture(params=["direct", "pgbouncer"])
def opened(request: pytest.FixtureRequest, database: str) -> Callable[..., Store]:
    through = request.getfixturevalue("pgbouncer").through if request.param == "pgbouncer" else str
    address = through(database)

    def one(**options: Any) -> Store:
        return open_store(Secret(address), fallback=False, **{"now": Clock(), **options})  # noqa: F405

    return one
