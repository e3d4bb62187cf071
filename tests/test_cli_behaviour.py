"""Behaviour that all commands share: closed pipes, colours, Ctrl-C, mistakes, exit codes, completion."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.processes import accept_ctrl_c, dragoman
from support.scripted_upstream import FOREVER, ScriptedUpstream, in_background, slow_headers
from support.terminals import on_terminal

from dragoman.cli import main
from dragoman.cli.errors import CODES, OWN_CODES
from dragoman.cli.options import CLIENT, UPSTREAM
from dragoman.cli.run.agents import AGENTS
from dragoman.protocols.registry import CLIENTS as EVERY_CLIENT
from dragoman.protocols.registry import upstreams

DRAGOMAN = [sys.executable, "-m", "dragoman"]
TALKATIVE = [["--help"], ["rules"], ["rules", "--json"], ["demo", "--show"], ["run"], ["init", "--help"], []]


def run_quietly(*args: str, stdout: object, **more: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # type: ignore[call-overload]
        [*DRAGOMAN, *args], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, **more
    )


@pytest.mark.parametrize("args", TALKATIVE, ids=" ".join)
def test_a_closed_pipe_is_no_error(args: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = run_quietly(*args, stdout=theirs)
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("args", [["--help"], ["rules"]], ids=" ".join)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_full_disk_gives_a_one_line_error(args: list[str], unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        done = run_quietly(*args, stdout=full, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


@pytest.mark.parametrize("args", TALKATIVE, ids=" ".join)
def test_no_colours_are_written_to_a_pipe(args: list[str]) -> None:
    done = run_quietly(*args, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_written_to_terminals_unless_no_color_is_set(
    env: dict[str, str], coloured: bool, tmp_path: Path
) -> None:
    with on_terminal(tmp_path, "rules", **env) as terminal:
        terminal.expect("answer")
        terminal.expect("defaults")
        assert terminal.wait() == 0
        assert ("\x1b[" in terminal.said) is coloured


def test_ctrl_c_ends_a_filter_that_waits() -> None:
    command = [*DRAGOMAN, "translate", "--from", "openai-chat", "--to", "anthropic"]
    frame = b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    frame += b'"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}\n\n'
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=accept_ctrl_c,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(frame)
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read().strip() == b""


def test_ctrl_c_ends_a_check_that_waits(tmp_path: Path) -> None:
    with in_background(ScriptedUpstream()) as upstream:
        upstream.otherwise = slow_headers(FOREVER)
        text = f'[upstreams.up]\nprotocol = "openai-chat"\nbase_url = "{upstream.url}"\n'
        (tmp_path / "dragoman.toml").write_text(text)
        with dragoman(tmp_path, "check") as process:
            asyncio.run(upstream.wait_seen(within=20))
            process.interrupt()
            assert process.wait() == 130
            process.kill()
            assert "Traceback" not in process.said


@pytest.mark.parametrize(
    ("args", "fix"),
    [
        (["serv"], "Did you mean 'serve'?"),
        (["serve", "--prot", "1"], "'--port'?"),
        (["run", "cloude"], "claude"),
        (["serve", "--config", "nowhere.toml"], "--config names the file nowhere.toml, which does not exist"),
        (["replay", "nowhere"], "nowhere"),
        (["replay", "--page", "x.html", "nowhere"], "--page writes the comparison of --against"),
        (["replay", "--against", "x/y"], "--against needs a recording, a folder of recordings, or a session"),
        (["tail", "--url", "nonsense"], "nonsense: a URL must begin with http:// or https://"),
        (["env"], "Missing argument 'CLIENT'"),
        (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
    ],
)
def test_a_usage_error_suggests_a_fix(args: list[str], fix: str) -> None:
    result = CliRunner().invoke(main, args)
    assert result.exit_code in (1, 2)
    assert fix in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error: ")]) == 1


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["serve", "--help"], ["completion", "fish"]])
def test_help_and_version_import_no_heavy_module(args: list[str]) -> None:
    code = (
        "import sys\nfrom dragoman.cli import main\n"
        f"try:\n    main({args!r})\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'asyncio', 'aiohttp', 'msgspec', 'jsonschema_rs', 'dragoman.translation.translation'}\n"
        "sys.exit(str(heavy & {*sys.modules}) if heavy & {*sys.modules} else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_line_knows_every_protocol() -> None:
    assert ([*UPSTREAM.choices], [*CLIENT.choices]) == ([*upstreams()], [*EVERY_CLIENT])


def test_exit_codes_belong_to_existing_commands() -> None:
    assert set(OWN_CODES) <= set(main.commands)
    assert set(CODES) == {0, 1, 2, 130}


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("trans", {"translate"}),
        ("serve --wor", {"--workers"}),
        ("run cl", {name for name in AGENTS if name.startswith("cl")}),
        ("translate --mode ", {"live", "whole"}),
    ],
)
def test_bash_completion(words: str, completed: set[str], tmp_path: Path) -> None:
    command = tmp_path / "dragoman"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
    command.chmod(0o755)
    last = len(words.split(" "))
    nothing = ' ""' if words.endswith(" ") else ""
    script = (
        'eval "$(dragoman completion bash)"; '
        f"COMP_WORDS=(dragoman {words}{nothing}); COMP_CWORD={last}; "
        '_dragoman_completion dragoman; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == completed
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_of_other_shells(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell]).stdout
    assert f"_DRAGOMAN_COMPLETE={shell}_complete" in script
    asked = {"_DRAGOMAN_COMPLETE": f"{shell}_complete", "COMP_WORDS": "dragoman concise", "COMP_CWORD": "con"}
    asked |= {"COMP_WORDS": "dragoman con", "COMP_CWORD": "1" if shell == "zsh" else "con"}
    done = run_quietly(stdout=subprocess.PIPE, env={**os.environ, **asked})
    assert "conform" in done.stdout
    assert "serve" not in done.stdout
