"""`python -m bench.micro`: what each stage of the core costs, as times, counts or machine instructions."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time

import msgspec

from . import counts
from .work import Work
from .works import works

ROUNDS = 7
_FEW, _AGAIN = 5, 20
_REFERENCE = msgspec.json.encode({"choices": [{"index": 0, "delta": {"content": "word "}}], "id": "x" * 80})


def reference() -> None:
    """The least a translated event costs: one frame's JSON read and written again."""
    for _ in range(60):
        msgspec.json.encode(msgspec.json.decode(_REFERENCE))


def best(*works: Work) -> list[float]:
    """The best CPU time of each, in µs per unit, taken in turns."""
    times = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            spent = 0.0
            for _ in range(_AGAIN):
                work.prepare()
                start = time.process_time()
                work.run()
                spent += time.process_time() - start
            times[number] = min(times[number], spent / _AGAIN / work.units * 1e6)
    return times


def show_times() -> None:
    print("CPU per unit, and beside one small frame read and written by msgspec")
    floor = Work("reference", "event", 60, reference)
    for work in works():
        least, cost = best(floor, work)
        print(f"  {work.name:36} {cost:8.2f} µs per {work.per:9} {cost / least:6.1f} x")


def show_counts(*, save: bool) -> None:
    found = counts.counts()
    allowed = found if save else counts.budget().counts
    print(f"  {'':40} {'steps':>8} {'calls':>8} {'bytes':>8}   of the budget's")
    for name, count in found.items():
        most = allowed.get(name, count)
        shares = " ".join(f"{one / of:5.2f}" for one, of in zip(_figures(count), _figures(most), strict=True))
        print(f"  {name:40} {count.steps:8g} {count.calls:8g} {count.bytes:8g}   {shares}")
    if save:
        counts.write(found)


def _figures(count: counts.Count) -> tuple[float, ...]:
    return msgspec.structs.astuple(count)


def check() -> None:
    said = counts.over(counts.counts(), counts.budget())
    if said:
        hint = "Worth it? `python -m bench.micro --counts --write` makes it the budget."
        sys.exit("\n".join([*said, hint]))


def show_instructions() -> None:
    """Machine instructions per unit, from two runs of different length: what starting and preparing costs
    cancels out."""
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed: --counts needs nothing")
    _instructions("SSE", 1)  # compiles what is not compiled yet
    for work in works():
        few, many = (_instructions(work.name, times) for times in (_FEW, _FEW + _AGAIN))
        each = (many - few) / _AGAIN / work.units
        print(f"  {work.name:36} {each:8,.0f} instructions per {work.per}", flush=True)


def _instructions(name: str, times: int) -> int:
    tool = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    command = [*tool, sys.executable, "-m", "bench.micro", "--run", name, "--times", str(times)]
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found = re.search(r"I +refs: +([\d,]+)", done.stderr)
    assert found, done.stderr
    return int(found[1].replace(",", ""))


def run(name: str, times: int) -> None:
    work = next(work for work in works() if work.name == name)
    for number in range(max(times, _FEW + _AGAIN)):
        work.prepare()
        if number < times:
            work.run()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.micro", description=__doc__)
    parser.add_argument(
        "--counts", action="store_true", help="bytecode instructions, calls and memory: always the same"
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="with --counts: make them the budget",
    )
    parser.add_argument("--check", action="store_true", help="fail where a stage costs more than its budget")
    parser.add_argument("--instructions", action="store_true", help="machine instructions, by valgrind; slow")
    parser.add_argument("--run", metavar="NAME", help="only run one stage")
    parser.add_argument("--times", type=int, default=1, help="with --run: how often")
    options = parser.parse_args()
    if options.run:
        run(options.run, options.times)
    elif options.instructions:
        show_instructions()
    elif options.counts or options.write:
        show_counts(save=options.write)
    elif options.check:
        check()
    else:
        show_times()


if __name__ == "__main__":
    main()
