"""The JSON scanner finds the end of the first value for every chunking."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.jsonscan import JsonScanner

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def scan(pieces: list[str]) -> JsonScanner:
    scanner = JsonScanner()
    for piece in pieces:
        scanner.feed(piece)
    return scanner


@pytest.mark.parametrize(
    ("text", "state", "end"),
    [
        ("", "empty", 0),
        (" \n", "empty", 2),
        ("{", "open", 1),
        ('{"a": "}"', "open", 9),
        ('{"a": "}"}', "complete", 10),
        ('{"a": 1} and more', "complete", 8),
        ("{}{", "complete", 2),
        ('["\\"]"]', "complete", 7),
        ('"a\\\\" b', "complete", 5),
        ("12", "open", 2),
        ("12 ", "complete", 2),
        ("null,", "complete", 4),
        ('{"a": [1}', "broken", 9),
        ("hello", "broken", 0),
        ("]", "broken", 0),
    ],
)
def test_states(text: str, state: str, end: int) -> None:
    for pieces in ([text], list(text)):
        scanner = scan(pieces)
        assert (scanner.state, scanner.end) == (state, end)


@given(value=values, rest=st.text(), data=st.data())
def test_first_value_is_found_in_any_pieces(value: object, rest: str, data: st.DataObject) -> None:
    text = json.dumps({"value": value})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text + rest)))))
    pieces = [(text + rest)[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    scanner = scan(pieces)
    assert scanner.state == "complete"
    assert scanner.end == len(text)


@given(value=values, data=st.data())
def test_prefix_is_never_complete(value: object, data: st.DataObject) -> None:
    text = json.dumps([value])
    cut = data.draw(st.integers(1, len(text) - 1))
    assert scan(list(text[:cut])).state == "open"


def test_open_brackets_can_be_named() -> None:
    assert scan(['{"a": [{"b": 1']).closers() == "}]}"
    assert scan(['{"a": "b']).closers() is None


def test_cost_is_linear() -> None:
    def cost(size: int) -> float:
        text = json.dumps({"a": ['x"y' * 10] * (size // 50)})
        pieces = [text[i : i + 4] for i in range(0, len(text), 4)]
        start = time.process_time()
        scan(pieces)
        return time.process_time() - start

    small = min(cost(1 << 17) for _ in range(3))
    assert min(cost(1 << 19) for _ in range(3)) < small * 8
