"""Run the suite: on any endpoint with real requests, or on a gateway with the cases of the corpus."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from ..protocols.common import failures
from . import corpus, corpus_trials, models
from .client import CouldNotRun, EndpointClient, open_endpoint
from .compare import LAWS as COMPARE_LAWS
from .laws import Law, judge_of
from .laws import http as http_laws
from .laws.http import HttpAnswer
from .probes import LAWS as PROBE_LAWS
from .probes import Examination, Probe, examine, probes_of
from .report import ConformanceReport
from .shape import Json
from .trial import SKIPPED, Trial
from .upstream import CaseUpstream

T = TypeVar("T")
_AT_ONCE = 4

Progress = Callable[[int, int, str], None]
"""Called before every trial with its number, the number of trials, and its name."""


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The options of the command line."""

    url: str
    protocol: str
    model: str | None = None
    key: str | None = None
    timeout: float = 60.0
    only: tuple[str, ...] = ()
    strict: bool = False
    upstream_port: int | None = None
    upstream_protocols: tuple[str, ...] = ()
    stream: bool = True

    def wants(self, *names: str) -> bool:
        """Does `--only` select one of these names?"""
        return not self.only or any(fnmatchcase(name, glob) for name in names for glob in self.only)


def chosen_probes(options: SuiteOptions) -> list[Probe]:
    return [probe for probe in probes_of(options.protocol) if options.wants(probe.name)]


def chosen_cases(options: SuiteOptions) -> list[Json]:
    """The cases that `--only` and `--upstream-protocol` select."""
    spoken = options.upstream_protocols
    return [
        case
        for case in corpus.cases()
        if options.wants(case["id"], case["theme"]) and (not spoken or case["upstream_protocol"] in spoken)
    ]


async def run(options: SuiteOptions, progress: Progress, say: Callable[[str], None]) -> ConformanceReport:
    """Run all selected trials. `say` prints a message for the user."""
    async with open_endpoint(options.url, options.protocol, options.key, options.timeout) as endpoint:
        if options.upstream_port is None:
            return await _examine(options, endpoint, progress)
        return await _play(options, endpoint, progress, say)


def could_not(options: SuiteOptions, problem: str) -> ConformanceReport:
    """The report of a run that could not start."""
    mode = "endpoint" if options.upstream_port is None else "gateway"
    report = _report(options, options.model or "", mode, ())
    report.problem = problem
    return report


def _laws(options: SuiteOptions, more: tuple[Law, ...]) -> list[Law]:
    """The laws in the order of the table, each once: HTTP, the protocol, the content."""
    judge = judge_of(options.protocol)
    return list(dict.fromkeys((*http_laws.LAWS, *judge.laws_of_streams, *judge.laws_of_bodies, *more)))


def _report(options: SuiteOptions, model: str, mode: str, laws: tuple[Law, ...]) -> ConformanceReport:
    return ConformanceReport(options.url, options.protocol, model, mode, _laws(options, laws), options.strict)


async def _examine(options: SuiteOptions, endpoint: EndpointClient, progress: Progress) -> ConformanceReport:
    """Run the probes one after the other: later probes use the answers of earlier ones."""
    probes = _some(chosen_probes(options))
    model = options.model or await models.choose(endpoint)
    report = _report(options, model, "endpoint", PROBE_LAWS)
    examination = Examination(endpoint, model)
    for number, probe in enumerate(probes, 1):
        progress(number, len(probes), probe.name)
        report.trials.append(await examine(examination, probe))
        first = examination.answers.get(probe.name)
        if number == 1 and first is not None and first.status == 404:
            raise CouldNotRun(_unreachable(options, model, first))
    if examination.wants_key:
        wanted = f"the endpoint needs a key ({examination.wants_key})"
        report.problem = f"{wanted}: give one with --key, or set DRAGOMAN_CONFORM_KEY"
    return report


def _unreachable(options: SuiteOptions, model: str, got: HttpAnswer) -> str:
    message = failures.from_body(got.status, got.body).message
    return (
        f"{options.url} has no {options.protocol} model {model} (status 404: {message}): "
        "check the URL, or give another model with --model"
    )


async def _play(
    options: SuiteOptions, endpoint: EndpointClient, progress: Progress, say: Callable[[str], None]
) -> ConformanceReport:
    """Run a few cases at a time: they do not depend on each other."""
    cases = _some(chosen_cases(options))
    model = options.model or corpus_trials.DEFAULT_MODEL
    report = _report(options, model, "gateway", COMPARE_LAWS)
    upstream = CaseUpstream(cases)
    turn = asyncio.Semaphore(_AT_ONCE)
    began = itertools.count(1)

    async def play(case: Json) -> Trial:
        async with turn:
            progress(next(began), len(cases), case["id"])
            return await corpus_trials.play(endpoint, upstream, case, model, stream=options.stream)

    await _start(upstream, options.upstream_port or 0)
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
        raise CouldNotRun(
            f"port {port} cannot be used ({error.strerror}): give another --upstream-port"
        ) from None


async def _all(work: Iterable[Coroutine[Any, Any, Trial]]) -> list[Trial]:
    """The results in order. If one trial cannot run, cancel all others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except* CouldNotRun as problems:
        raise problems.exceptions[0] from None
    return [task.result() for task in tasks]


def _unplayed(report: ConformanceReport, upstream: CaseUpstream) -> str:
    if not upstream.asked:
        return (
            f"the gateway sent no request to {upstream.url}: add it as an upstream and route the model to it "
            "(`dragoman conform --how` prints such a config)"
        )
    count = report.count(SKIPPED)
    advice = "give the gateway's upstream protocols with --upstream-protocol"
    return f"the gateway requested {count} cases in another protocol than theirs: {advice}" if count else ""


def _some(trials: list[T]) -> list[T]:
    if not trials:
        raise CouldNotRun("--only selects no trial: `dragoman conform --list` prints all names")
    return trials
