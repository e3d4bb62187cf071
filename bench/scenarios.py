"""The scenarios S1 to S6, start and memory: requests to a gateway, and the resulting figures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import msgspec

from .answers import ANTHROPIC, CHAT
from .load import Job, Outcome
from .requests import Talk
from .session import Bench, Peak, WrongAnswer
from .shapes import BRIEF, PACED, PACED_SHORT, SHORT, STREAM, Shape
from .subjects import Subject
from .talks import ALL, KINDS, PLAIN, TURNS

STREAMS = 1000
_FEW = 50
_AT_ONCE = 8
"""Requests at a time, S1 to S5: as of a gateway that several people use."""
_TALKS = 8
"""Long conversations in a batch: few enough to be remembered until they go on."""
_BATCHES = 6
"""Of them in a round: one of a few hundredths of a second is luck."""
_RAMP = 3.0
_ENOUGH, _MOST = 0.5, 600
"""CPU seconds that are enough for a figure, and requests that are enough for any."""

Figures = dict[str, float]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Something to measure."""

    name: str
    pair: tuple[str, str]
    measure: Callable[[Bench, Subject], Figures]
    rounds: int = 5
    batches: int = 1
    """Batches per round and subject, taken alternately, as one figure. Slow subjects get fewer."""
    direct: Callable[[Bench], Figures] | None = None
    """The same without a gateway."""
    anew: bool = False
    """Does it restart the gateway?"""


def _requests(
    row: str, pair: tuple[str, str], shape: Shape, *, streamed: bool
) -> Callable[[Bench, Subject], Figures]:
    """CPU per request, or per event of a stream, in µs."""

    def measure(bench: Bench, subject: Subject) -> Figures:
        running = bench.running(subject)
        job = bench.job(subject, running, pair, shape, streamed=streamed, at_once=_AT_ONCE)
        warm = bench.cpu(running, msgspec.structs.replace(job, requests=16)) / 16
        requests = max(8, min(_MOST, int(_ENOUGH / warm)))
        seconds = bench.cpu(running, msgspec.structs.replace(job, requests=requests))
        return {row: seconds / requests / (shape.events if streamed else 1) * 1e6}

    return measure


def _long(bench: Bench, subject: Subject) -> Figures:
    """CPU per request in ms: everything new, known tools with a new history, and continued histories."""
    seeds = range(bench.seed, bench.seed + _TALKS)
    bench.seed += 2 * _TALKS
    new = [Talk(seed, tools=seed) for seed in seeds]
    others = [Talk(seed + _TALKS, tools=seed) for seed in seeds]
    return {
        "S5 first": _per_talk(bench, subject, new),
        "S5 known tools": _per_talk(bench, subject, others),
        "S5 seen": _per_talk(bench, subject, [talk.gone_on() for talk in (*new, *others)]),
    }


def _per_talk(bench: Bench, subject: Subject, talks: list[Talk]) -> float:
    running = bench.running(subject)
    pair, count = (talks[0].client, CHAT), len(talks)
    job = bench.job(subject, running, pair, BRIEF, talks=talks, requests=count, at_once=_AT_ONCE)
    return bench.cpu(running, job) / count * 1e3


def _otherwise(kind: str) -> Scenario:
    """S5 for conversations of another kind: new and continued."""
    turns = KINDS[kind].turns if kind in KINDS else TURNS

    def measure(bench: Bench, subject: Subject) -> Figures:
        seeds = range(bench.seed, bench.seed + _TALKS)
        bench.seed += _TALKS
        new = [Talk(seed, turns, tools=seed, kind=kind) for seed in seeds]
        later = [talk.gone_on(more) for more in (1, 2) for talk in new]
        return {
            f"S5-{kind} first": _per_talk(bench, subject, new),
            f"S5-{kind} seen": _per_talk(bench, subject, later),
        }

    pair = (Talk(0, kind=kind).client, CHAT)
    return Scenario(name=f"S5-{kind}", pair=pair, measure=measure, batches=_BATCHES)


