"""Early messages of the commands: addresses, credentials, model names, dates, failures."""

import json
import socket
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.plain_http import post
from support.processes import dragoman

from dragoman.cli.run.model_check import similar_model, wrong_upstream
from dragoman.cli.tail.lines import when
from dragoman.cli.time_option import PointInTime
from dragoman.config import ConfigError, loads
from dragoman.credentials import missing, parse

CONFIG = """
[server]
port = {port}
keys = ["env:GATEWAY_KEY"]
[upstreams.openrouter]
credential = "env:NOT_SET"
[upstreams.local]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
credential = "none"
"""


def test_unknown_key_is_named_without_an_upstream() -> None:
    with pytest.raises(ConfigError) as caught:
        loads("[tools]\ninvlid = 1", env={})
    first, second = caught.value.problems
    assert first.startswith("dragoman.toml: there is no upstream")
    assert second == 'dragoman.toml:2: unknown key "invlid" in [tools]; did you mean "invalid"?'


@pytest.mark.parametrize(
    ("credential", "why"),
    [
        ("env:NOT_SET", "the environment variable NOT_SET is not set"),
        ("env:SET", None),
        ("file:/nowhere/key", "the file /nowhere/key does not exist"),
        ("command:no-such-program --key", "the program no-such-program is not on the PATH"),
        ("none", None),
        ("client", None),
    ],
)
def test_missing_credential_is_reported_without_reading_it(credential: str, why: str | None) -> None:
    assert missing(parse(credential), {"SET": "secret"}) == why


def test_tail_finds_the_gateway_of_the_config_and_the_log_reports_failures(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    (tmp_path / "dragoman.toml").write_text(CONFIG.format(port=port))
    with dragoman(tmp_path, "serve", GATEWAY_KEY="k") as gateway:
        gateway.wait_for("Dragoman is at")
        assert (
            "the upstream openrouter cannot be used: the environment variable NOT_SET is not set"
            in gateway.said
        )
        body = {"model": "local/m", "messages": [{"role": "user", "content": "x"}]}
        post(f"http://127.0.0.1:{port}/v1/chat/completions", body, authorization="Bearer k")
        gateway.wait_for('"error":')
        line = next(json.loads(line) for line in gateway.said.splitlines() if '"outcome":' in line)
        assert line["level"] == "warning"
        assert "connect" in line["error"]
        with dragoman(tmp_path, "tail", "--since", "1h", GATEWAY_KEY="k") as tail:
            tail.wait_for("local/m")
            tail.interrupt()
            assert tail.wait() == 0


def test_the_store_is_read_without_the_keys_of_the_gateway(tmp_path: Path) -> None:
    # The gateway has its provider key from the environment. Another terminal does not have it.
    keys = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "k"}
    with dragoman(tmp_path, "serve", "--port", "0", **keys) as gateway:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi there"}]}
        post(f"{gateway.ready()}/v1/chat/completions", body)
        gateway.interrupt()
        gateway.wait()
    for command, told in {
        ("usage",): "total",
        ("scores",): "openai/m",
        ("cache",): "Hi there",
        ("store", "status"): "receipts   1",
        ("replay", "--last-failed"): "connect",
    }.items():
        with dragoman(tmp_path, *command) as reader:
            assert reader.wait() == 0, reader.said
            reader.wait_for(told)


def test_time_of_another_day_has_its_date() -> None:
    now = time.time()
    assert len(when(now, now)) == len("12:00:00")
    assert when(now - 3 * 86_400, now).startswith(
        time.strftime("%Y-%m-%d ", time.localtime(now - 3 * 86_400))
    )


def test_point_in_time_is_an_age_or_a_date() -> None:
    kind = PointInTime()
    assert kind.convert("2h", None, None) == pytest.approx(time.time() - 7200, abs=60)
    assert kind.convert("2026-01-02T03:04+00:00", None, None) == 1767323040
    from dragoman.cli import main

    result = CliRunner().invoke(main, ["tail", "--since", "soon"])
    assert result.exit_code == 2
    assert "'soon' is no time: write 30m, 2h, 7d or a date" in result.output


def test_misspelt_model_is_reported_before_the_agent_starts() -> None:
    config = loads(CONFIG.format(port=1), env={})
    assert (
        wrong_upstream(config, "openruter/x")
        == "there is no upstream 'openruter'; did you mean 'openrouter'?"
    )
    assert wrong_upstream(config, "openrouter/x") is None
    assert wrong_upstream(config, "google/gemini") is None
    assert similar_model("gpt-5.2-codx", ["gpt-5.2-codex", "o9"]) == "gpt-5.2-codex"
    assert similar_model("o9", ["gpt-5.2-codex", "o9"]) is None
