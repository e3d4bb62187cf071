"""`dragoman` without arguments suggests the next command for the state of the machine."""

from pathlib import Path

import pytest
from support.processes import dragoman

from dragoman.cli.init import next_steps

GROQ = "[server]\nport = {port}\n[upstreams.groq]\n"


def said(folder: Path, **env: str) -> str:
    with dragoman(folder, **env) as process:
        assert process.wait() == 0
        process.kill()
        assert len(process.said.splitlines()) <= 8
        return process.said


def no_gateway_runs(settings: object, env: object) -> None:
    """The machine may run a real gateway at the default port."""


@pytest.mark.parametrize(
    ("config", "env", "says", "commands"),
    [
        (None, {}, "There is no config yet", ["dragoman demo", "dragoman init"]),
        (
            None,
            {"GROQ_API_KEY": "x"},
            "GROQ_API_KEY is set",
            ["dragoman run", "dragoman serve", "dragoman init"],
        ),
        (GROQ.format(port=1), {}, "dragoman.toml names groq.", ["dragoman check", "dragoman run"]),
        ("[server\n", {}, "dragoman.toml:1: this is not valid TOML", ["dragoman check"]),
    ],
)
def test_the_next_command_is_suggested(
    config: str | None,
    env: dict[str, str],
    says: str,
    commands: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(next_steps, "running", no_gateway_runs)
    if config is not None:
        (tmp_path / "dragoman.toml").write_text(config)
    text = "\n".join(next_steps.orientation({"HOME": str(tmp_path), **env}, tmp_path))
    assert len(text.splitlines()) <= 8
    assert says in text
    assert all(f"  {command}" in text for command in commands)
    assert "\x1b" not in text


def test_a_running_gateway_is_detected(tmp_path: Path) -> None:
    with dragoman(tmp_path, "demo", "--port", "0") as gateway:
        url = gateway.ready()
        (tmp_path / "dragoman.toml").write_text(GROQ.format(port=url.rpartition(":")[2]))
        assert f"A gateway answers at {url}." in said(tmp_path)
