"""In which order the bench measures, and how long a round is."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from bench import scenarios
from bench.__main__ import Measurement
from bench.processes import ROOT, Running
from bench.scenarios import Figures, Scenario
from bench.session import Bench, WrongAnswer
from bench.subjects import Subject


def not_started(folder: Path, upstream: int) -> Running:
    pytest.fail("there is nothing to start")


ONE = Subject(name="one", start=not_started, pairs={})


def noted(name: str, log: list[str]) -> Callable[[Bench, Subject], Figures]:
    def measure(bench: Bench, subject: Subject) -> Figures:
        log.append(name)
        return {name: float(len(log))}

    return measure


def test_rounds_are_taken_in_turns_and_those_that_start_anew_come_last() -> None:
    log: list[str] = []
    measured = Measurement(cast(Bench, None), (ONE,))
    given = [
        Scenario(name=name, pair=("", ""), measure=noted(name, log), rounds=rounds, anew=anew)
        for name, rounds, anew in [("crowd", 2, True), ("a", 3, False), ("start", 1, True), ("b", 2, False)]
    ]
    measured.run(given, None)
    assert log == ["a", "b", "a", "b", "a", "crowd", "crowd", "start"]
    assert measured.samples["a"]["one"] == [1.0, 3.0, 5.0]
    assert measured.done == {"a", "b", "crowd", "start"}
    log.clear()
    measured.run(given, 1)
    assert log == ["a", "b", "crowd", "start"]


class Clock:
    """A process of which every batch takes as long."""

    def __init__(self, batch: float) -> None:
        self._batch = batch
        self._spent = 0.0

    def running(self, subject: Subject) -> "Clock":
        return self

    def cpu(self) -> float:
        return self._spent

    def measure(self, bench: Bench, subject: Subject) -> Figures:
        self._spent += self._batch
        return {"S5": self._spent}


@pytest.mark.parametrize(("batch", "figure"), [(0.01, 0.035), (0.2, 0.4), (3.0, 3.0)])
def test_a_round_of_long_conversations_is_several_batches_but_not_for_ever(
    batch: float, figure: float
) -> None:
    clock = Clock(batch)
    measure = scenarios._batches(clock.measure)  # pyright: ignore[reportPrivateUsage]
    assert measure(cast(Bench, clock), ONE)["S5"] == pytest.approx(figure)


def test_what_is_said_of_a_failure_does_not_tell_where_this_is() -> None:
    def fails(bench: Bench, subject: Subject) -> Figures:
        raise WrongAnswer(f"at run ({ROOT}/node_modules/x.js:1)")

    measured = Measurement(cast(Bench, None), (ONE,))
    measured.run([Scenario(name="S1", pair=("", ""), measure=fails)], 2)
    assert measured.failed == {"S1": {"one": "at run (node_modules/x.js:1)"}}
