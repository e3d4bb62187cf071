"""The command line: translate, rules, demo, help and error messages."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.sample_streams import SAMPLES

from dragoman import Options, Tool, __version__, translate
from dragoman.cli import main
from dragoman.conform import corpus, neutral
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

CASE = next(case for case in corpus.cases() if case["id"] == "alias-bash-prompt")
ANSWER = b"".join(corpus.upstream_chunks(CASE))


def run(*args: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
    result = CliRunner().invoke(main, args, input=stdin)
    return result.exit_code, result.stdout_bytes, result.stderr


@pytest.mark.parametrize("target", CLIENTS)
@pytest.mark.parametrize("source", PROTOCOLS)
def test_translate_is_a_filter_between_any_two_protocols(source: str, target: str) -> None:
    code, out, err = run("translate", "--from", source, "--to", target, stdin=SAMPLES[source]["tool"].stream)
    assert (code, err) == (0, "")
    said = neutral.reduce(target, out, stream=True)
    assert [call["name"] for call in said["tool_calls"]] == ["get_weather"]


def test_translate_writes_output_before_its_input_ends() -> None:
    command = [sys.executable, "-m", "dragoman", "translate", "--from", "openai-chat", "--to", "anthropic"]
    frames = SAMPLES["openai-chat"]["text"].stream.split(b"\n\n")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(frames[0] + b"\n\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"event: message_start\n"
        process.stdin.write(b"\n\n".join(frames[1:]))
        process.stdin.close()
        assert b"message_stop" in process.stdout.read()
    assert process.returncode == 0


@pytest.mark.parametrize("shape", ["plain", "anthropic", "chat", "responses", "gemini", "request"])
def test_tools_may_be_in_any_shape(shape: str, tmp_path: Path) -> None:
    tool = CASE["request_tools"][0]
    name, description, schema = tool["name"], tool["description"], tool["parameters"]
    shapes: dict[str, object] = {
        "plain": [tool],
        "anthropic": [{"name": name, "description": description, "input_schema": schema}],
        "chat": [{"type": "function", "function": tool}],
        "responses": [{"type": "function", **tool}],
        "gemini": [{"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]}],
        "request": {"tools": [tool]},
    }
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(shapes[shape]))
    code, out, err = run(
        "translate",
        "--from",
        "openai-chat",
        "--to",
        "anthropic",
        "--tools",
        str(file),
        "--explain",
        stdin=ANSWER,
    )
    assert code == 0
    assert (
        neutral.reduce("anthropic", out, stream=True)["tool_calls"][0]["arguments"]["command"] == "git status"
    )
    assert "tool-alias at /prompt" in err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not JSON"),
        ('"x"', "expected a list of tools"),
        ('[{"parameters": {}}]', "tools[0].name"),
        ('[{"name": "a", "parameters": 3}]', "tools[0].parameters"),
        ('[{"name": "a"}, {"type": "function", "function": {}}]', "tools[1]"),
    ],
)
def test_bad_tools_give_a_one_line_error(content: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(content)
    code, out, err = run("translate", "--from", "gemini", "--to", "gemini", "--tools", str(file))
    assert (code, out) == (1, b"")
    assert complaint in err
    assert "Traceback" not in err


def test_body_gives_one_json_document() -> None:
    code, out, _ = run("translate", "--from", "openai-chat", "--to", "anthropic", "--body", stdin=ANSWER)
    assert code == 0
    assert json.loads(out)["type"] == "message"


def test_a_failed_answer_is_reported_on_stderr() -> None:
    code, out, err = run("translate", "--from", "openai-chat", "--to", "gemini", stdin=ANSWER[:300])
    assert code == 0
    assert neutral.reduce("gemini", out, stream=True)["stop"] == "error"
    assert "ended in an error" in err


def test_rules_are_listed_as_text_and_as_json() -> None:
    _, text, _ = run("rules")
    _, listed, _ = run("rules", "--json")
    names = [rule["name"] for rule in json.loads(listed)]
    assert len(names) == len(set(names)) > 20
    assert all(name in text.decode() for name in names)


def test_demo_shows_its_four_scenes() -> None:
    code, out, _ = run("demo", "--show")
    text = out.decode()
    assert code == 0
    assert '{\\"command\\": \\"ls -la src\\", \\"timeout\\": 30}' in text
    assert '"name":"Read"' in text
    assert "rm -rf" not in "".join(line for line in text.splitlines() if "client" in line)
    assert "event: error" in text or '"type":"error"' in text


def test_dragoman_without_arguments_suggests_the_next_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_gateway_runs(settings: object, env: object) -> None:
        """The machine may run a real gateway at the default port."""

    monkeypatch.setattr("dragoman.cli.init.next_steps.running", no_gateway_runs)
    code, out, _ = run()
    assert code == 0
    assert b"dragoman demo" in out
    assert run("--version")[1].decode().strip() == f"dragoman {__version__}"


def test_an_unknown_protocol_error_lists_the_known_ones() -> None:
    code, _, err = run("translate", "--from", "smtp", "--to", "gemini")
    assert code == 2
    assert "openai-responses" in err


def test_translate_gives_the_same_as_the_library() -> None:
    tools = [Tool(name=t["name"], parameters=t["parameters"]) for t in CASE["request_tools"]]
    pieces = list(
        translate([ANSWER], "openai-chat", "openai-chat", tools=tools, options=Options(mode="whole"))
    )
    said = neutral.reduce("openai-chat", b"".join(pieces), stream=True)
    assert said["tool_calls"][0]["arguments"]["command"] == "git status"


@pytest.mark.parametrize("command", sorted(main.commands))
def test_help_keeps_the_lines_of_its_examples(command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert b"\\b" not in out
    assert (
        command not in ("tail", "translate")
        or b"\n    dragoman tail --failed" in out
        or b"\n    curl -sN" in out
    )
