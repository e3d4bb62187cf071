"""`dragoman check`: every upstream is asked, and each problem comes with a fix."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.processes import dragoman
from support.scripted_upstream import (
    Reply,
    ScriptedUpstream,
    in_background,
    no_answer,
    redirect,
    refused_url,
    slow_headers,
    status,
)

from dragoman.cli import main
from dragoman.cli.check.probe import Finding, check
from dragoman.config import loads

ENV = {"KEY": "sk-secret-12345"}


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background(ScriptedUpstream(pace=1)) as served:
        yield served


def toml(url: str, protocol: str = "openai-chat", credential: str = "env:KEY", more: str = "") -> str:
    head = f'[upstreams.up]\nprotocol = "{protocol}"\nbase_url = "{url}"\ncredential = "{credential}"\n'
    return head + more


def found(text: str, time_limit: float = 5.0) -> Finding:
    [finding] = asyncio.run(check(loads(text, env=ENV), ENV, time_limit))
    assert ENV["KEY"] not in str(finding)
    return finding


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_an_upstream_that_answers_is_ok(protocol: str, upstream: ScriptedUpstream) -> None:
    finding = found(toml(upstream.url, protocol))
    assert (finding.ok, finding.message) == (True, "answers (200)")
    assert upstream.last.method == "GET"
    assert upstream.last.key == ENV["KEY"]


@pytest.mark.parametrize(
    ("answer", "says", "advice"),
    [
        (status(401), "the upstream refuses the credential (401)", "renew the credential in"),
        (status(403), "the upstream refuses the credential (403)", "renew the credential in"),
        (
            status(400, b'{"error": {"message": "API key not valid."}}'),
            "the upstream refuses the credential (400)",
            "KEY",
        ),
        (status(503), "the upstream fails (503 at", "later"),
        (redirect("http://127.0.0.1:1/v1/models"), "redirects to another address (307)", "base_url"),
        (no_answer(), "closed the connection before it answered", "running"),
        (slow_headers(5), "no answer from", "can reach it"),
    ],
)
def test_each_problem_is_named_with_a_fix(
    answer: Reply, says: str, advice: str, upstream: ScriptedUpstream
) -> None:
    upstream.otherwise = answer
    finding = found(toml(upstream.url), time_limit=1)
    assert not finding.ok
    assert says in finding.message
    assert advice in finding.advice


def test_an_unreachable_upstream_is_reported() -> None:
    finding = found(toml(refused_url()))
    assert not finding.ok
    assert "refuses connections" in finding.message


def test_a_missing_credential_is_reported() -> None:
    finding = found(toml("http://127.0.0.1:9", credential="env:NOT_THERE"))
    assert not finding.ok
    assert "NOT_THERE" in finding.message


@pytest.mark.parametrize("answer", [status(404), status(200, b"<html>"), status(200, b"[1]")])
def test_a_server_without_a_model_list_is_ok(answer: Reply, upstream: ScriptedUpstream) -> None:
    upstream.script(answer)
    assert found(toml(upstream.url)).ok


def test_a_credential_of_the_client_cannot_be_checked(upstream: ScriptedUpstream) -> None:
    assert found(toml(upstream.url, credential="client")).ok
    assert upstream.seen == []


def test_unlisted_models_are_a_hint(upstream: ScriptedUpstream) -> None:
    routes = '[[routes]]\nmatch = "*"\nto = ["up/demo", "up/misspelt", "up/*"]\n'
    finding = found(toml(upstream.url, more=routes))
    assert finding.ok
    assert "misspelt" in finding.advice
    assert "demo," not in finding.advice
    upstream.script(status(200, json.dumps({"data": [{"id": "x"}], "has_more": True}).encode()))
    assert found(toml(upstream.url, more=routes)).advice == ""


def test_output_and_exit_code_of_the_command(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(toml(upstream.url))
    with dragoman(tmp_path, "check", **ENV) as process:
        assert process.wait() == 0
        process.wait_for(r"config: .*dragoman\.toml\n  up: ok: answers \(200\)\n")
    file.write_text(toml(upstream.url) + toml(refused_url()).replace("[upstreams.up]", "[upstreams.down]"))
    with dragoman(tmp_path, "check", "--config", str(file), **ENV) as process:
        assert process.wait() == 1
        process.wait_for(
            r"  up: ok: .*\n  down: NOT OK: .* refuses connections\n    check that it is running"
        )
    assert not (tmp_path / ".local").exists()


@pytest.mark.parametrize(
    "answer", [status(401), status(500), redirect("http://elsewhere/?key=sk-in-the-query")]
)
def test_a_key_in_the_query_is_not_shown(answer: Reply, upstream: ScriptedUpstream) -> None:
    upstream.script(answer)
    finding = found(toml(f"{upstream.url}?key=sk-in-the-query", credential="none"))
    assert not finding.ok
    assert "sk-in-the-query" not in str(finding)


def test_the_routes_are_listed_with_their_conditions(tmp_path: Path, upstream: ScriptedUpstream) -> None:
    routes = """
        [[routes]]
        match = "claude-*"
        when = { client = "claude-code", background = true, images = false }
        to = "up/small"
        [[routes]]
        when = { tokens_over = 100_000, tools = ["web_search", "mcp__*"], thinking = true }
        to = ["up/long", "up/*"]
        [[routes]]
        match = "*"
        to = "up/demo"
    """
    file = tmp_path / "dragoman.toml"
    file.write_text(toml(upstream.url, more=routes))
    done = CliRunner().invoke(main, ["check", "--config", str(file)], env=ENV)
    assert done.exit_code == 0, done.output
    assert done.output.partition("routes:\n")[2].splitlines() == [
        "  claude-* when client claude-code, background, no images → up/small",
        "  * when thinking, tool web_search or mcp__*, over 100,000 tokens → up/long, up/*",
        "  * → up/demo",
    ]
