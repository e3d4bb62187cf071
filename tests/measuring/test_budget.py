"""The budget's scenarios run, and one that costs more is reported. `make bench` counts instructions."""

import shutil

import msgspec
import pytest

from bench import budget
from bench.budget import FIGURES, SCENARIOS, Figures, over


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_runs_and_has_a_saved_figure(name: str) -> None:
    next(SCENARIOS[name][1])()
    assert name in msgspec.json.decode(FIGURES.read_bytes(), type=Figures).instructions


def test_a_scenario_that_costs_a_quarter_more_is_reported() -> None:
    saved = Figures("3.11", {"one": 1000, "two": 1000})
    said = over({"one": 1250, "two": 1251, "three": 1}, saved)
    assert said == ["two: 1,251 instructions where 1,000 were enough", "three: has no saved figure"]


def test_without_valgrind_the_command_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SystemExit, match="apt install valgrind"):
        budget.main("check")
