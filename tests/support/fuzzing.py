"""Runs laws and fuzzers: on a small fixed set of inputs in a test run, on random ones on request.

`DRAGOMAN_FUZZ_SECONDS` (make fuzz) is the time per fuzzer; `LAWS` is the number of examples per law.
"""

import os
import random
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

SECONDS = float(os.environ.get("DRAGOMAN_FUZZ_SECONDS", "0"))
LAWS = int(os.environ.get("LAWS", "0"))


def steady(examples: int) -> settings:
    """Hypothesis settings for a law with this many examples."""
    return settings(
        deadline=None,
        derandomize=not LAWS,
        max_examples=LAWS or examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


_QUIET = settings(
    deadline=None,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


def fuzz(inputs: st.SearchStrategy[Any], survive: Callable[[Any], None], examples: int) -> None:
    """Call `survive` with many `inputs`. Any exception is a failure."""
    if not SECONDS:
        _attempt(inputs, survive, settings(_QUIET, max_examples=examples, derandomize=True))
        return
    over = time.monotonic() + SECONDS
    while time.monotonic() < over:
        number = random.getrandbits(32)
        _attempt(inputs, survive, settings(_QUIET, max_examples=500), number)


def _attempt(
    inputs: st.SearchStrategy[Any],
    survive: Callable[[Any], None],
    how: settings,
    number: int | None = None,
) -> None:
    @how
    @given(inputs)
    def attempt(value: Any) -> None:
        survive(value)

    (attempt if number is None else seed(number)(attempt))()
