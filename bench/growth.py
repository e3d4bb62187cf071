"""`make bench ARGS=--growth`: how cost grows with turns, streams, event size, argument size and workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from .answers import ANTHROPIC, CHAT
from .processes import Running
from .requests import Talk
from .session import Bench, Peak
from .shapes import BRIEF, SHORT, Shape
from .subjects import DRAGOMAN, FLOOR_A, FLOOR_B, Subject, start_dragoman

TURNS = 200
_GROUP = 5
"""Turns that are measured together: one alone is near what can be told apart."""
_ROUNDS = 3
_FIRST = 1.5
"""Seconds for what is done once, after a process's first answer: no part of what a stream or turn costs."""


class Curve(msgspec.Struct):
    """The points of one subject: (x, cost)."""

    name: str
    points: list[tuple[float, float]] = msgspec.field(default_factory=list)


class Study(msgspec.Struct):
    """One plot."""

    name: str
    title: str
    x: str
    y: str
    curves: list[Curve] = msgspec.field(default_factory=list)


def turns(bench: Bench) -> Study:
    """A conversation that grows from its first turn to its two hundredth."""
    title = f"CPU per turn over a conversation of {TURNS} turns (60 tools)"
    study = Study("turns", title, "turn", "ms")
    for subject in (FLOOR_B, DRAGOMAN):
        bench.seed += 2
        running = bench.running(subject)
        curve = Curve(subject.name)
        _say_turn(bench, subject, Talk(bench.seed - 1, turns=1))  # a warm-up request for the process
        time.sleep(_FIRST)
        for first in range(1, TURNS + 1, _GROUP):
            before = running.settled_cpu()
            for turn in range(first, first + _GROUP):
                _say_turn(bench, subject, Talk(bench.seed, turns=turn))
            curve.points.append((first + _GROUP - 1, (running.settled_cpu() - before) / _GROUP * 1e3))
        study.curves.append(curve)
    return study


def _say_turn(bench: Bench, subject: Subject, talk: Talk) -> None:
    bench.answered(bench.job(subject, bench.running(subject), (ANTHROPIC, CHAT), BRIEF, talks=[talk]))


def streams(bench: Bench) -> list[Study]:
    """Paced streams, ten events a second each."""
    cost = Study("streams", "CPU per event, ten events a second on each stream", "streams at once", "µs")
    memory = Study("memory", "Memory", "streams at once", "MB")
    shape = Shape(texts=50, fragments=0, every_ms=100)
    for subject in (FLOOR_A, DRAGOMAN):
        costs, memories = Curve(subject.name), Curve(subject.name)
        for count in (1, 10, 100, 300, 1000):
            bench.stop(subject)
            running = bench.running(subject)
            job = bench.job(subject, running, (CHAT, CHAT), shape, requests=count, at_once=count, ramp=2.0)
            bench.answered(msgspec.structs.replace(job, requests=1, at_once=1, shape=BRIEF))
            time.sleep(_FIRST)
            before = running.settled_cpu()
            with Peak(running) as peak:
                bench.answered(job)
            spent = running.settled_cpu() - before
            costs.points.append((count, spent / count / shape.events * 1e6))
            memories.points.append((count, peak.memory))
        cost.curves.append(costs)
        memory.curves.append(memories)
    return [cost, memory]


def _sizes(bench: Bench, study: Study, shapes: Sequence[tuple[float, Shape, float]], requests: int) -> Study:
    """Send streams of several shapes through every subject; each is (x, shape, divisor of the cost)."""
    ways: list[tuple[str, Subject, tuple[str, str]]] = [
        ("A", FLOOR_A, (CHAT, CHAT)),
        ("Dragoman, chat -> chat", DRAGOMAN, (CHAT, CHAT)),
        ("B", FLOOR_B, (ANTHROPIC, CHAT)),
        ("Dragoman, Anthropic -> chat", DRAGOMAN, (ANTHROPIC, CHAT)),
    ]
    for name, subject, pair in ways:
        curve = Curve(name)
        for x, shape, parts in shapes:
            job = bench.job(subject, bench.running(subject), pair, shape, at_once=2, requests=requests)
            bench.answered(msgspec.structs.replace(job, requests=2))
            best = min(bench.cpu(bench.running(subject), job) for _ in range(_ROUNDS))
            curve.points.append((x, best / requests / parts * 1e6))
        study.curves.append(curve)
    return study


def event_sizes(bench: Bench) -> Study:
    study = Study("event-size", "CPU per event, 100 text deltas", "bytes of text in an event", "µs")
    sizes = (8, 64, 512, 4096, 32768)
    shapes = [(size, Shape(texts=100, text_size=size, fragments=0), 100.0) for size in sizes]
    return _sizes(bench, study, shapes, requests=12)


def argument_sizes(bench: Bench) -> Study:
    title = "CPU per KB of tool arguments, in fragments of 20 characters"
    study = Study("argument-size", title, "KB of arguments", "µs")
    sizes = (1, 8, 64, 512, 2048)
    shapes = [
        (size, Shape(texts=1, fragments=size * 51, arguments=size * 1024), float(size)) for size in sizes
    ]
    return _sizes(bench, study, shapes, requests=4)


def workers(bench: Bench) -> Study:
    """Several processes on one port: the cost of a request in all of them together."""
    study = Study("workers", "CPU per request, not streamed", "workers", "µs")
    curve = Curve("Dragoman")
    for count in (1, 2, 4):
        start = partial(_with_workers, count)
        subject = Subject(name=f"Dragoman-{count}", start=start, pairs=DRAGOMAN.pairs)
        running = bench.running(subject)
        job = bench.job(subject, running, (CHAT, CHAT), SHORT, streamed=False, at_once=32, requests=1000)
        bench.answered(msgspec.structs.replace(job, requests=100))
        best = min(bench.cpu(running, job) for _ in range(_ROUNDS))
        curve.points.append((count, best / job.requests * 1e6))
        bench.stop(subject)
    study.curves.append(curve)
    return study


def _with_workers(count: int, folder: Path, upstream: int) -> Running:
    return start_dragoman(folder, upstream, "--workers", str(count))


STUDIES: dict[str, Callable[[Bench], Study | list[Study]]] = {
    "turns": turns,
    "streams": streams,
    "event-size": event_sizes,
    "argument-size": argument_sizes,
    "workers": workers,
}


def run(bench: Bench, names: Sequence[str], say: Callable[[str], None]) -> list[Study]:
    found: list[Study] = []
    for name in names or STUDIES:
        made = STUDIES[name](bench)
        found += made if isinstance(made, list) else [made]
        say(f"{name}: measured")
    return found


def text(studies: list[Study]) -> str:
    """The curves as numbers."""
    lines: list[str] = []
    for study in studies:
        lines.append(f"{study.title} ({study.y}, by {study.x})")
        for curve in study.curves:
            shown = "  ".join(f"{x:g}: {y:.3g}" for x, y in _some(curve.points))
            lines.append(f"  {curve.name:28} {shown}")
    return "\n".join(lines)


def _some(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return points[:: max(1, len(points) // 8)]
