"""`dragoman init` in a folder, with an environment, with and without a terminal."""

import contextlib
import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner
from support.processes import dragoman
from support.scripted_upstream import ScriptedUpstream, in_background, status
from support.terminals import Terminal, on_terminal

from dragoman.cli import main
from dragoman.config import ConfigError, loads
from dragoman.config.providers import providers

SECRET = "sk-not-to-be-written-anywhere"


@pytest.fixture
def ollama() -> Iterator[ScriptedUpstream]:
    """A local model server at another port than the default."""
    with in_background(ScriptedUpstream(pace=1)) as served:
        served.otherwise = status(200, listing("nomic-embed-text", "qwen3-coder:30b"))
        yield served


def listing(*names: str) -> bytes:
    return json.dumps(
        {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
    ).encode()


def init(folder: Path, *args: str, **env: str) -> tuple[int, str]:
    with mock.patch.dict(os.environ, {"HOME": str(folder), **env}, clear=True), contextlib.chdir(folder):
        result = CliRunner().invoke(main, ["init", *args])
    return result.exit_code, result.output


def decline_other_servers(terminal: Terminal) -> None:
    """Decline real model servers of this machine. Ends at the question for more upstreams."""
    while terminal.expect_any("by name or address (Enter: none)", "? [Y/n]") == "? [Y/n]":
        terminal.type("n\n")


def written(folder: Path, name: str = "dragoman.toml") -> str:
    return (folder / name).read_text()


def test_found_upstreams_become_a_config_that_check_accepts(tmp_path: Path, ollama: ScriptedUpstream) -> None:
    place = ollama.url.removeprefix("http://")
    code, said = init(tmp_path, OLLAMA_HOST=place)
    assert code == 0
    assert "dragoman.toml for " in said
    assert "dragoman check " in said
    config = loads(written(tmp_path))
    found = config.upstreams["ollama"]
    assert (found.url("/v1/chat/completions"), found.credential.kind) == (
        f"{ollama.url}/v1/chat/completions",
        "none",
    )
    assert [model.name for model in found.models] == ["nomic-embed-text", "qwen3-coder:30b"]
    assert [(r.match, r.to[0].upstream, r.to[0].model) for r in config.routes] == [
        ("*", "ollama", "qwen3-coder:30b")
    ]
    with dragoman(tmp_path, "check") as process:
        assert process.wait() == 0
        process.wait_for(r"ollama: ok: answers \(200\)")


def test_the_config_names_key_variables_and_never_their_values(tmp_path: Path) -> None:
    env = {"GROQ_API_KEY": SECRET, "GOOGLE_API_KEY": SECRET, "HF_TOKEN": SECRET}
    code, said = init(tmp_path, "--yes", "--port", "4600", **env)
    assert code == 0
    text = written(tmp_path)
    assert SECRET not in text + said
    assert 'credential = "env:GROQ_API_KEY"' in text
    config = loads(text)
    assert config.upstreams["gemini"].credential.name == "GOOGLE_API_KEY"
    assert "huggingface" not in config.upstreams  # many users have this key only for downloads
    assert config.server.port == 4600
    assert ("gemini-*", "gemini") in [(route.match, route.to[0].upstream) for route in config.routes]
    assert "export" not in said


def test_every_block_of_the_config_has_a_comment(tmp_path: Path) -> None:
    init(tmp_path, "--upstream", "groq")
    blocks = written(tmp_path).split("\n\n")
    assert all("#" in block or block.startswith("[[routes]]") for block in blocks if block.strip())
    # The commented-out settings are valid, too.
    loads(
        written(tmp_path)
        .replace('# host = "0.0.0.0" ', 'host = "0.0.0.0" ')
        .replace("# keys", "keys")
        .replace("# [t", "[t")
        .replace("# small", "small")
        .replace("# middle", "middle")
        .replace("# big", "big")
        .replace("# invalid", "invalid")
    )


ELSEWHERE = {
    "azure": "https://r.openai.azure.com",
    "azure-deployments": "https://r.openai.azure.com,api_version=2024-10-21",
    "foundry": "https://r.services.ai.azure.com/anthropic",
    "bedrock": "region=us-east-1",
    "bedrock-mantle": "region=us-east-1,env:MY_KEY",
    "vertex": "project=p,location=global,google",
    "cloudflare": "https://api.cloudflare.com/client/v4/accounts/a/ai/v1",
    "databricks": "https://w.cloud.databricks.com/ai-gateway/mlflow/v1",
    "snowflake": "https://a.snowflakecomputing.com/api/v2/cortex/v1",
}
"""What must be said besides the names of providers whose customers have addresses of their own."""


@pytest.mark.parametrize("name", providers())
def test_every_provider_can_be_chosen(name: str, tmp_path: Path) -> None:
    code, said = init(tmp_path, "--upstream", f"{name}={ELSEWHERE[name]}" if name in ELSEWHERE else name)
    assert code == 0, said
    assert list(loads(written(tmp_path), env={}).upstreams) == [name]


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_nothing_is_overwritten(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "dragoman.toml"
    if kind == "file":
        place.write_text("# mine\n")
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / "elsewhere.toml")
    code, said = init(tmp_path, "--upstream", "groq")
    assert code in (1, 2)
    assert "Traceback" not in said
    assert "dragoman.toml" in said
    assert kind != "file" or (place.read_text() == "# mine\n" and "--output FILE" in said)
    assert not (tmp_path / "elsewhere.toml").exists()


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--upstream", "nobody"], "not a known provider"),
        (["--upstream", f"groq={SECRET}"], "never the key itself"),
        (["--upstream", "a b=https://h"], "has no valid name"),
        (["--upstream", "work=https://me:pw@h"], "must not contain a user name"),
        (["--upstream", "azure"], "has no base_url"),
        (["--upstream", "groq", "--model", "gpt-5"], "write groq/MODEL"),
        (["--upstream", "groq", "--model", "x/gpt-5"], "not begin with an upstream of this config: groq"),
        (["--upstream", "groq", "--output", "no/such/folder.toml"], "make the folder no/such first"),
    ],
)
def test_a_usage_error_is_one_line_and_writes_no_file(
    args: list[str], complaint: str, tmp_path: Path
) -> None:
    code, said = init(tmp_path, *args)
    assert code == 1
    assert complaint in said
    assert said.count("\n") == 1
    assert SECRET not in said
    assert list(tmp_path.glob("**/*.toml")) == []


