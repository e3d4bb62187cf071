"""The type of the fixture `serve` of the tests of clouds."""

from contextlib import AbstractContextManager
from typing import Protocol

from .gateways import Gateway


class Serve(Protocol):
    """Serve by a config, until the block is left."""

    def __call__(self, config: str) -> AbstractContextManager[Gateway]: ...
