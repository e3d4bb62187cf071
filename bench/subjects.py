"""The measured subjects: Dragoman as its users run it, and the two floors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from .answers import CHAT, RESPONSES
from .processes import Running, free_port

Starter = Callable[..., Running]
"""Takes a folder to run in and the upstream's port."""


class Place(msgspec.Struct, frozen=True):
    """The path and the model name that a gateway expects for a kind of request."""

    model: str = "{}"
    path: str = ""
    headers: dict[str, str] = {}
    """`{upstream}` stands for the upstream's port."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway: how to start it, and which pairs (client protocol, upstream protocol) it supports."""

    name: str
    start: Starter
    pairs: dict[tuple[str, str], Place]


def _python(*command: str) -> Starter:
    def start(folder: Path, upstream: int) -> Running:
        port = free_port()
        words = [sys.executable, "-m", *command, str(port), f"http://127.0.0.1:{upstream}"]
        return Running(words, folder=folder, port=port)

    return start


CONFIG = """\
[upstreams.chat]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{upstream}/v1"
credential = "env:BENCH_KEY"

[upstreams.anthropic]
protocol = "anthropic"
base_url = "http://127.0.0.1:{upstream}"
credential = "env:BENCH_KEY"

[[routes]]
match = "*"
to = "chat/*"
"""


def start_dragoman(folder: Path, upstream: int, *options: str) -> Running:
    """`dragoman serve` with one worker, without logging; tool engine and receipts by default."""
    port = free_port()
    config = folder / "dragoman.toml"
    config.write_text(CONFIG.format(upstream=upstream))
    command = [sys.executable, "-m", "dragoman", "serve", "--config", str(config)]
    command += ["--port", str(port), "--log-level", "error", *options]
    return Running(command, folder=folder, port=port, BENCH_KEY="bench-key")


DRAGOMAN = Subject(
    name="Dragoman",
    start=start_dragoman,
    pairs={
        (CHAT, CHAT): Place(),
        ("anthropic", CHAT): Place(),
        (CHAT, "anthropic"): Place("anthropic/{}"),
        ("anthropic", "anthropic"): Place("anthropic/{}"),
        (RESPONSES, CHAT): Place(),
    },
)
FLOOR_A = Subject(name="A", start=_python("bench.floors.passthrough"), pairs={(CHAT, CHAT): Place()})
FLOOR_B = Subject(
    name="B",
    start=_python("bench.floors.naive"),
    pairs={("anthropic", CHAT): Place(), (RESPONSES, CHAT): Place()},
)
OURS = (FLOOR_A, FLOOR_B, DRAGOMAN)
