"""No stage of the core costs clearly more than it did: counted, not timed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.micro import counts
from bench.micro.counts import Budget, Count, counted, over
from bench.micro.work import Work

ROOT = Path(__file__).parents[2]


def test_every_stage_keeps_its_budget() -> None:
    # In a process of its own: what other tests left in the caches would be counted, and coverage also traces.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    words = [sys.executable, "-m", "bench.micro", "--check"]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_one_more_step_in_an_event_is_counted() -> None:
    lean = Work("lean", "event", 10, lambda: [None for number in range(10)])
    fat = Work("fat", "event", 10, lambda: [abs(number) for number in range(10)])
    assert counted(fat).steps > counted(lean).steps
    assert counted(fat).calls == counted(lean).calls + 1


def test_a_byte_more_at_once_is_counted() -> None:
    lean = Work("lean", "event", 1, lambda: bytes(10_000))
    fat = Work("fat", "event", 1, lambda: (bytes(10_000), bytes(10_000)))
    assert counted(fat).bytes >= counted(lean).bytes + 10_000


def test_what_is_prepared_is_not_counted() -> None:
    made: list[int] = []
    work = Work("work", "event", 1, made.clear, lambda: made.extend(range(1000)))
    assert counted(work).calls == counted(Work("work", "event", 1, made.clear)).calls
    assert made == []


def test_what_costs_more_is_named() -> None:
    allowed = Budget("3.11", {name: Count(100, 10, 1000) for name in ("SSE", "JSON", "arguments")})
    steps, bytes = allowed.slack("steps"), allowed.slack("bytes")
    found = {
        "SSE": Count(100 * steps + 1, 10, 1000),
        "JSON": Count(100 * steps - 1, 5, 1000 * bytes - 1),
        "arguments": Count(100, 10, 1000 * bytes + 1),
        "new": Count(1, 1, 1),
    }
    assert [line.split(":")[0] for line in over(found, allowed)] == ["SSE", "arguments", "new"]


def test_a_new_budget_changes_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "BUDGET", tmp_path / "budget.json")
    counts.write({"SSE": Count(100, 10, 1000), "JSON": Count(100, 10, 1000), "gone": Count(1, 1, 1)})
    counts.write({"SSE": Count(101, 10, 1000), "JSON": Count(101, 9, 1000), "new": Count(1, 1, 1)})
    assert counts.budget().counts == {
        "SSE": Count(100, 10, 1000),
        "JSON": Count(101, 9, 1000),
        "new": Count(1, 1, 1),
    }
