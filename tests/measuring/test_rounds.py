"""The order and length of the bench's rounds."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

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


def test_rounds_alternate_and_restarting_subjects_come_last() -> None:
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
    """A clock on which every batch of a subject takes a fixed time."""

    def __init__(self, **batches: float) -> None:
        self.log: list[str] = []
        self._batches = batches
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def measure(self, bench: Bench, subject: Subject) -> Figures:
        self.log.append(subject.name)
        self._now += self._batches[subject.name]
        return {"S5": float(self.log.count(subject.name))}


def test_batches_alternate_and_a_slow_subject_gets_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(quick=0.01, slow=2.0, slowest=9.0)
    monkeypatch.setattr("bench.__main__.time", clock)
    subjects = tuple(Subject(name=name, start=not_started, pairs={}) for name in ("quick", "slow", "slowest"))
    measured = Measurement(cast(Bench, None), subjects)
    measured.run([Scenario(name="S5", pair=("", ""), measure=clock.measure, batches=4)], 1)
    assert clock.log == ["quick", "slow", "slowest", "quick", "slow", "quick", "quick"]
    assert measured.samples == {"S5": {"quick": [2.5], "slow": [1.5], "slowest": [1.0]}}


def test_a_subject_that_fails_in_a_later_batch_has_no_figure() -> None:
    log: list[str] = []

    def measure(bench: Bench, subject: Subject) -> Figures:
        log.append(subject.name)
        if len(log) == 2:
            raise WrongAnswer("half an answer")
        return {"S5": 1.0}

    measured = Measurement(cast(Bench, None), (ONE,))
    measured.run([Scenario(name="S5", pair=("", ""), measure=measure, batches=4)], 3)
    assert log == ["one", "one"]
    assert measured.samples == {}
    assert measured.failed == {"S5": {"one": "half an answer"}}


def test_a_failure_message_hides_local_paths() -> None:
    def fails(bench: Bench, subject: Subject) -> Figures:
        raise WrongAnswer(f"at run ({ROOT}/node_modules/x.js:1)")

    measured = Measurement(cast(Bench, None), (ONE,))
    measured.run([Scenario(name="S1", pair=("", ""), measure=fails)], 2)
    assert measured.failed == {"S1": {"one": "at run (node_modules/x.js:1)"}}
