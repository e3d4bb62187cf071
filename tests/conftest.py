"""Tests import their helpers as `support.…`, from any folder, and are the same in every run."""

import asyncio
import os
import sys
from pathlib import Path

from hypothesis import settings

from dragoman.gateway import event_loop

sys.path.insert(0, str(Path(__file__).parent))

# Fresh inputs are for `make fuzz` and `LAWS=…`; a test run must say the same twice.
settings.register_profile("steady", derandomize=True, deadline=None)
if not (os.environ.get("DRAGOMAN_FUZZ_SECONDS") or os.environ.get("LAWS")):
    settings.load_profile("steady")

# On the event loop that the gateway runs on. `make test` also runs what touches it on asyncio's own.
asyncio.run = event_loop.run
