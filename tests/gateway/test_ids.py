"""The ids of exchanges."""

import os
import re

import pytest

from dragoman.gateway.ids import new_id


def test_ids_are_unique() -> None:
    drawn = [new_id() for _ in range(1000)]
    assert len(set(drawn)) == 1000
    assert all(re.fullmatch("[0-9a-f]{16}", id) for id in drawn)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="here no process is made by a fork")
def test_a_forked_process_has_different_ids() -> None:
    new_id()  # fills the pool of ids before the fork
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, " ".join(_some()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        theirs = pipe.read().split()
    os.waitpid(child, 0)
    assert len(theirs) == 100
    assert set(theirs).isdisjoint(_some())


def _some() -> list[str]:
    return [new_id() for _ in range(100)]
