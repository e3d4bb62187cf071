"""`dragoman run` and `dragoman env`: agents use the gateway, and the user's own settings stay unchanged."""

import json
import os
import pty
import select
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.plain_http import call
from support.processes import Process, dragoman

from dragoman.cli import main
from dragoman.cli.run.agents import AGENTS, find_agent
from dragoman.cli.run.gateway import GatewayInfo, client_key
from dragoman.cli.run.shell import SHELLS
from dragoman.cli.run.wiring import PLACEHOLDER, AgentEndpoint
from dragoman.config import loads
from dragoman.model.errors import DragomanError

EVERY_CLIENT = pytest.mark.parametrize("name", AGENTS)

# A fake agent: records its arguments, asks the gateway for its health, and exits with the given code.
AGENT = f"""#!{sys.executable}
import json, os, signal, sys, urllib.request
files = {{a: open(a).read() for a in sys.argv[1:] if os.path.isfile(a)}}
files |= {{v: open(v).read() for v in os.environ.values() if os.path.isfile(v) and v.endswith(".json")}}
modes = {{name: os.stat(name).st_mode for name in files}}
seen = dict(env=dict(os.environ), args=sys.argv[1:], files=files, modes=modes)
base = os.environ.get("ANTHROPIC_BASE_URL")
if base:
    seen["health"] = json.load(urllib.request.urlopen(base + "/healthz"))
json.dump(seen, open(os.environ["SEEN"], "w"))
if "wait" in sys.argv:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    print("waiting", flush=True)
    signal.sigwait([signal.SIGTERM])
    sys.exit(42)
sys.exit(7)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with every agent installed and one upstream."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for each in AGENTS.values():
        (programs / each.program).write_text(AGENT)
        (programs / each.program).chmod(0o755)
    (tmp_path / "dragoman.toml").write_text(config())
    return tmp_path


def config(server: str = "", credential: str = "none") -> str:
    return (
        f'[server]\nport = 1\n{server}\n[upstreams.local]\nprotocol = "openai-chat"\n'
        f'base_url = "http://127.0.0.1:9/v1"\ncredential = "{credential}"\n'
        '[[routes]]\nmatch = "coder"\nto = "local/coder"\n'
    )


def variables(home: Path) -> dict[str, str]:
    return {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "SEEN": str(home / "seen.json")}


def running(home: Path, *args: str, **env: str) -> Any:
    return dragoman(home, "run", *args, **(variables(home) | env))


def seen(home: Path) -> dict[str, Any]:
    return json.loads((home / "seen.json").read_text())


def place(tmp_path: Path, key: str | None = PLACEHOLDER) -> AgentEndpoint:
    env = {"HOME": str(tmp_path), "OPENAI_API_KEY": "own"}
    return AgentEndpoint(
        url="http://127.0.0.1:1", key=key, model="a/b:c", models=("a/b:c", "d"), folder=tmp_path, env=env
    )


def test_an_agent_gets_a_gateway_and_its_exit_code_is_returned(home: Path) -> None:
    mine = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with running(home, "--model", "coder", "claude", "-p", "hi", "--help") as process:
        assert process.wait() == 7
        assert process.said == ""
    got = seen(home)
    assert got["health"]["status"] == "ok"
    assert got["args"][2:] == ["-p", "hi", "--help"]
    assert got["env"]["ANTHROPIC_MODEL"] == "coder"
    assert (
        got["env"]["ANTHROPIC_BASE_URL"]
        == json.loads(got["files"][got["args"][1]])["env"]["ANTHROPIC_BASE_URL"]
    )
    assert not Path(got["args"][1]).parent.exists()
    assert {path: path.read_bytes() for path in mine} == mine
    assert (home / ".local/share/dragoman/run.log").exists()


@EVERY_CLIENT
def test_every_agent_uses_a_running_gateway(home: Path, name: str, demo: str) -> None:
    env = {"ANTHROPIC_API_KEY": "mine", "GOOGLE_GENAI_USE_VERTEXAI": "true"}
    port = demo.rpartition(":")[2]
    with running(home, "--port", port, "--model", "demo-leak", name, "one", "two", **env) as process:
        assert process.wait() == 7
    got = seen(home)
    told = json.dumps([got["args"], got["files"], {k: v for k, v in got["env"].items() if k not in env}])
    assert demo in told
    assert "demo-leak" in told
    assert PLACEHOLDER in told
    assert got["args"][-2:] == ["one", "two"]
    assert all(stat.S_IMODE(mode) == 0o600 for mode in got["modes"].values())
    assert not any(Path(file).exists() for file in got["files"])
    assert not (home / ".local/share/dragoman/run.log").exists()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with dragoman(tmp_path_factory.mktemp("demo"), "demo", "--port", "0") as process:
        yield process.ready()


def test_signals_reach_the_agent(home: Path) -> None:
    with running(home, "claude", "wait") as process:
        process.wait_for("waiting")
        gateway = seen(home)["env"]["ANTHROPIC_BASE_URL"]
        assert call(f"{gateway}/healthz").status == 200
        process.signal(signal.SIGTERM)
        assert process.wait() == 42
    with pytest.raises(OSError, match="refused"):
        call(f"{gateway}/healthz")


COUNTS = f"""#!{sys.executable}
import os, select, signal, sys
heard = []
wakes, waker = os.pipe()
os.set_blocking(waker, False)
signal.set_wakeup_fd(waker)  # else a signal that comes just before the wait does not end it
signal.signal(signal.SIGINT, lambda *_: (heard.append(1), os.write(1, b"interrupted")))
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"told"))
os.write(1, b"waiting")
while 0 not in select.select([0, wakes], [], [])[0]:
    os.read(wakes, 64)
