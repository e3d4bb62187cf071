"""Counts instead of times: the same in every run, so a regression shows through any noise.

A step is one bytecode instruction; a call is a call of a Python function or of one written in C; bytes are
those that are held at once. Work inside C is only seen by the memory that it takes: `python -m bench.micro
--instructions` sees it, where valgrind is installed.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from .work import Work
from .works import works

BUDGET = Path(__file__).parent / "budget.json"
_SLACK = {"steps": 1.12, "calls": 1.12, "bytes": 1.5}
"""How much memory is held depends a little on what was done before."""
_ALIKE = 0.02
_OTHER_PYTHON = 1.5
"""Bytecode is another in every Python; a bad regression still shows."""
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class Count(msgspec.Struct, frozen=True):
    """Per event, fragment or message."""

    steps: float
    calls: float
    bytes: float


def counted(work: Work) -> Count:
    """What one run costs once everything that is remembered is remembered."""
    for _ in range(3):
        work.prepare()
        work.run()
    # Tables that everybody shares grow by leaps, which fall into a run now and then that is not to blame.
    found = [_least(work, measure, runs) for measure, runs in ((_steps, 1), (_calls, 1), (_bytes, 3))]
    return Count(*(round(one / work.units, 1) for one in found))


def _least(work: Work, measure: Callable[[Callable[[], object]], int], runs: int) -> int:
    found: list[int] = []
    for _ in range(runs):
        work.prepare()
        found.append(measure(work.run))
    return min(found)


def _steps(run: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def _calls(run: Callable[[], object]) -> int:
    count = 0

    def profile(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def _bytes(run: Callable[[], object]) -> int:
    gc.disable()  # it comes when it likes
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()


class Budget(msgspec.Struct, frozen=True):
    """What each work may cost, and in which Python that was counted."""

    python: str
    counts: dict[str, Count]

    def slack(self, what: str) -> float:
        return _SLACK[what] if self.python == _VERSION else _OTHER_PYTHON


def counts() -> dict[str, Count]:
    return {work.name: counted(work) for work in works()}


def budget() -> Budget:
    return msgspec.json.decode(BUDGET.read_bytes(), type=Budget)


def write(found: dict[str, Count]) -> None:
    """A new budget. What hardly changed stays as it was: any change shifts the figures of others a little."""
    before = budget().counts if BUDGET.exists() else {}
    kept = {name: before[name] if _alike(before.get(name), count) else count for name, count in found.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(msgspec.to_builtins(count))}" for name, count in kept.items()]
    BUDGET.write_text(f'{{"python": "{_VERSION}", "counts": {{\n' + ",\n".join(lines) + "\n}}\n")


def _alike(one: Count | None, other: Count) -> bool:
    return one is not None and all(
        abs(getattr(one, what) - getattr(other, what)) <= _ALIKE * getattr(one, what) for what in _SLACK
    )


def over(found: dict[str, Count], allowed: Budget) -> list[str]:
    """What costs clearly more than it may."""
    said: list[str] = []
    for name, count in found.items():
        if name not in allowed.counts:
            said.append(f"{name}: has no budget yet")
            continue
        for what in _SLACK:
            now, most = getattr(count, what), getattr(allowed.counts[name], what)
            if now > most * allowed.slack(what):
                said.append(f"{name}: {now:g} {what} where {most:g} were enough")
    return said
