"""The result of a run, law by law, as JSON and as an exit code for CI. `table` prints it for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .laws import Breach, Law
from .trial import BROKEN, KEPT, NOTED, SKIPPED, Trial

UNSEEN = "unseen"
"""No answer tested the law."""

ALL_KEPT, LAWS_BROKEN, COULD_NOT_RUN = 0, 1, 2


@dataclass(slots=True)
class LawResult:
    """One law over all trials: how often it was kept and broken, and the first breach."""

    law: Law
    kept: int = 0
    broken: int = 0
    noted: int = 0
    first: tuple[Trial, Breach] | None = None

    def add(self, trial: Trial) -> None:
        found = [broken for broken in trial.complaints.found if broken.law == self.law]
        if not found:
            self.kept += 1
            return
        firm = trial.firmly(found[0])
        # Prefer to show a firm breach: only that one changes the exit code.
        if self.first is None or (firm and not self.broken):
            self.first = (trial, found[0])
        if firm:
            self.broken += 1
        else:
            self.noted += 1

    @property
    def state(self) -> str:
        if self.broken:
            return BROKEN
        if self.noted:
            return NOTED
        return KEPT if self.kept else UNSEEN


@dataclass(slots=True)
class ConformanceReport:
    """The result of a run. `problem` says why some or all trials could not be judged."""

    url: str
    protocol: str
    model: str
    mode: str
    laws: list[Law]
    strict: bool = False
    trials: list[Trial] = field(default_factory=list[Trial])
    problem: str = ""

    def rows(self) -> list[LawResult]:
        """One row per law that the trials can test."""
        rows = {law: LawResult(law) for law in self.laws}
        for trial in self.trials:
            for law in trial.complaints.seen:
                rows[law].add(trial)
        return list(rows.values())

    def count(self, state: str) -> int:
        return sum(trial.state == state for trial in self.trials)

    @property
    def exit_code(self) -> int:
        bad = (BROKEN, NOTED) if self.strict else (BROKEN,)
        if any(trial.state in bad for trial in self.trials):
            return LAWS_BROKEN
        judged = len(self.trials) - self.count(SKIPPED)
        return COULD_NOT_RUN if self.problem or not judged else ALL_KEPT

    @property
    def summary(self) -> str:
        rows = self.rows()
        counts = {state: sum(row.state == state for row in rows) for state in (KEPT, BROKEN, NOTED, UNSEEN)}
        laws = f"{_counted(counts[KEPT], 'law')} kept, {counts[BROKEN]} broken"
        laws += f", {counts[NOTED]} noted" if counts[NOTED] else ""
        laws += f", {counts[UNSEEN]} not seen" if counts[UNSEEN] else ""
        skipped = f", {self.count(SKIPPED)} skipped" if self.count(SKIPPED) else ""
        return f"{laws}; {_counted(len(self.trials), 'trial')}{skipped}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def as_json(report: ConformanceReport) -> dict[str, Any]:
    """The report for programs."""
    return {
        "url": report.url,
        "protocol": report.protocol,
        "model": report.model,
        "mode": report.mode,
        "exit_code": report.exit_code,
        "problem": report.problem or None,
        "summary": report.summary,
        "laws": [
            {
                "name": row.law.name,
                "says": row.law.says,
                "firm": row.law.firm,
                "state": row.state,
                "kept": row.kept,
                "broken": row.broken,
                "noted": row.noted,
                "first": _breach(*row.first) if row.first else None,
            }
            for row in report.rows()
        ],
        "trials": [
            {
                "name": trial.name,
                "says": trial.says,
                "state": trial.state,
                "skipped": trial.skipped or None,
                "seconds": round(trial.seconds, 3),
                "breaches": [_breach(trial, broken) for broken in trial.complaints.found],
            }
            for trial in report.trials
        ],
    }


def _breach(trial: Trial, broken: Breach) -> dict[str, Any]:
    return {
        "law": broken.law.name,
        "trial": trial.name,
        "place": broken.place,
        "why": broken.text,
        "offset": broken.offset,
        "bytes": broken.excerpt.decode("utf-8", "backslashreplace"),
    }
