"""Only calls that repeat with the same result are a loop."""

import doctest
import json

from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools import loop_detection
from dragoman.tools.loop_detection import Repetition, Turn, canonical, repeated

A: Turn = ("Read", '{"file_path":"a"}', "text of a")
B: Turn = ("Bash", '{"command":"ls"}', "a")
C: Turn = ("Bash", '{"command":"ls"}', "a b")  # B with another result


def test_one_repeated_call_is_a_loop() -> None:
    assert repeated([B, A, A, A]) == Repetition(3, (A,))
    assert repeated([A, A]) == Repetition(2, (A,))


def test_two_alternating_calls_are_a_loop() -> None:
    assert repeated([A, B, A, B]) == Repetition(2, (A, B))
    assert repeated([C, B, A, B, A, B, A]) == Repetition(3, (B, A))


def test_progress_is_no_repetition() -> None:
    for history in ([], [A], [A, B], [A, A, B], [A, B, A], [B, C], [A, B, C, A, B, C]):
        assert repeated(history) is None


def test_canonical_arguments() -> None:
    assert canonical('{"b": 1, "a": [ 1.0 , "é" ]}') == '{"a":[1.0,"é"],"b":1}'
    assert canonical(' {"a": \n') == '{"a":'
    assert canonical("") == ""
    assert canonical("[" * 100_000) == "[" * 100_000


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())))
def test_equal_arguments_have_one_canonical_form(value: dict[str, object]) -> None:
    shuffled = json.dumps(dict(reversed(value.items())), indent=2)
    assert canonical(shuffled) == canonical(json.dumps(value))
    assert json.loads(canonical(shuffled)) == value
    assert canonical(canonical(shuffled)) == canonical(shuffled)


@given(st.lists(st.sampled_from([A, B, C]), max_size=12))
def test_only_the_end_of_the_history_counts_as_repetition(history: list[Turn]) -> None:
    found = repeated(history)
    if found:
        whole = list(found.turns) * found.count
        assert history[-len(whole) :] == whole
        assert history[-len(whole) - len(found.turns) :] != [*found.turns, *whole]


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(loop_detection).failed == 0
