"""No stage of the core costs clearly more than it did: counted, not timed."""

import os
import subprocess
import sys
from pathlib import Path

from bench.micro.counts import Budget, Count, counted, over
from bench.micro.works import Work

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


def test_what_costs_more_is_named() -> None:
    allowed = Budget("3.11", {"SSE": Count(100, 10), "JSON": Count(100, 10)})
    found = {"SSE": Count(100 * allowed.slack + 1, 10), "JSON": Count(100 * allowed.slack - 1, 5)}
    assert [line.split(":")[0] for line in over(found, allowed)] == ["SSE"]
