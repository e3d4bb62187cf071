"""A whole run: any endpoint by real requests, or a gateway by the cases of the corpus."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from ..protocols.common import failures
from . import corpus, corpus_trials, models
from .client import Asker, CouldNotRun, asker
from .compare import LAWS as COMPARE_LAWS
from .laws import Law, judge_of
from .laws import http as http_laws
from .laws.http import Got
from .probes import LAWS as PROBE_LAWS
from .probes import Examination, Probe, examine, probes_of
from .report import Report
from .shape import Json
from .trial import SKIPPED, Trial
from .upstream import CaseUpstream

T = TypeVar("T")
_AT_ONCE = 4

Progress = Callable[[int, int, str], None]
"""Told before every trial: its number, of how many, its name."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says."""

    url: str
    protocol: str
    model: str | None = None
    key: str | None = None
    patience: float = 60.0
    only: tuple[str, ...] = ()
    strict: bool = False
    upstream_port: int | None = None
    upstream_protocols: tuple[str, ...] = ()
    stream: bool = True

    def wants(self, *names: str) -> bool:
        """Is one of these names asked for?"""
        return not self.only or any(fnmatchcase(name, glob) for name in names for glob in self.only)


def chosen_probes(settings: Settings) -> list[Probe]:
    return [probe for probe in probes_of(settings.protocol) if settings.wants(probe.name)]


def chosen_cases(settings: Settings) -> list[Json]:
    """The cases of the upstream protocols asked for, by name or theme."""
    spoken = settings.upstream_protocols
    return [
        case
        for case in corpus.cases()
        if settings.wants(case["id"], case["theme"]) and (not spoken or case["upstream_protocol"] in spoken)
    ]


async def run(settings: Settings, progress: Progress, say: Callable[[str], None]) -> Report:
    """Put the endpoint to all trials that are asked for. `say` is told what the user should do meanwhile."""
    async with asker(settings.url, settings.protocol, settings.key, settings.patience) as endpoint:
        if settings.upstream_port is None:
            return await _examine(settings, endpoint, progress)
        return await _play(settings, endpoint, progress, say)


def could_not(settings: Settings, problem: str) -> Report:
    """The report of a run that never began."""
    mode = "endpoint" if settings.upstream_port is None else "gateway"
    report = _report(settings, settings.model or "", mode, ())
    report.problem = problem
    return report


def _laws(settings: Settings, more: tuple[Law, ...]) -> list[Law]:
    """In the order of the table: the transfer, the protocol, what was said. Each once."""
    judge = judge_of(settings.protocol)
    return list(dict.fromkeys((*http_laws.LAWS, *judge.laws_of_streams, *judge.laws_of_bodies, *more)))


def _report(settings: Settings, model: str, mode: str, laws: tuple[Law, ...]) -> Report:
    return Report(settings.url, settings.protocol, model, mode, _laws(settings, laws), settings.strict)


async def _examine(settings: Settings, endpoint: Asker, progress: Progress) -> Report:
    """One trial after the other: the later ones build on answers to the earlier."""
    probes = _some(chosen_probes(settings))
    model = settings.model or await models.choose(endpoint)
    report = _report(settings, model, "endpoint", PROBE_LAWS)
    examination = Examination(endpoint, model)
    for number, probe in enumerate(probes, 1):
        progress(number, len(probes), probe.name)
        report.trials.append(await examine(examination, probe))
        first = examination.answers.get(probe.name)
        if number == 1 and first is not None and first.status == 404:
            raise CouldNotRun(_not_there(settings, model, first))
    if examination.wants_key:
        wanted = f"the endpoint wants a key ({examination.wants_key})"
        report.problem = f"{wanted}: give one with --key or $DRAGOMAN_CONFORM_KEY"
    return report


def _not_there(settings: Settings, model: str, got: Got) -> str:
    message = failures.from_body(got.status, got.body).message
    return (
        f"{settings.url} has no {settings.protocol} model {model} (status 404: {message}): "
        "is the URL right? Name another model with --model"
    )


async def _play(
    settings: Settings, endpoint: Asker, progress: Progress, say: Callable[[str], None]
) -> Report:
    """A few cases at a time: they know nothing of each other."""
    cases = _some(chosen_cases(settings))
    model = settings.model or corpus_trials.DEFAULT_MODEL
    report = _report(settings, model, "gateway", COMPARE_LAWS)
    upstream = CaseUpstream(cases)
    turn = asyncio.Semaphore(_AT_ONCE)
    began = itertools.count(1)

    async def play(case: Json) -> Trial:
        async with turn:
            progress(next(began), len(cases), case["id"])
            return await corpus_trials.play(endpoint, upstream, case, model, stream=settings.stream)

    await _start(upstream, settings.upstream_port or 0)
    say(f"The built-in upstream is at {upstream.url}.")
    try:
        report.trials = await _all(play(case) for case in cases)
    finally:
        await upstream.stop()
    report.problem = _unplayed(report, upstream)
    return report


async def _start(upstream: CaseUpstream, port: int) -> None:
    try:
        await upstream.start(port)
    except OSError as error:
        raise CouldNotRun(f"port {port} cannot be used: {error.strerror}") from None


async def _all(work: Iterable[Coroutine[Any, Any, Trial]]) -> list[Trial]:
    """The results in order. Where one could not run, none of the others need."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except* CouldNotRun as problems:
        raise problems.exceptions[0] from None
    return [task.result() for task in tasks]


def _unplayed(report: Report, upstream: CaseUpstream) -> str:
    if not upstream.asked:
        return (
            f"the gateway never asked {upstream.url}: point it there "
            "(`dragoman conform --how` shows how), and route the model to it"
        )
    count = report.count(SKIPPED)
    advice = "name the protocols it speaks to its upstreams with --upstream-protocol"
    return f"{count} cases were not asked for in their own protocol: {advice}" if count else ""


def _some(trials: list[T]) -> list[T]:
    if not trials:
        raise CouldNotRun("there is no trial of that name: `--list` names them all")
    return trials
