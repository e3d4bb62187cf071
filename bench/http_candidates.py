"""`python -m bench.http_candidates`: the cost of HTTP per request and per paced chunk with each library.

Best of several alternating rounds. The libraries are installed into `.bench/http`, because Dragoman needs
only one of them.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from .answers import CHAT
from .http.clients import CLIENTS
from .http.servers import SERVERS
from .load import Job
from .peers import HOME
from .processes import Running, environment, free_port
from .session import Bench
from .shapes import SHORT, Shape

ROUNDS = 3
PLACE = HOME / "http"
PACKAGES = (
    "aiohttp",
    "backports.zstd",
    "brotli",
    "granian",
    "httpx2",
    "msgspec",
    "niquests",
    "pycurl",
    "pyqwest",
    "pyreqwest",
    "uvicorn[standard]",
)
PACED = Shape(texts=50, fragments=0, every_ms=10)

Cost = tuple[float, float]
"""µs per request, µs per paced chunk."""


def install() -> None:
    if not (PLACE / "ready").exists():
        python = str(PLACE / "bin" / "python")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(PLACE)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        subprocess.run([*pip, *PACKAGES], check=True)
        (PLACE / "ready").touch()


def server_cost(bench: Bench, name: str) -> Cost:
    port = free_port()
    command = [str(PLACE / "bin" / "python"), "-m", "bench.http.servers", name, str(port)]
    running = Running(command, folder=bench.folder, port=port)
    try:
        running.wait_until_listening()
        job = Job(port=port, protocol=CHAT, shape=SHORT, streamed=False, at_once=8, requests=100)
        bench.answered(job)
        request = bench.cpu(running, msgspec.structs.replace(job, requests=800)) / 800
        job = Job(port=port, protocol=CHAT, shape=PACED, at_once=8, requests=8)
        bench.answered(job)
        stream = bench.cpu(running, msgspec.structs.replace(job, requests=32)) / 32
        return request * 1e6, (stream - request) / PACED.events * 1e6
    finally:
        running.stop()


def client_cost(bench: Bench, name: str) -> Cost:
    request, stream = _client(bench, name, SHORT, 800), _client(bench, name, PACED, 32)
    return request * 1e6, (stream - request) / PACED.events * 1e6


def _client(bench: Bench, name: str, shape: Shape, requests: int) -> float:
    words = [name, str(bench.upstream_port), shape.model, str(requests)]
    done = subprocess.run(
        [str(PLACE / "bin" / "python"), "-m", "bench.http.clients", *words],
        env=environment(bench.folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return float(done.stdout) / requests


def main() -> None:
    install()
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Bench(Path(folder))) as bench:
        for title, names, cost in (("server", SERVERS, server_cost), ("client", CLIENTS, client_cost)):
            found: dict[str, list[Cost]] = {name: [] for name in names}
            for _ in range(ROUNDS):
                for name in names:
                    found[name].append(cost(bench, name))
            _show(title, found)


def _show(title: str, found: dict[str, list[Cost]]) -> None:
    best = {name: tuple(min(one[at] for one in ones) for at in (0, 1)) for name, ones in found.items()}
    ours = best["aiohttp"]
    print(f"{title:16} {'µs per request':>16} {'µs per chunk':>16}")
    for name, (request, chunk) in best.items():
        print(
            f"  {name:14} {request:8.0f} {request / ours[0]:6.2f} x {chunk:8.1f} {chunk / ours[1]:6.2f} x",
            flush=True,
        )


if __name__ == "__main__":
    main()
