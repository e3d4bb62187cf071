"""`dragoman serve` as a process: start, reload, graceful stop, workers, recordings."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.plain_http import call, post
from support.processes import Process, dragoman
from support.scripted_talk import question, reply_to, sent
from support.scripted_upstream import FOREVER, ScriptedUpstream, Wait, in_background, stream
from support.wires import CHAT

from dragoman.recording import load, replay

ASKED = {"model": "demo", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}
STREAMED = {**ASKED, "stream": True}
SPOKEN = sent(reply_to(CHAT, question(stream=True)))


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background(ScriptedUpstream(pace=1)) as served:
        yield served


def config(url: str, server: str = "", more: str = "") -> str:
    head = f"[server]\nport = 0\n{server}\n" if "port" not in server else f"[server]\n{server}\n"
    return (
        f'{head}[upstreams.up]\nprotocol = "openai-chat"\nbase_url = "{url}"\ncredential = "none"\n{more}\n'
    )


class Streaming:
    """A client that has received the first part of an answer."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        head = {"content-type": "application/json"}
        self._connection.request("POST", "/v1/messages", json.dumps(STREAMED), head)
        self._response = self._connection.getresponse()
        self.first = self._response.read1(100)

    def rest(self) -> bytes:
        try:
            return self._response.read()
        finally:
            self._connection.close()


def slowly(seconds: float) -> object:
    """An answer with a first part at once and the rest after `seconds`."""
    frames = SPOKEN.split(b"\n\n")
    middle = len(frames) // 2
    return stream(b"\n\n".join(frames[:middle]) + b"\n\n", Wait(seconds), b"\n\n".join(frames[middle:]))


@pytest.fixture
def serve(tmp_path: Path, upstream: ScriptedUpstream) -> Iterator[Callable[..., Process]]:
    """Starts a gateway before `upstream`."""
    open_blocks: list[Process] = []

    def start(*args: str, server: str = "", **env: str) -> Process:
        (tmp_path / "dragoman.toml").write_text(config(upstream.url, server))
        process = Process(tmp_path, "serve", *args, **env)
        open_blocks.append(process)
        return process

    yield start
    for process in open_blocks:
        process.kill()


def test_serve_starts_answers_and_stops(serve: Callable[..., Process], tmp_path: Path) -> None:
    process = serve()
    url = process.ready()
    assert url.startswith("http://127.0.0.1:")
    got = post(f"{url}/v1/messages", ASKED)
    assert got.status == 200
    # One id in every line, and JSON because there is no terminal.
    process.wait_for(
        rf'"message":"anthropic demo -> up/demo","exchange":"{got.headers["x-dragoman-exchange"]}"'
    )
    assert [*(tmp_path / ".local/share/dragoman").glob("dragoman-*.db")]
    process.interrupt()
    assert process.wait() == 0
    assert "Traceback" not in process.said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_answer_finishes_first(
    number: signal.Signals, serve: Callable[..., Process], upstream: ScriptedUpstream
) -> None:
    upstream.script(slowly(0.5))
    process = serve()
    client = Streaming(process.ready())
    process.signal(number)
    process.wait_for("answers under way may finish")
    assert b"message_stop" in client.rest()
    assert process.wait() == 0


def test_a_running_answer_is_cut_after_the_grace_period(
    serve: Callable[..., Process], upstream: ScriptedUpstream
) -> None:
    upstream.script(slowly(FOREVER))
    process = serve(server='shutdown_grace = "200ms"')
    client = Streaming(process.ready())
    process.signal(signal.SIGTERM)
    with pytest.raises(http.client.IncompleteRead):  # cut, so that no client takes it for a success
        client.rest()
    assert process.wait() == 0
    assert upstream.last.closed.wait(2)


def test_a_second_signal_ends_it_at_once(serve: Callable[..., Process], upstream: ScriptedUpstream) -> None:
    upstream.script(slowly(FOREVER))
    process = serve()
    client = Streaming(process.ready())
    process.signal(signal.SIGINT)
    process.wait_for("a second signal ends them")
    process.signal(signal.SIGINT)
    assert process.wait() == 130
    # The answer is torn off, or its last event says why it ends. Both tell the client that a part is missing.
    try:
        rest = client.rest()
    except http.client.IncompleteRead as cut:
        rest = cut.partial
    else:
        assert b"event: error" in rest
        assert b"this process stops" in rest
    assert b"message_stop" not in rest
    assert "Traceback" not in process.said


