"""`dragoman conform --upstream-port`: the recorded cases through our gateway and through faulty ones.

The default run plays one case of each theme and upstream; `make conform` plays them all.
"""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.endpoints import endpoint, idle_proxy
from support.gateways import Loop, gateway
from support.processes import dragoman
from support.wires import ANTHROPIC, CHAT, PROTOCOLS

from dragoman.cli import main
from dragoman.config import loads
from dragoman.conform import corpus
from dragoman.conform.corpus_trials import how_to

ALL = os.environ.get("DRAGOMAN_CONFORM") == "all"


def fails(case: Any) -> bool:
    return "error" in (case["expect"].get("stop_any") or [case["expect"]["stop"]])


def sample(way: str) -> list[str]:
    """The first case of each theme and upstream, and an error.

    Our gateway retries after a pause if the client has got no bytes yet, so few such cases are chosen.
    """
    found: dict[tuple[str, str], str] = {}
    for case in corpus.cases():
        if not fails(case) or (way == "stream" and case["expect"]["text"]):
            found.setdefault((case["theme"], case["upstream_protocol"]), case["id"])
    return [*found.values(), "err-200-envelope"]


def chosen(way: str = "stream") -> list[str]:
    return [] if ALL else [f"--only={id}" for id in sample(way)]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def conform(url: str, protocol: str, port: int, *options: str) -> tuple[int, Any]:
    options = ("--protocol", protocol, "--upstream-port", str(port), "--json", *options)
    result = CliRunner().invoke(main, ["conform", url, *options])
    assert result.stdout, result.output
    return result.exit_code, json.loads(result.stdout)


def states(report: Any, state: str) -> list[str]:
    return [trial["name"] for trial in report["trials"] if trial["state"] == state]


@pytest.mark.parametrize("way", ["stream", "whole"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_our_own_gateway_passes(loop: Loop, protocol: str, way: str) -> None:
    port = free_port()
    config = how_to(f"http://127.0.0.1:{port}", list(PROTOCOLS))
    with gateway(config, loop) as served:
        options = chosen(way) + (["--whole"] if way == "whole" else [])
        code, report = conform(served.url, protocol, port, *options)
    assert [trial for trial in report["trials"] if trial["state"] in ("broken", "skipped")] == []
    assert (code, report["problem"]) == (0, None)
    assert len(report["trials"]) == (len(corpus.cases()) if ALL else len(sample(way)))
    # The rule is off by default: see tests/test_corpus.py.
    assert set(states(report, "noted")) <= {"think-no-open"}


def test_a_plain_proxy_breaks_named_laws(loop: Loop) -> None:
    port = free_port()
    with idle_proxy(loop, f"http://127.0.0.1:{port}") as url:
        code, report = conform(url, CHAT, port, "--upstream-protocol", CHAT, *chosen())
    assert code == 1
    found = {law["name"]: law for law in report["laws"] if law["state"] == "broken"}
    assert {"said-calls", "said-stop", "said-text", "call-json", "terminal-event"} <= set(found)
    assert states(report, "kept")
    assert found["said-calls"]["first"]["bytes"].startswith("data: ")


def test_a_gateway_with_another_upstream_is_not_judged(loop: Loop) -> None:
    with endpoint(loop) as url:
        code, report = conform(url, CHAT, free_port(), "--only", "leak")
    assert code == 2
    assert "sent no request to" in report["problem"]
    assert set(states(report, "skipped")) == {trial["name"] for trial in report["trials"]}


def test_a_gateway_that_uses_another_protocol_is_reported(loop: Loop) -> None:
    port = free_port()
    with idle_proxy(loop, f"http://127.0.0.1:{port}") as url:
        code, report = conform(url, CHAT, port, "--upstream-protocol", ANTHROPIC, "--only", "finish")
    assert code == 2
    assert "--upstream-protocol" in report["problem"]
    assert "the case needs anthropic" in report["trials"][0]["skipped"]


def test_a_port_in_use_is_an_error(loop: Loop) -> None:
    with endpoint(loop) as url:
        port = url.rpartition(":")[2]
        result = CliRunner().invoke(
            main, ["conform", url, "--protocol", CHAT, "--upstream-port", port, "--only", "leak"]
        )
    assert result.exit_code == 2
    assert f"port {port} cannot be used" in result.output


def test_the_output_shows_a_config_for_the_gateway() -> None:
    told = CliRunner().invoke(main, ["conform", "--how", "--upstream-port", "9099"]).stdout
    config = loads(told, env={})
    assert {upstream.protocol for upstream in config.upstreams.values()} == set(PROTOCOLS)
    assert {route.match for route in config.routes} == {f"conform-{name}" for name in PROTOCOLS}


def test_the_demo_passes(tmp_path: Path) -> None:
    with dragoman(tmp_path, "demo", "--port", "0") as demo:
        url = demo.wait_for(r"Dragoman is at (http://\S+?), with").group(1)
        judged = CliRunner().invoke(main, ["conform", url, "--protocol", ANTHROPIC, "--model", "demo"])
    assert judged.exit_code == 0, judged.output
    assert "laws kept, 0 broken" in judged.stdout