sys.exit(len(heard))
"""


def test_a_terminal_interrupts_the_agent_once(home: Path) -> None:
    (home / "bin" / "claude").write_text(COUNTS)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", ON_TERMINAL, os.ttyname(theirs), "run", "claude"]
    env = {"HOME": str(home), "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **variables(home)}
    process = subprocess.Popen(command, cwd=home, env=env, start_new_session=True)
    try:
        read_until(ours, b"waiting")
        for _ in range(5):
            os.write(ours, b"\x03")
            read_until(ours, b"interrupted")
            # Dragoman forwards signals in order: a second interrupt would arrive before this one.
            process.send_signal(signal.SIGUSR1)
            read_until(ours, b"told")
        os.write(ours, b"\n")
        assert process.wait(20) == 5
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


# A session leader that opens a terminal gets it as its controlling terminal.
ON_TERMINAL = """
import os, sys
terminal = os.open(sys.argv.pop(1), os.O_RDWR)
for number in range(3):
    os.dup2(terminal, number)
from dragoman.cli import main
main()
"""


def read_until(terminal: int, wanted: bytes) -> None:
    error_output = b""
    while wanted not in error_output:
        ready, _, _ = select.select([terminal], [], [], 20)
        assert ready, error_output
        error_output += os.read(terminal, 1024)


def test_an_agent_killed_by_a_signal_gives_the_exit_code_of_shells(home: Path) -> None:
    (home / "bin" / "codex").write_text("#!/bin/sh\nkill -9 $$\n")
    with running(home, "codex") as process:
        assert process.wait() == 128 + 9


def error_output(home: Path, *args: str, **env: str) -> str:
    """The error output of a failing command."""
    process: Process
    with dragoman(home, *args, **(variables(home) | env)) as process:
        assert process.wait() == 1
        process.wait_for("Error")
        assert "Traceback" not in process.said
        return process.said


def test_a_usage_error_is_one_line(home: Path) -> None:
    assert "npm install -g @openai/codex" in error_output(home, "run", "codex", PATH="/nowhere")
    assert "did you mean claude?" in error_output(home, "run", "clade")
    (home / "dragoman.toml").write_text("[server]\n")
    assert "there is no upstream" in error_output(home, "run", "claude")
    (home / "dragoman.toml").write_text(
        config().replace('match = "coder"', 'match = "*"').replace("local/coder", "local/*")
    )
    assert "--model NAME cline" in error_output(home, "run", "cline")


def test_run_without_an_agent_lists_all_agents(home: Path) -> None:
    (home / "bin" / "aider").unlink()
    with running(home, PATH=str(home / "bin")) as process:
        assert process.wait() == 0
        process.wait_for("aider: not installed")
        assert all(name in process.said for name in AGENTS)


def test_the_gateways_key_is_passed_on(home: Path) -> None:
    (home / "dragoman.toml").write_text(config('keys = ["env:GATE"]'))
    with running(home, "claude", GATE="open-sesame") as process:
        assert process.wait() == 7
    assert seen(home)["env"]["ANTHROPIC_AUTH_TOKEN"] == "open-sesame"


def test_a_client_credential_keeps_the_users_key() -> None:
    own = loads(config(credential="client"), env={})
    assert client_key(own, {}) is None
    wiring = find_agent("claude").wire(place(Path("/tmp/x"), None))
    assert "ANTHROPIC_AUTH_TOKEN" not in wiring.env
    assert "ANTHROPIC_API_KEY" not in wiring.without
    assert find_agent("codex").wire(place(Path("/tmp/x"), None)).env == {"OPENAI_API_KEY": "own"}


def test_a_known_context_window_is_passed_to_the_agent(home: Path) -> None:
    models = 'credential = "none"\nmodels = [{ name = "coder", context = 131072 }]'
    (home / "dragoman.toml").write_text(config().replace('credential = "none"', models))
    for name, wanted in (("claude", "131072"), ("codex", "model_context_window=131072"), ("pi", "131072")):
        with running(home, "--model", "coder", name) as process:
            assert process.wait() == 7
        got = seen(home)
        assert wanted in json.dumps([got["args"], got["files"], got["env"]])
    assert GatewayInfo(url="", config=loads(config(), env={})).window("nothing-known") is None


def test_gemini_keeps_the_users_settings(tmp_path: Path) -> None:
    own = tmp_path / ".gemini"
    own.mkdir()
    (own / "settings.json").write_text(
        '{"ui": {"theme": "x"}, "security": {"auth": {"selectedType": "oauth"}}}'
    )
    (own / "GEMINI.md").write_text("remember")
    folder = tmp_path / "private"
    wanted = place(tmp_path)
    wiring = find_agent("gemini").wire(wanted)
    wiring.write(folder)
    settings = json.loads((folder / ".gemini/settings.json").read_text())
    assert settings == {"ui": {"theme": "x"}, "security": {"auth": {"selectedType": "gemini-api-key"}}}
    assert (folder / ".gemini/GEMINI.md").read_text() == "remember"
    (own / "settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    assert find_agent("gemini").wire(wanted).files == {}
    (own / "settings.json").write_text("{ // mine\n}")
    with pytest.raises(DragomanError, match="comments"):
        find_agent("gemini").wire(wanted)


def test_an_agent_is_recognized_by_its_program() -> None:
    assert find_agent("cn").name == "continue"


@EVERY_CLIENT
def test_env_prints_shell_code(home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    printed = CliRunner(env={"HOME": str(home), "XDG_DATA_HOME": ""}).invoke(main, ["env", "--write", name])
    assert printed.exit_code == 0
    script = printed.output + "\nenv -0"
    clean = {"PATH": os.environ["PATH"]}
    shown = subprocess.run(["sh", "-c", script], capture_output=True, check=True, env=clean)
    env = dict(line.split("=", 1) for line in shown.stdout.decode().split("\0") if line)
    folder = home / ".local/share/dragoman" / name
    models = ("coder", "local/coder")
    chosen = "coder" if find_agent(name).needs_model else None
    at = AgentEndpoint(
        url="http://127.0.0.1:1", model=chosen, models=models, folder=folder, env={"HOME": str(home)}
    )
    wiring = find_agent(name).wire(at)
    assert {key: env[key] for key in wiring.env} == wiring.env
    assert printed.output.endswith(f"# Then: {shlex.join([find_agent(name).program, *wiring.args])}\n")
    for file, text in wiring.files.items():
        assert (folder / file).read_text() == text
        assert stat.S_IMODE((folder / file).stat().st_mode) == 0o600


def test_every_shell_has_its_quoting() -> None:
    assert [line("A", "it's $x") for line in SHELLS.values()] == [
        "export A='it'\"'\"'s $x'",
        "set -gx A 'it\\'s $x'",
        "$env:A = 'it''s $x'",
    ]
    assert [line("A", None) for line in SHELLS.values()] == ["unset A", "set -e A", "$env:A = $null"]
