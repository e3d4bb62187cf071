"""The scripted upstream, a real gateway in front of it, and one agent at a time on a scratch home."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import installs
from rows import QUIET, Row, dragoman

from dragoman.conform import scripted

PROTOCOLS = ("anthropic", "openai-chat", "openai-responses", "gemini")
LAST_WORDS = "That is all there is to do."
_KEPT = ("PYTHONPATH", "LANG")
_MADE_UP = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}|\b[0-9]{13}\b"
    "|Chunk ID: [0-9a-f]+|Wall time: [0-9.]+ seconds"
)
"""What an agent makes up for each run: ids, times, and what it says about a command."""


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    seconds: float
    problem: str = ""
    """Nothing where it went well."""
    output: str = ""


@contextlib.contextmanager
def upstream() -> Iterator[str]:
    """The scripted model's address, in all four protocols."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    url, stop = asyncio.run_coroutine_threadsafe(scripted.serve(), loop).result()
    try:
        yield url
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)


def model(protocol: str, behaviour: str) -> str:
    """A model name that no client knows and no SDK splits."""
    return f"via-{protocol}-{behaviour}"


def config(url: str) -> str:
    """Each behaviour of the scripted model over each protocol."""
    upstreams = [
        f'[upstreams.{name}]\nprotocol = "{name}"\nbase_url = "{url}"\ncredential = "none"'
        for name in PROTOCOLS
    ]
    routes = [
        _route(model(protocol, name), f"{protocol}/{name}")
        for protocol in PROTOCOLS
        for name in scripted.BEHAVIOURS
    ]
    return "\n".join(["[server]\nport = 1", *upstreams, *routes])


def _route(name: str, target: str) -> str:
    return f'[[routes]]\nmatch = "{name}"\nto = "{target}"'


def gateway(file: Path, *more: str) -> contextlib.AbstractContextManager[str]:
    """`dragoman serve`, for clients that `dragoman run` does not start."""
    return _served("serve", "--config", str(file), *more)


@contextlib.contextmanager
def _served(*command: str) -> Iterator[str]:
    """The URL of a gateway or of a replay server."""
    with tempfile.TemporaryDirectory(prefix="agents-") as home:
        env = {**_environment(Path(home)), "PATH": os.environ["PATH"]}
        process = subprocess.Popen(
            dragoman(*command, "--port", "0"),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        found = next(match for line in lines if (match := re.search(r" at (http://\S+?)[.:]? ", line)))
        threading.Thread(target=lambda: list(lines), daemon=True).start()
        try:
            yield found[1]
        finally:
            process.terminate()
            process.wait(20)


def play(
    row: Row,
    protocol: str,
    behaviour: str,
    *,
    file: Path,
    url: str,
    patience: float,
    scratch: Path | None = None,
) -> Outcome:
    """Run one turn in a fresh home and a fresh folder, below `scratch`."""
    scratch = scratch or Path(tempfile.mkdtemp(prefix="agents-"))
    scratch.mkdir(exist_ok=True)
    home, work = scratch / "home", scratch / "work"
    home.mkdir()
    work.mkdir()
    name = model(protocol, behaviour)
    command = list(row.command)
    if row.agent:
        own = scratch / "dragoman.toml"
        own.write_text(f"{file.read_text()}\n{_route('*', f'{protocol}/{behaviour}')}\n")
        wish = [] if row.own_model else ["--model", name]
        command = dragoman("run", "--config", str(own), *wish, *row.command)
    env = {**_environment(home), **row.env, "BASE": url, "KEY": "dragoman", "MODEL": name}
    begun, since = time.monotonic(), time.time()
    output, ended = _run(command, env, work, patience)
    seconds = round(time.monotonic() - begun, 1)
    problem = _problem(row, work, output, ended)
    if row.websocket and not problem and not _only_websockets(url, name, since):
        problem = "did not ask over a WebSocket alone"
    if row.compacts and not problem and not _continued_compacted(url, name, since):
        problem = "did not go on from a compacted conversation"
    outcome = Outcome(seconds, problem, output)
    shutil.rmtree(scratch, ignore_errors=True)
    return outcome


def play_recorded(row: Row, protocol: str, behaviour: str, *, file: Path, patience: float) -> Outcome:
    """Record a turn, and run the agent twice with the recording: without a model, and with equal requests."""
    name = model(protocol, behaviour)
    asked: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="agents-") as folder:
        with gateway(file, "--record", folder) as url:
            runs = [play(row, protocol, behaviour, file=file, url=url, patience=patience)]
        # Both replays in one place: an agent tells the model where it works.
        with tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as place:
            for _ in range(2):
                since = time.time()
                with _served("replay", "--serve", folder) as url:
                    runs.append(
                        play(
                            row,
                            protocol,
                            behaviour,
                            file=file,
                            url=url,
                            patience=patience,
                            scratch=Path(place),
                        )
                    )
                    asked.append(_sent_upstream(url, name, since))
    problem = next((run.problem for run in runs if run.problem), "")
    if not problem and not asked[0]:
        problem = "the recording was not used"
    if not problem and asked[0] != asked[1]:
        problem = "the two replays asked for different things"
    return Outcome(round(sum(run.seconds for run in runs), 1), problem, "\n".join(run.output for run in runs))