def test_a_reload_does_not_drop_a_stream(
    serve: Callable[..., Process], upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script(slowly(2.5))
    process = serve("--port", "0")
    url = process.ready()
    client = Streaming(url)
    file = tmp_path / "dragoman.toml"
    changed = config(upstream.url, more='[aliases]\nnew-name = "up/demo"\n')
    file.write_text(changed)
    process.wait_for('dragoman.toml was read again"')
    assert post(f"{url}/v1/messages", {**ASKED, "model": "new-name"}).status == 200
    assert "new-name" in call(f"{url}/v1/models").body.decode()
    assert b"message_stop" in client.rest()
    file.write_text(changed + "[server2]\n")
    process.wait_for(r'"level":"warning".*the old config stays in use: dragoman.toml:\d+: unknown table')
    assert post(f"{url}/v1/messages", {**ASKED, "model": "new-name"}).status == 200
    file.write_text(changed.replace("[server]", '[server]\nretention = "1d"\nworkers = 2'))
    process.wait_for(r"a change of server.workers needs a restart")


def test_a_port_in_use_is_a_one_line_error(serve: Callable[..., Process]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for workers in ("1", "2"):
            process = serve("--port", port, "--workers", workers)
            assert process.wait() == 1
            said = process.wait_for(
                r"cannot listen on 127\.0\.0\.1:\d+: another program already listens there"
            ).string
            assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[[routes]]\nmach = 1\n",
            r'Error: dragoman\.toml:2: unknown key "mach" in \[\[routes\]\]; did you mean',
        ),
        ("[server\n", r"Error: dragoman\.toml:1: this is not valid TOML"),
        ("[server]\nhost = '0.0.0.0'\n", r"Error: dragoman\.toml:2: host .* set keys"),
        ("[server]\nkeys = ['env:NOT_SET']\n", r"Error: server\.keys names the environment variable NOT_SET"),
        ("", r"Error: dragoman\.toml: there is no upstream"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "check"])
def test_a_bad_config_is_a_one_line_error(text: str, says: str, command: str, tmp_path: Path) -> None:
    upstreams = '[upstreams.up]\nprotocol = "gemini"\nbase_url = "http://127.0.0.1:9"\n' if text else ""
    (tmp_path / "dragoman.toml").write_text(text + upstreams)
    with dragoman(tmp_path, command) as process:
        assert process.wait() == 1
        said = process.wait_for(says).string
    assert said[said.index("Error") :].count("\n") == 1


def test_a_public_host_without_keys_is_refused_on_the_command_line(serve: Callable[..., Process]) -> None:
    process = serve("--host", "0.0.0.0")
    assert process.wait() == 1
    assert "set keys" in process.wait_for("Error: .*").group()


def test_an_unknown_host_is_a_one_line_error(serve: Callable[..., Process]) -> None:
    process = serve("--host", "127.0.0.1.nowhere.invalid")
    assert process.wait() == 1
    process.wait_for("Error: ")
    assert "Traceback" not in process.said


@pytest.mark.parametrize(
    "junk",
    [
        b"BREW /v1/models?key=sk-secret-in-the-line HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx-api-key: " + b"sk-secret-in-the-line" * 2000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nx api key: sk-secret-in-the-line\r\n\r\n",
        b"\x16\x03\x01 sk-secret-in-the-line\r\n\r\n",
    ],
    ids=["method", "too long", "bad header", "tls"],
)
def test_the_log_of_malformed_http_holds_no_secret(junk: bytes, serve: Callable[..., Process]) -> None:
    process = serve("--log-level", "debug")
    url = process.ready()
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=10) as client:
        client.sendall(junk)
        answer = client.recv(65_536)
    assert answer.split()[1] in (b"400", b"431")
    assert b"Traceback" not in answer
    assert post(f"{url}/v1/messages", ASKED).status == 200  # it continues to serve
    process.wait_for("anthropic demo -> up/demo")
    assert "sk-secret-in-the-line" not in process.said
    assert "Traceback" not in process.said


# Several processes


def answered(url: str, key: str) -> int:
    """The number of answered requests, by the worker that accepts this connection."""
    page = call(f"{url}/metrics", x_api_key=key).body
    return sum(int(float(n)) for n in re.findall(rb'requests_total\{.*outcome="ok".*\} (.*)', page))


def test_several_processes_share_the_port_and_end_together(
    serve: Callable[..., Process], tmp_path: Path
) -> None:
    key = "key-in-the-file"
    process = serve("--workers", "2", "--port", "0", server=f'keys = ["{key}"]', TMPDIR=str(tmp_path))
    url = process.ready()
    assert process.said.count("Dragoman is at") == 1
    for _ in range(21):
        assert post(f"{url}/v1/messages", ASKED, x_api_key=key).status == 200
    assert {answered(url, key) for _ in range(20)} == {21}, "every worker counts the requests of all"
    pids = re.findall(r'"worker ready","pid":(\d+)', process.said)
    counted = {file.name for file in tmp_path.glob("dragoman-*/counter_*.db")}
    assert counted == {f"counter_{pid}.db" for pid in pids}
    assert len(pids) == 2
    os.kill(int(pids[0]), signal.SIGKILL)
    process.wait_for("worker ended and is replaced")
    assert post(f"{url}/v1/messages", ASKED, x_api_key=key).status == 200
    assert {answered(url, key) for _ in range(5)} == {22}, "counts of a dead worker stay"
    process.interrupt()
    assert process.wait() == 0
    with pytest.raises(ConnectionRefusedError):
        call(url)
    assert list(tmp_path.glob("dragoman-*")) == []
    assert "Traceback" not in process.said


