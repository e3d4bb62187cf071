"""`python -m bench.instructions [KIND …]`: machine instructions of a whole gateway per long request.

Times tell as much of the machine and of who else uses it as of the gateway; these figures are the same in
every run, to a percent. They do not tell how long an instruction waits for memory, nor what the kernel does.
So a ratio is lower than that of times, and only to be compared with itself. Needs valgrind, and half a minute
for each kind.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import msgspec

from .answers import ANTHROPIC, CHAT
from .requests import Talk
from .session import Bench
from .shapes import BRIEF
from .subjects import DRAGOMAN, FLOOR_B, Subject
from .talks import KINDS, PLAIN

_CALLGRIND = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=counted")
_TALKS = 4
_FIRST = 10.0
"""Seconds for what a process does once, after its first answers: valgrind makes it slow."""
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)


class Counter:
    """A gateway under valgrind."""

    def __init__(self, bench: Bench, subject: Subject) -> None:
        self.name = subject.name
        self._bench = bench
        start = partial(subject.start, under=_CALLGRIND)
        self._subject = msgspec.structs.replace(subject, start=start)
        self._running = bench.running(self._subject)
        self._dumps = 0
        self.ask(self.new(PLAIN))
        time.sleep(_FIRST)

    def new(self, kind: str) -> list[Talk]:
        """Conversations that nobody has seen."""
        first = self._bench.seed
        self._bench.seed += _TALKS
        turns = KINDS[kind].turns
        return [Talk(seed, turns, tools=seed, kind=kind) for seed in range(first, first + _TALKS)]

    def ask(self, talks: list[Talk]) -> None:
        pair = (ANTHROPIC, CHAT)
        job = self._bench.job(self._subject, self._running, pair, BRIEF, talks=talks, requests=len(talks))
        self._bench.answered(job)
        self._running.settled_cpu()

    def per_talk(self, talks: list[Talk]) -> float:
        """Instructions per request."""
        self._control("--zero", "--instr=on")
        self.ask(talks)
        self._control("--dump", "--instr=off")
        self._dumps += 1
        found = _TOTAL.search((self._running.folder / f"counted.{self._dumps}").read_text())
        assert found, "valgrind tells no total"
        return int(found[1]) / len(talks)

    def _control(self, *orders: str) -> None:
        for order in orders:
            command = ["callgrind_control", order, str(self._running.pids()[0])]
            subprocess.run(command, check=True, capture_output=True)


def counted(counter: Counter, kind: str) -> tuple[float, float]:
    """Of new conversations, and of those that go on."""
    counter.ask(counter.new(kind))  # what is only done for the first of a kind
    new = counter.new(kind)
    return counter.per_talk(new), counter.per_talk([talk.gone_on() for talk in new])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"some of {', '.join(KINDS)}")
    kinds = parser.parse_args().kinds or list(KINDS)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        parser.error(f"there is no kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed: `make bench` measures times")
    print(f"{'millions of instructions':26} {'B':>8} {'Dragoman':>8}   ratio")
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Bench(Path(folder))) as bench:
        counters = [Counter(bench, subject) for subject in (FLOOR_B, DRAGOMAN)]
        for kind in kinds:
            floor, ours = (counted(counter, kind) for counter in counters)
            for when, least, own in zip(("first", "seen"), floor, ours, strict=True):
                figures = f"{least / 1e6:8.2f} {own / 1e6:8.2f}   {own / least:.2f} x B"
                print(f"{f'{kind} {when}':26} {figures}", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