def _crowd(bench: Bench, subject: Subject) -> Figures:
    """Many paced streams: delay per event, lost streams, memory, CPU."""
    bench.stop(subject)  # measures the memory of a process without earlier work
    running = bench.running(subject)
    pair = (CHAT, CHAT)
    bench.load(bench.job(subject, running, pair, STREAM, requests=16, at_once=4))
    idle, before = running.memory(), running.settled_cpu()
    job = bench.job(subject, running, pair, PACED, requests=STREAMS, at_once=STREAMS, ramp=_RAMP)
    with Peak(running) as peak:
        outcome = bench.load(job)
    spent = running.settled_cpu() - before
    return {
        "S6 lost": float(len(outcome.wrong)),
        "S6 memory": peak.memory,
        "S6 memory per stream": (peak.memory - idle) * 1024 / STREAMS,
        "S6 cpu": spent / (STREAMS * PACED.events) * 1e6,
        **_delays(outcome),
    }


def _paced(bench: Bench, subject: Subject) -> Figures:
    """So few streams that each event is handled alone: the cost of S6 without batching under load."""
    running = bench.running(subject)
    shape = PACED_SHORT
    job = bench.job(subject, running, (CHAT, CHAT), shape, requests=_FEW, at_once=_FEW, ramp=0.1)
    bench.answered(msgspec.structs.replace(job, requests=8, at_once=8, shape=BRIEF))
    return {"paced": bench.cpu(running, job) / (_FEW * shape.events) * 1e6}


def direct(bench: Bench) -> Figures:
    """The same without a gateway: the delays of the harness itself."""
    job = Job(port=bench.upstream_port, protocol=CHAT, shape=PACED, requests=STREAMS, at_once=STREAMS)
    return _delays(bench.load(msgspec.structs.replace(job, ramp=_RAMP)))


def _delays(outcome: Outcome) -> Figures:
    if not outcome.delays:
        return {}
    percentiles = statistics.quantiles(outcome.delays, n=100)
    return {"S6 p50": percentiles[49], "S6 p99": percentiles[98]}


def _start(bench: Bench, subject: Subject) -> Figures:
    """Time from start to the first answer, and the memory after it."""
    pair = next(iter(subject.pairs))
    running = bench.started(subject)
    try:
        while (outcome := bench.load(bench.job(subject, running, pair, BRIEF, streamed=True))).wrong:
            if time.monotonic() - running.started > 60:
                raise WrongAnswer(outcome.wrong[0])
            time.sleep(0.02)
        elapsed = time.monotonic() - running.started
        spent = running.cpu()
        time.sleep(0.5)
        return {"start": elapsed, "start cpu": spent, "memory": running.memory()}
    finally:
        running.stop()


SCENARIOS = (
    Scenario(
        name="S1",
        pair=(CHAT, CHAT),
        measure=_requests("S1", (CHAT, CHAT), SHORT, streamed=False),
    ),
    Scenario(
        name="S2",
        pair=(CHAT, CHAT),
        measure=_requests("S2", (CHAT, CHAT), STREAM, streamed=True),
    ),
    Scenario(
        name="S3",
        pair=(ANTHROPIC, CHAT),
        measure=_requests("S3", (ANTHROPIC, CHAT), STREAM, streamed=True),
    ),
    Scenario(
        name="S4",
        pair=(CHAT, ANTHROPIC),
        measure=_requests("S4", (CHAT, ANTHROPIC), STREAM, streamed=True),
    ),
    Scenario(name="S5", pair=(ANTHROPIC, CHAT), measure=_long, batches=_BATCHES),
    *(_otherwise(kind) for kind in ALL if kind != PLAIN),
    Scenario(name="S6", pair=(CHAT, CHAT), measure=_crowd, rounds=3, direct=direct, anew=True),
    Scenario(name="paced", pair=(CHAT, CHAT), measure=_paced, rounds=3),
    Scenario(name="start", pair=("", ""), measure=_start, anew=True),
)
