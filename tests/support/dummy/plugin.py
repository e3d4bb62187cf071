"""For `pytest -p support.dummy.plugin`: registers the dummy protocol before tests are collected."""

from contextlib import ExitStack

from .. import sample_streams
from . import NAME, registered, samples

_registered = ExitStack()
_registered.enter_context(registered())
sample_streams.SAMPLES[NAME] = sample_streams.samples_of(samples)
sample_streams.ERRORS[NAME] = sample_streams.error_of(samples)


def pytest_unconfigure() -> None:
    _registered.close()
