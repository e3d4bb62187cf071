"""What tests of several rooms of the gateway borrow, they give back."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def log_put_back() -> Iterator[None]:
    """Dragoman's log as it was, whatever a test sets up."""
    root = logging.getLogger("dragoman")
    before = (root.handlers[:], root.level, root.propagate)
    yield
    root.handlers[:], level, root.propagate = before
    root.setLevel(level)