def _sent_upstream(url: str, model: str, since: float) -> list[str]:
    """The bodies that went to the upstream, the oldest first, without what agents make up for each run."""
    asked = urllib.parse.urlencode({"model": model, "since": since})
    exchanges = _json(f"{url}/exchanges?{asked}")["exchanges"]
    found = [_json(f"{url}/exchanges/{one['id']}/bytes")["upstream_requests"] for one in reversed(exchanges)]
    return [_stable(request["body"]) for requests in found for request in requests]


def _stable(body: str) -> str:
    """`body` without ids and times of one run. Codex also writes its metadata in any order."""
    return json.dumps(json.loads(_MADE_UP.sub("0", body)), sort_keys=True)


def _problem(row: Row, work: Path, output: str, ended: int | None) -> str:
    proof = work / "proof.txt"
    if ended is None:
        return "did not end"
    if ended:
        return f"ended with code {ended}"
    if not proof.exists():
        return "did not run its tool"
    if proof.read_text() != row.proof:
        return f"wrote {proof.read_text()!r}"
    return "" if LAST_WORDS in output else "did not report the last words"


def _only_websockets(url: str, model: str, since: float) -> bool:
    """Did all requests for `model` come over a WebSocket?"""
    seen = [request["headers"].get("upgrade") for request in _requests(url, model, since)]
    return bool(seen) and set(seen) == {"websocket"}


def _continued_compacted(url: str, model: str, since: float) -> bool:
    """Was a compaction requested once, and its item sent back afterwards?"""
    items = [
        {item.get("type") for item in json.loads(request["body"])["input"]}
        for request in _requests(url, model, since)
    ]
    asked = [at for at, types in enumerate(items) if "compaction_trigger" in types]
    return len(asked) == 1 and any("compaction" in types for types in items[asked[0] + 1 :])


def _requests(url: str, model: str, since: float) -> list[dict[str, Any]]:
    """The requests for `model` as the gateway has seen them, the oldest first."""
    asked = urllib.parse.urlencode({"model": model, "since": since})
    exchanges = _json(f"{url}/exchanges?{asked}")["exchanges"]
    return [_json(f"{url}/exchanges/{one['id']}/bytes")["client_request"] for one in reversed(exchanges)]


def _json(url: str) -> Any:
    with urllib.request.urlopen(url) as response:
        return json.load(response)


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **QUIET, "HOME": str(home), "PATH": installs.path()}


def _run(command: list[str], env: dict[str, str], work: Path, patience: float) -> tuple[str, int | None]:
    """The output and the exit code. The code is None if the process was killed."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(patience)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # including processes that it left behind
        process.wait()
        said.seek(0)
        return said.read(), code
