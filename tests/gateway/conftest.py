"""Fixtures of the gateway tests."""

import logging
from collections.abc import Iterator

import pytest
from support.scripted_upstream import ScriptedUpstream, in_background


@pytest.fixture
def log_put_back() -> Iterator[None]:
    """Restore Dragoman's logger after a test that configures it."""
    root = logging.getLogger("dragoman")
    before = (root.handlers[:], root.level, root.propagate)
    yield
    root.handlers[:], level, root.propagate = before
    root.setLevel(level)


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served
