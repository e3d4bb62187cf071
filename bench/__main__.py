"""`make bench`: measures Dragoman and the floors alternately, best of several rounds."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from . import budget, growth, limits, store, table
from .growth import STUDIES
from .processes import ROOT
from .scenarios import SCENARIOS, Figures, Scenario
from .session import Bench, WrongAnswer
from .subjects import OURS, Subject

RESULTS = ROOT / "bench" / "results"
_ENOUGH = 3.0
"""Seconds after which no further batch of a round begins."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench ARGS=…", description=__doc__)
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="some scenarios")
    parser.add_argument("--rounds", type=int, help="how often each is measured (default: 5; S6: 3)")
    parser.add_argument(
        "--peers", nargs="*", metavar="NAME", help="beside these, or all, installed if need be"
    )
    parser.add_argument(
        "--growth", nargs="*", choices=STUDIES, metavar="STUDY", help=f"instead: {', '.join(STUDIES)}"
    )
    parser.add_argument(
        "--budget", nargs="?", const="check", choices=["check", "save"],
        help="instead: instructions of a few scenarios beside the saved figures, by valgrind",
    )  # fmt: skip
    parser.add_argument(
        "--store", nargs="?", type=int, const=1_000_000, metavar="RECEIPTS",
        help="instead: limits, and the store on SQLite and PostgreSQL, with a million receipts or this many",
    )  # fmt: skip
    parser.add_argument("--save", metavar="NAME", help="write bench/results/NAME.json; its other rows stay")
    return parser.parse_args()


class Measurement:
    """The rounds and their results."""

    def __init__(self, bench: Bench, subjects: tuple[Subject, ...]) -> None:
        self.samples: table.Samples = {}
        self.failed: dict[str, dict[str, str]] = {}
        self.done: set[str] = set()
        self._bench = bench
        self._subjects = subjects

    @property
    def names(self) -> list[str]:
        return [subject.name for subject in self._subjects]

    def invite(self, names: list[str]) -> None:
        """Add these peers, or all, if they can be installed."""
        from .peers import PEERS
        from .peers.install import install

        for peer in PEERS:
            if names and peer.name not in names:
                continue
            reason = install(peer.name, say)
            if reason:
                self.failed.setdefault("all", {})[peer.name] = reason
            else:
                self._subjects += (peer,)

    def run(self, scenarios: Sequence[Scenario], rounds: int | None) -> None:
        """Measure all scenarios alternately, `rounds` times or as often as each requests.

        A busy minute of the machine then affects no scenario alone. Scenarios that restart processes come
        last, one by one.
        """
        together = [scenario for scenario in scenarios if not scenario.anew]
        for several in (together, *([scenario] for scenario in scenarios if scenario.anew)):
            for number in range(max((rounds or one.rounds for one in several), default=0)):
                for scenario in several:
                    wanted = rounds or scenario.rounds
                    if number < wanted:
                        self._round(scenario)
                        say(f"{scenario.name}: round {number + 1} of {wanted}")

    def _round(self, scenario: Scenario) -> None:
        """One figure per subject. Their batches alternate, so that other load on the machine affects all."""
        self.done.add(scenario.name)
        if scenario.direct is not None:
            self._note(table.DIRECT, scenario.direct(self._bench))
        batches: dict[str, list[Figures]] = {subject.name: [] for subject in self._subjects}
        seconds = dict.fromkeys(batches, 0.0)
        for _ in range(scenario.batches):
            for subject in self._subjects:
                if self._takes_part(subject, scenario) and seconds[subject.name] < _ENOUGH:
                    begun = time.monotonic()
                    batches[subject.name] += self._once(scenario, subject)
                    seconds[subject.name] += time.monotonic() - begun
        failed = self.failed.get(scenario.name, {})
        for who, figures in batches.items():
            if figures and who not in failed:
                self._note(who, {row: fmean(one[row] for one in figures) for row in figures[0]})

    def _takes_part(self, subject: Subject, scenario: Scenario) -> bool:
        able = not scenario.pair[0] or scenario.pair in subject.pairs
        return able and subject.name not in self.failed.get(scenario.name, {})

    def _once(self, scenario: Scenario, subject: Subject) -> list[Figures]:
        """The figures of one batch, or None if it failed."""
        try:
            return [scenario.measure(self._bench, subject)]
        except (WrongAnswer, RuntimeError) as error:
            # Some errors contain local paths.
            why = str(error).replace(f"{ROOT}/", "")
            self.failed.setdefault(scenario.name, {})[subject.name] = why
            return []

    def _note(self, who: str, figures: Figures) -> None:
        for row, value in figures.items():
            self.samples.setdefault(row, {}).setdefault(who, []).append(value)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(measured: Measurement, before: dict[str, Any]) -> dict[str, object]:
    """The results for a file: ratios, figures of all rounds, no trace of the machine.

    Rows that were not measured now stay as they were.
    """
    samples: table.Samples = {**before.get("rounds", {}), **measured.samples}
    rows = [
        {
            "name": one.row.name,
            "title": one.row.title,
            "unit": one.row.unit,
            "values": {who: round(value, 3) for who, value in one.values.items()},
            "floor": one.row.floor,
            "ratio": one.ratio and round(one.ratio, 3),
            "target": one.row.most,
            "met": one.met,
            "group": one.row.group,
        }
        for one in table.lines(samples)
    ]
    rounds = {
        row: {who: [round(value, 3) for value in values] for who, values in ones.items()}
        for row, ones in samples.items()
    }
    failed = {name: ones for name, ones in before.get("failed", {}).items() if name not in measured.done}
    return {
        "python": platform.python_version(),
        "rows": rows,
        "rounds": rounds,
        "failed": {**failed, **measured.failed},
    }


def main() -> None:
    options = arguments()
    if options.budget:
        budget.main(options.budget)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops all processes
    if options.store:
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(Bench(Path(folder))) as bench:
            print(limits.text(limits.run(bench, say)))
        figures = store.run(options.store, say)
        print(store.text(figures))
        if options.save:
            save(options.save, figures)
        return
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Bench(Path(folder))) as bench:
        if options.growth is None:
            _compare(bench, options)
        else:
            _grow(bench, options)


def _compare(bench: Bench, options: argparse.Namespace) -> None:
    measured = Measurement(bench, OURS)
    if options.peers is not None:
        measured.invite(options.peers)
    measured.run([scenario for scenario in SCENARIOS if scenario.name in options.only], options.rounds)
    print(table.text(measured.samples, measured.names, measured.failed))
    if os.getloadavg()[1] > 1.5 * (os.cpu_count() or 1):
        print("This machine is busy with other things: delays and times to start mean little.")
    if options.save:
        file = RESULTS / f"{options.save}.json"
        before = msgspec.json.decode(file.read_bytes()) if file.exists() else {}
        save(options.save, report(measured, before))


def _grow(bench: Bench, options: argparse.Namespace) -> None:
    studies = growth.run(bench, options.growth, say)
    print(growth.text(studies))
    if options.save:
        save(options.save, studies)


def save(name: str, what: object) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(what), indent=1) + b"\n")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
