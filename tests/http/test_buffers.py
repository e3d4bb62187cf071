"""Memory for long bodies is used again, by whoever comes next, as soon as nobody looks into it."""

import weakref

import pytest

from dragoman.http.server.buffers import Buffers

SIZE = 200_000


class Body(bytearray):
    """One that can be watched."""


def test_one_that_came_free_is_used_again_though_many_are_held() -> None:
    buffers = Buffers()
    held = [buffers.take(SIZE + number) for number in range(40)]
    free = id(held.pop(0))
    assert id(buffers.take(SIZE)) == free


def test_none_is_given_twice() -> None:
    buffers = Buffers()
    held = [buffers.take(SIZE) for _ in range(40)]
    held += [buffers.take(SIZE) for _ in range(40)]
    assert len(set(map(id, held))) == 80


@pytest.mark.parametrize("part", [slice(0, 1), slice(SIZE - 1, SIZE), slice(5, 5)])
def test_a_view_of_the_least_part_of_it_keeps_it(part: slice) -> None:
    buffers = Buffers()
    body = buffers.take(SIZE)
    view = memoryview(body)[part]
    held = id(body)
    del body
    other = buffers.take(SIZE)
    assert id(other) != held
    del view
    assert id(buffers.take(SIZE)) == held


def test_what_nobody_needs_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.http.server.buffers.bytearray", Body, raising=False)
    buffers = Buffers()
    held = [buffers.take(SIZE) for _ in range(40)]
    watched = [weakref.ref(body) for body in held]
    held.clear()
    assert all(body() is not None for body in watched)  # they may be needed again
    other = [buffers.take(2 * SIZE), buffers.take(2 * SIZE)]
    assert len(other) == 2
    left = [body for body in watched if body() is not None]
    assert 0 < len(left) <= 8