def test_every_worker_counts_the_running_answers_of_all(
    serve: Callable[..., Process], upstream: ScriptedUpstream
) -> None:
    upstream.script(*[slowly(FOREVER)] * 3)
    process = serve("--workers", "2")
    url = process.ready()
    clients = [Streaming(url) for _ in range(3)]
    assert {call(f"{url}/healthz").json["streams"] for _ in range(20)} == {3}
    for pid in re.findall(r'"worker ready","pid":(\d+)', process.said):
        os.kill(int(pid), signal.SIGKILL)
    process.wait_for(r"(?s)worker ended and is replaced.*worker ended and is replaced")
    answers = [b"", b"", b""]
    for number, client in enumerate(clients):
        with contextlib.suppress(http.client.HTTPException, ConnectionError):
            answers[number] = client.rest()
    assert not any(b"message_stop" in answer for answer in answers)
    end = time.monotonic() + 20
    while (streams := health(url)) is None and time.monotonic() < end:
        time.sleep(0.05)
    assert streams == 0, "a dead worker has no running answers"


def health(url: str) -> int | None:
    try:
        return call(f"{url}/healthz").json["streams"]
    except OSError:
        return None


def test_workers_let_answers_finish_too(serve: Callable[..., Process], upstream: ScriptedUpstream) -> None:
    upstream.script(slowly(0.5))
    process = serve("--workers", "2")
    client = Streaming(process.ready())
    process.interrupt()
    process.wait_for("answers under way may finish")
    assert b"message_stop" in client.rest()
    assert process.wait() == 0


def test_workers_do_not_outlive_their_parent(serve: Callable[..., Process]) -> None:
    process = serve("--workers", "2")
    url = process.ready()
    process.signal(signal.SIGKILL)
    process.wait()
    for _ in range(500):
        try:
            call(f"{url}/healthz")
        except OSError:
            return
        time.sleep(0.02)
    pytest.fail("somebody still answers")


def test_serving_imports_no_unneeded_module() -> None:
    script = (
        "import sys, dragoman.cli, dragoman.cli.serve.service; "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('genai_prices', 'pydantic', 'multiprocessing', 'httpx') or m in "
        "('dragoman.conform.scripted', 'dragoman.cli.check.probe', 'dragoman.cli.demo.gateway')])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_workers_record_into_one_folder_and_share_their_receipts(
    serve: Callable[..., Process], tmp_path: Path
) -> None:
    process = serve("--workers", "2", "--record", "recordings")
    url = process.ready()
    made = {post(f"{url}/v1/messages", STREAMED).headers["x-dragoman-exchange"] for _ in range(6)}

    def listed() -> set[str]:
        return {said["id"] for said in call(f"{url}/exchanges").json["exchanges"]}

    # A worker knows its own receipts at once, and those of others after they are written.
    def listed_by_every_worker() -> bool:
        return all(listed() == made for _ in range(6))

    assert any(listed_by_every_worker() or time.sleep(0.05) for _ in range(100))
    process.interrupt()
    assert process.wait() == 0
    recordings = [load(path) for path in (tmp_path / "recordings").iterdir()]
    assert {recording.begun.id for recording in recordings} == made
    assert all(replay(recording).same for recording in recordings)


def test_a_recording_survives_a_crash(
    serve: Callable[..., Process], upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    upstream.script(slowly(FOREVER))
    process = serve("--record", "recordings")
    client = Streaming(process.ready())

    def sent_so_far() -> bytes:
        begun = [path for path in (tmp_path / "recordings").iterdir() if path.stat().st_size]
        return b"".join(load(path).sent for path in begun)

    assert any(sent_so_far() or time.sleep(0.05) for _ in range(200)), (
        "the recording is written during the exchange"
    )
    process.signal(signal.SIGKILL)
    with contextlib.suppress(http.client.HTTPException, ConnectionError):
        client.rest()
    (path,) = (tmp_path / "recordings").iterdir()
    recording = load(path)
    assert recording.ended is None
    assert recording.sent.startswith(client.first)
    assert replay(recording).same


def test_an_unusable_recording_folder_is_an_error(serve: Callable[..., Process], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    process = serve("--record", "taken/below")
    process.wait_for(r"^Error: exchanges cannot be recorded in [^\n]*; give another folder\n$")
    assert process.wait() == 1
