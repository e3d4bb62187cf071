"""`dragoman tail`: live exchanges in the terminal."""

import json
import os
import pty
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call, post
from support.processes import Process, accept_ctrl_c, dragoman
from support.scripted_upstream import ScriptedUpstream, refused_url, status

from dragoman.cli.tail.follow import TailOptions, follow
from dragoman.cli.tail.lines import safe
from dragoman.cli.tail.screen import Screen

KEY = "gate-key-1234567890"
BASH = {
    "name": "Bash",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        "required": ["command"],
    },
}


def config(upstream: ScriptedUpstream, server: str = "") -> str:
    return f"""
        [server]
        retries = 0
        {server}
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        [[routes]]
        match = "*"
        to = "up/*"
    """


@pytest.fixture
def served(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    with gateway(config(upstream), loop) as running:
        yield running


def ask(served: Gateway, model: str, **headers: str) -> str:
    messages = [{"role": "user", "content": "Run the command ls -la"}]
    body = {"model": model, "max_tokens": 99, "stream": True, "tools": [BASH], "messages": messages}
    return post(f"{served.url}/v1/messages", body, **headers).headers["x-dragoman-exchange"]


def tail(folder: Path, served: Gateway, *args: str, **env: str) -> Any:
    return dragoman(folder, "tail", "--url", served.url, *args, **env)


class PrintedLines(Screen):
    """A screen that collects the printed lines."""

    def __init__(self) -> None:
        super().__init__(as_json=True)
        self._printed: queue.Queue[str] = queue.Queue()
        self._models: list[str] = []

    def print(self, lines: list[str]) -> None:
        for line in lines:
            self._printed.put(line)

    def models(self, count: int) -> list[str]:
        while len(self._models) < count:
            self._models.append(json.loads(self._printed.get(timeout=20))["model"])
        return self._models


def wait_until_connected(served: Gateway) -> None:
    """Wait until `tail` has the past exchanges and is subscribed to new ones."""
    pause = threading.Event()
    for _ in range(1000):
        if served.state.lifecycle.waiting:
            return
        pause.wait(0.02)
    raise AssertionError("tail did not connect")


def ended(process: Process) -> None:
    process.interrupt()
    assert process.wait() == 0
    assert "Traceback" not in process.said


def test_each_exchange_has_a_line_with_its_fixes_below(tmp_path: Path, served: Gateway) -> None:
    ask(served, "demo")
    with tail(tmp_path, served) as process:
        process.wait_for(r"· anthropic +demo → up/demo .* tokens \$\? 1 call\n")
        ask(served, "demo-misnamed")
        process.wait_for(r"● anthropic +demo-misnamed → up/demo-misnamed .* 1 call 1 mended\n")
        process.wait_for(r"\n    Bash/prompt: prompt → command  tool-alias\n")
        ended(process)
        assert "\x1b" not in process.said  # a pipe gets no colours
        assert process.said.count("demo →") == 1


def test_invalid_calls_are_shown(tmp_path: Path, served: Gateway) -> None:
    ask(served, "demo-invalid")
    with tail(tmp_path, served) as process:
        process.wait_for(r"demo-invalid → .* 1 call 1 invalid\n    Bash does not fit: .*command")
        ended(process)


def test_failures_say_why(tmp_path: Path, served: Gateway, upstream: ScriptedUpstream) -> None:
    with tail(tmp_path, served, "--failed", "glm") as process:
        wait_until_connected(served)
        ask(served, "demo")
        upstream.script(status(429, b'{"error":{"message":"Slow \\u001b[2Jdown"}}'))
        ask(served, "glm")
        process.wait_for(r"✗ anthropic +glm → up/glm .* 429 rate_limit\n    Slow \ufffd\[2Jdown\n")
        ended(process)
        assert "demo" not in process.said


@pytest.mark.parametrize(
    ("query", "before", "after"),
    [
        ({"mended": "1", "model": "demo-*"}, ["demo-misnamed", "demo-stringly"], ["demo-misnamed"]),
        ({"rule": "tool-alias"}, ["demo-misnamed"], ["demo-misnamed"]),
        ({"client": "anthropic", "q": "up/demo MISNAMED"}, ["demo-misnamed"], ["demo-misnamed"]),
        ({"slow": "0", "last": "1"}, ["demo-stringly"], ["other", "demo-misnamed"]),
    ],
)
def test_filters_are_the_same_as_for_the_list(
    query: dict[str, str], before: list[str], after: list[str], served: Gateway
) -> None:
    for model in ("demo", "demo-misnamed", "demo-stringly"):
        ask(served, model)
    paper = PrintedLines()
    settings = TailOptions(url=served.url, as_json=True, last=int(query.pop("last", "10")), query=query)
    following = served.loop.begin(follow(settings, paper))
    assert paper.models(len(before)) == before
    ask(served, "other")
    ask(served, "demo-misnamed")
    assert paper.models(len(before + after)) == before + after
    following.cancel()


def test_one_session_is_followed_alone(tmp_path: Path, served: Gateway) -> None:
    ask(served, "demo")
    id = ask(served, "demo-misnamed", x_session_id="mine")
    session = call(f"{served.url}/exchanges/{id}").json["session"]
    with tail(tmp_path, served, "--session", session) as process:
        process.wait_for("demo-misnamed")
        ended(process)
        assert "demo →" not in process.said


def test_json_prints_one_summary_per_line(tmp_path: Path, served: Gateway) -> None:
    id = ask(served, "demo-misnamed")
    with tail(tmp_path, served, "--json", "--mended", "-n", "1") as process:
        process.wait_for(r"\}\n")
        ended(process)
    said = json.loads(process.said)
    assert (said["id"], said["mended"], said["rules"]) == (id, 1, ["tool-alias"])


def test_a_key_is_given_by_option_or_environment(
    tmp_path: Path, loop: Loop, upstream: ScriptedUpstream
) -> None:
    with gateway(config(upstream, f'keys = ["{KEY}"]'), loop) as locked:
        ask(locked, "demo", x_api_key=KEY)
        with tail(tmp_path, locked) as process:
            assert process.wait() == 1
            process.wait_for("needs a key: set DRAGOMAN_KEY, or give --key")
        with tail(tmp_path, locked, DRAGOMAN_KEY=KEY) as process:
            process.wait_for("demo → up/demo")
            assert KEY not in process.said


def test_an_unreachable_gateway_is_a_one_line_error(tmp_path: Path) -> None:
    with dragoman(tmp_path, "tail", "--url", refused_url()) as process:
        assert process.wait() == 1
        said = (
            r"no gateway answers at \S+ \(it refuses connections\): start `dragoman serve`, or give another"
        )
        assert re.fullmatch(f"Error: {said} --url\n", process.said)


def test_tail_reconnects_and_catches_up(tmp_path: Path) -> None:
    with dragoman(tmp_path, "demo", "--port", "0") as first:
        url = first.ready()
        with dragoman(tmp_path, "tail", "--url", url) as process:
            served = Gateway(url, None, None)  # type: ignore[arg-type]
            ask(served, "demo-misnamed")
            process.wait_for("tool-alias")
            first.interrupt()
            first.wait()
            process.wait_for("reconnecting")
            with dragoman(tmp_path, "demo", "--port", url.rpartition(":")[2]) as second:
                second.ready()
                ask(served, "demo-stringly")
                process.wait_for("number-as-text")
                ended(process)
                assert process.said.count("reconnecting") == 1


def test_on_a_terminal_running_exchanges_are_below(
    tmp_path: Path, served: Gateway, upstream: ScriptedUpstream
) -> None:
    """They are coloured, and rewritten in place."""
    gate = threading.Event()
    upstream.script(_held(gate))
    screen, end = pty.openpty()
    seen = bytearray()
    threading.Thread(target=_read, args=(screen, seen), daemon=True).start()
    command = [sys.executable, "-m", "dragoman", "tail", "--url", served.url]
    process = subprocess.Popen(
        command,
        stdout=end,
        stderr=end,
        cwd=tmp_path,
        env={"TERM": "xterm", **os.environ},
        preexec_fn=accept_ctrl_c,
    )
    os.close(end)
    try:
        wait_until_connected(served)
        asking = threading.Thread(target=ask, args=(served, "slow-one"))
        asking.start()
        _until(seen, "… anthropic    slow-one".encode())
        gate.set()
        asking.join()
        _until(seen, b"\x1b[1A\x1b[J")
        _until(seen, "10 → 2 tokens".encode())
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_model_output_cannot_control_the_terminal() -> None:
    assert safe("a\x1b]0;title\x07\r\n\x9b2J\u202eb") == "a\ufffd]0;title" + "\ufffd" * 3 + "\ufffd2J\ufffdb"
    assert safe("x" * 500, 10) == "x" * 9 + "…"


def _held(gate: threading.Event) -> Iterator[bytes]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": "Hello"}}
    yield b"data: %s\n\n" % json.dumps({"id": "c", "choices": [choice]}).encode()
    assert gate.wait(20)
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    yield (
        b"data: %s\n\ndata: [DONE]\n\n" % json.dumps({"id": "c", "choices": [last], "usage": usage}).encode()
    )


def _read(screen: int, seen: bytearray) -> None:
    try:
        while data := os.read(screen, 65536):
            seen.extend(data)
    except OSError:
        return  # the other end is closed


def _until(seen: bytearray, wanted: bytes) -> None:
    pause = threading.Event()
    for _ in range(400):
        if wanted in seen:
            return
        pause.wait(0.05)
    raise AssertionError(f"no {wanted!r} in {bytes(seen)!r}")