def test_flags_describe_an_upstream(tmp_path: Path) -> None:
    code, said = init(
        tmp_path,
        "--upstream",
        "work=anthropic,https://llm.example.net,env:WORK_KEY",
        "--upstream",
        "groq",
        "--model",
        "work/big",
        "-o",
        "my.toml",
        GROQ_API_KEY=SECRET,
        OPENROUTER_API_KEY=SECRET,
    )
    assert code == 0
    assert "export WORK_KEY=…" in said
    assert "dragoman serve --config my.toml" in said
    raw = tomllib.loads(written(tmp_path, "my.toml"))
    assert raw["upstreams"]["work"] == {
        "protocol": "anthropic",
        "base_url": "https://llm.example.net",
        "credential": "env:WORK_KEY",
    }
    assert list(raw["upstreams"]) == ["work", "groq"]
    assert raw["routes"][-1] == {"match": "*", "to": "work/big"}


def test_questions_on_a_terminal(tmp_path: Path, ollama: ScriptedUpstream) -> None:
    env = {"GROQ_API_KEY": SECRET, "HF_TOKEN": SECRET, "OLLAMA_HOST": ollama.url}
    with on_terminal(tmp_path, "init", **env) as terminal:
        terminal.answer("Use groq (GROQ_API_KEY is set)? [Y/n]", "n")
        terminal.answer("Use huggingface (HF_TOKEN is set)? [y/N]", "")
        terminal.answer("Use ollama", "")
        decline_other_servers(terminal)
        terminal.type("mistrall\n")
        terminal.expect("mistrall is neither a provider's name nor an address")
        terminal.answer("by name or address (Enter: none)", "https://llm.example.net/v1")
        terminal.answer("Its protocol", "openai-responses")
        terminal.answer("Its name in the config [example]", "work")
        terminal.answer("variable with its key", "WORK_KEY")
        terminal.answer("by name or address (Enter: none)", "mistral")
        terminal.answer("by name or address (Enter: none)", "")
        terminal.answer(
            "UPSTREAM/MODEL (UPSTREAM/* keeps the model's name) [ollama/qwen3-coder:30b]", "nobody/x"
        )
        terminal.expect("does not begin with an upstream of this config: ollama, work, mistral")
        terminal.answer("UPSTREAM/MODEL", "work/big")
        terminal.answer("Port [4545]", "4600")
        terminal.expect("Wrote dragoman.toml for ollama, work, mistral")
        terminal.expect("export WORK_KEY=…")
        terminal.expect("dragoman check")
        assert terminal.wait() == 0
        assert SECRET not in terminal.said
    config = loads(written(tmp_path))
    assert list(config.upstreams) == ["ollama", "work", "mistral"]
    assert config.upstreams["work"].protocol == "openai-responses"
    assert config.server.port == 4600
    assert config.routes[-1].to[0].model == "big"
    assert SECRET not in written(tmp_path)


def test_template_is_written_if_no_upstream_is_found(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "init", OLLAMA_HOST="127.0.0.1:1") as terminal:
        decline_other_servers(terminal)
        terminal.type("\n")
        terminal.expect("Wrote dragoman.toml as a template")
        assert terminal.wait() == 0
    text = written(tmp_path)
    with pytest.raises(ConfigError, match="there is no upstream"):
        loads(text, env={})
    lines = text.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("# [upstreams.openrouter]")))
    filled = [line.removeprefix("# ") if at in (first, first + 1) else line for at, line in enumerate(lines)]
    assert list(loads("\n".join(filled), env={}).upstreams) == ["openrouter"]


def test_ctrl_c_ends_init_without_a_file(tmp_path: Path) -> None:
    with on_terminal(tmp_path, "init", GROQ_API_KEY=SECRET) as terminal:
        terminal.expect("Use groq")
        assert terminal.interrupt() == 130
        assert "Traceback" not in terminal.said
    assert not (tmp_path / "dragoman.toml").exists()
