"""`make bench ARGS=--budget`: compares the machine instructions of whole scenarios with saved figures.

Times vary by half between runs, instructions by one percent. Callgrind counts them, so valgrind must be
installed. The command fails if a scenario needs a quarter more than its saved figure. `--budget save` writes
new figures to `budget.json`, if the cost is justified or a scenario became cheaper.
"""

from __future__ import annotations

import gc
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from dragoman import Options, Tool, Translation
from dragoman.protocols.base import Target
from dragoman.protocols.registry import protocol

from .answers import ANTHROPIC, CHAT, RESPONSES, stream
from .load import PATHS
from .processes import ROOT
from .requests import WRITE_SCHEMA, Talk, conversation
from .shapes import BRIEF, TOOL, Shape

FIGURES = Path(__file__).with_suffix(".json")
TOLERANCE = 1.25
_INSTALL = "valgrind is not installed. Install it: `apt install valgrind` or `dnf install valgrind`."
_VALGRIND = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=counted")
_TOTAL = re.compile(r"^(?:summary|totals): (\d+)", re.MULTILINE)
_TEXT = Shape(texts=100, fragments=0)
_CALL = Shape(texts=0, fragments=50)
_BOTH = Shape(texts=50, fragments=50)
_TOOLS = (Tool(name=TOOL, parameters=WRITE_SCHEMA),)
_TARGET = Target(model="m", issuer="bench", chat_compatible=True, max_tokens_field="max_tokens")
_REQUESTS = 4
_WARM = 2


class Figures(msgspec.Struct, frozen=True):
    """Instructions per event or request, and the Python version of the count."""

    python: str
    instructions: dict[str, int]


# ── the scenarios ──


def answer(upstream: str, client: str, shape: Shape) -> Iterator[Callable[[], object]]:
    """Repeated streamed answers, one event per read."""
    events = stream(upstream, shape)

    def run() -> None:
        exchange = Translation(upstream, client, tools=_TOOLS, options=Options(id="bench"))
        for event in events:
            exchange.feed(event)
        exchange.close()
        assert exchange.failure is None

    while True:
        yield run


def request(client: str, kind: str) -> Iterator[Callable[[], object]]:
    """New requests of 440 KB, each another conversation with other tools."""
    seed = 0
    while True:
        seed += 1
        bodies = [
            conversation(Talk(seed * _REQUESTS + number, tools=seed, kind=kind), BRIEF)
            for number in range(_REQUESTS)
        ]

        def run(bodies: list[bytes] = bodies) -> None:
            for body in bodies:
                read = protocol(client).read_request(body, PATHS[client])
                protocol(CHAT).write_request(read, _TARGET).encoded()

        yield run


SCENARIOS: dict[str, tuple[int, Iterator[Callable[[], object]]]] = {
    "text, Chat -> Anthropic client, per event": (_TEXT.events, answer(CHAT, ANTHROPIC, _TEXT)),
    "tool call, Chat -> Anthropic client, per event": (_CALL.events, answer(CHAT, ANTHROPIC, _CALL)),
    "text, Anthropic -> Chat client, per event": (_TEXT.events, answer(ANTHROPIC, CHAT, _TEXT)),
    "tool call, Anthropic -> Chat client, per event": (_CALL.events, answer(ANTHROPIC, CHAT, _CALL)),
    "Chat -> Chat client, per event": (_BOTH.events, answer(CHAT, CHAT, _BOTH)),
    "new Anthropic request -> Chat": (_REQUESTS, request(ANTHROPIC, "calls")),
    "new Codex request -> Chat": (_REQUESTS, request(RESPONSES, "codex")),
}
"""By name: how many events or requests a run is, and the runs."""


# ── counting ──


def counted() -> Iterator[tuple[str, int]]:
    """Instructions per event or request of each scenario, counted in a process under valgrind."""
    env = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT)}
    command = [*_VALGRIND, sys.executable, "-m", "bench.budget"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        for dump, (name, (units, _)) in enumerate(SCENARIOS.items(), 1):
            assert process.stdout.readline(), "the watched process ended"
            _control(process.pid, "--zero", "--instr=on")
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline(), "the watched process ended"
            _control(process.pid, "--dump", "--instr=off")
            found = _TOTAL.search((Path(folder) / f"counted.{dump}").read_text())
            assert found, "valgrind tells no total"
            yield name, int(found[1]) // units
            process.stdin.write("next\n")
            process.stdin.flush()


def _control(pid: int, *orders: str) -> None:
    for order in orders:
        subprocess.run(["callgrind_control", order, str(pid)], check=True, capture_output=True)


def watched() -> None:
    """Run each scenario once on command. Only the scenarios are counted."""
    for _, runs in SCENARIOS.values():
        for _ in range(_WARM):
            next(runs)()
        run = next(runs)
        gc.collect()
        print("ready", flush=True)
        sys.stdin.readline()
        run()
        print("done", flush=True)
        sys.stdin.readline()


# ── the command ──


def over(found: dict[str, int], saved: Figures) -> list[str]:
    """The scenarios that need clearly more instructions than saved."""
    figures = saved.instructions
    return [
        f"{name}: {count:,} instructions where {figures[name]:,} were enough"
        if name in figures
        else f"{name}: has no saved figure"
        for name, count in found.items()
        if count > figures.get(name, 0) * TOLERANCE
    ]


def main(what: str) -> None:
    """`what` is `check` or `save`."""
    if shutil.which("valgrind") is None:
        sys.exit(_INSTALL)
    saved = msgspec.json.decode(FIGURES.read_bytes(), type=Figures)
    found: dict[str, int] = {}
    for name, count in counted():
        found[name] = count
        before = saved.instructions.get(name)
        share = f"{count / before:5.2f} x the saved {before:,}" if before else ""
        print(f"{name:48} {count:>12,} instructions  {share}", flush=True)
    python = platform.python_version().rpartition(".")[0]
    if what == "save":
        figures = msgspec.json.encode(Figures(python, found))
        FIGURES.write_bytes(msgspec.json.format(figures, indent=1) + b"\n")
    elif python != saved.python:
        print(f"The saved figures are of Python {saved.python}: they say little about {python}.")
    elif said := over(found, saved):
        sys.exit("\n".join([*said, "Worth it? `make bench ARGS='--budget save'` saves the new figures."]))


if __name__ == "__main__":
    watched()
