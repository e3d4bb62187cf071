"""Settings of all tests: helpers are imported as `support.…`, and every run uses the same inputs."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from dragoman.gateway.process import event_loop

if TYPE_CHECKING:
    from support.gateways import Loop

sys.path.insert(0, str(Path(__file__).parent))

# Random inputs are for `make fuzz` and `LAWS=…`. A test run must be reproducible.
settings.register_profile("steady", derandomize=True, deadline=None)
if not (os.environ.get("DRAGOMAN_FUZZ_SECONDS") or os.environ.get("LAWS")):
    settings.load_profile("steady")

# The gateway's event loop. `make test` runs the gateway tests on asyncio's loop, too.
asyncio.run = event_loop.run


@pytest.fixture(autouse=True)
def close_sdk_clients() -> Iterator[None]:
    """Close the SDK clients that a test left open."""
    yield
    if "support.sdk_clients" in sys.modules:
        sys.modules["support.sdk_clients"].close_all()


@pytest.fixture(scope="module")
def loop() -> "Iterator[Loop]":
    from support.gateways import Loop  # imported only by tests that need the gateway

    running = Loop()
    yield running
    running.close()
