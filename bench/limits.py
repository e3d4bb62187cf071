"""What named keys and limits add to S1: with the counters in SQLite, and in a real Redis or Valkey."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from .answers import CHAT
from .processes import ROOT, Running, free_port
from .scenarios import SCENARIOS
from .session import Bench
from .subjects import CONFIG, Place, Starter, Subject

_SECRET = "bench-person-0123456789"
_KEY = f'\n[keys.person]\nsecret = "{_SECRET}"\n'
_LIMITS = 'budget = ["1000000/month", "900000000000 tokens/day"]\nrate = "9000000/min"\nstreams = 5000\n'
_ROUNDS = 5
_BATCHES = 3


def _start(name: str, limits: str, redis: str) -> Starter:
    def start(folder: Path, upstream: int) -> Running:
        port = free_port()
        config = folder / f"{name}.toml"
        server = f'[server]\nstore = "{folder}/{name}.db"\n' + (f'redis = "{redis}"\n' if redis else "")
        config.write_text(server + CONFIG.format(upstream=upstream) + _KEY + limits)
        command = [sys.executable, "-m", "dragoman", "serve", "--config", str(config)]
        command += ["--port", str(port), "--log-level", "error"]
        return Running(command, folder=folder, port=port, BENCH_KEY="bench-key")

    return start


def _subject(name: str, limits: str = "", redis: str = "") -> Subject:
    place = Place(headers={"authorization": f"Bearer {_SECRET}"})
    return Subject(
        name=name, start=_start(name.replace(" ", "-"), limits, redis), pairs={(CHAT, CHAT): place}
    )


def run(bench: Bench, say: Callable[[str], None]) -> dict[str, float]:
    """CPU of a request in µs, the best of several rounds, by name."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import services

    [scenario] = [each for each in SCENARIOS if each.name == "S1"]
    server = services.Redis()
    try:
        server.start()
        subjects = (
            _subject("a key without limits"),
            _subject("four limits, SQLite", _LIMITS),
            _subject("no limits, Redis", "", server.url()),
            _subject("four limits, Redis", _LIMITS, server.url(1)),
        )
        best: dict[str, float] = {}
        for number in range(_ROUNDS):
            for _ in range(_BATCHES):
                for subject in subjects:
                    figure = scenario.measure(bench, subject)["S1"]
                    best[subject.name] = min(figure, best.get(subject.name, figure))
            say(f"S1 with limits: round {number + 1} of {_ROUNDS}")
        return best
    finally:
        server.close()


def text(best: dict[str, float]) -> str:
    """A line for each, with the difference to the first."""
    first = next(iter(best.values()))
    return "\n".join(
        f"S1, {name:<24}{value:>10.0f} µs{100 * (value / first - 1):>+8.0f} %" for name, value in best.items()
    )
