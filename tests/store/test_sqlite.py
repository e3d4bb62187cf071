"""The contract of the store, over SQLite."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.store_contract import *  # noqa: F403 - every test of the contract

from dragoman.store import Store, open_store


@pytest.fixture(params=["file", "memory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Store]:
    memory: list[Store] = []

    def one(**options: Any) -> Store:
        options = {"now": Clock(), **options}  # noqa: F405
        if request.param == "file":
            return open_store(tmp_path / "store.db", fallback=False, **options)
        # A store in memory belongs to one process: both names mean the same store.
        if not memory:
            memory.append(open_store(None, **options))
        return memory[0]

    return one
