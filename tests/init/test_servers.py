"""Detection of local model servers by their answers. Other machines are never asked."""

import asyncio
import json

import pytest
from support.scripted_upstream import Reply, ScriptedUpstream, in_background, no_answer, redirect, status

from dragoman.cli.init.candidates import UpstreamCandidate
from dragoman.cli.init.config_text import config_text
from dragoman.cli.init.servers import servers
from dragoman.config import loads


def ollama(env: dict[str, str], time_limit: float = 5.0) -> UpstreamCandidate | None:
    """Look only at this provider: other servers may run on this machine."""
    found = asyncio.run(servers(env, time_limit))
    return next((each for each in found if each.name == "ollama"), None)


@pytest.mark.parametrize(
    "written", ["{host}:{port}", "http://{host}:{port}", "0.0.0.0:{port}", "localhost:{port}"]
)
def test_a_server_is_found_at_the_address_of_its_variable(written: str) -> None:
    with in_background(ScriptedUpstream(pace=1)) as upstream:
        upstream.otherwise = status(200, json.dumps({"data": [{"id": "qwen3"}, {"id": 7}, {}]}).encode())
        host, _, port = upstream.url.removeprefix("http://").partition(":")
        found = ollama({"OLLAMA_HOST": written.format(host=host, port=port)})
        assert upstream.last.path == "/v1/models"
        assert upstream.last.key is None
    assert found is not None
    assert found.models == ("qwen3",)


def test_a_server_without_models_is_found() -> None:
    with in_background(ScriptedUpstream(pace=1)) as upstream:
        upstream.otherwise = status(200, b'{"object":"list","data":[]}')
        found = ollama({"OLLAMA_HOST": upstream.url})
    assert found is not None
    config = loads(config_text([found], port=1))
    assert config.routes[0].to[0].model == "*"


@pytest.mark.parametrize(
    "reply",
    [
        status(200, b"<html>A web page</html>"),
        status(200, b'{"data": "no list"}'),
        status(200, b"[]"),
        status(200, b"\xff\xfe"),
        status(404),
        redirect("http://192.0.2.1/"),
        no_answer(),
        status(200, b'{"data": []}', x_dragoman_exchange="1"),
    ],
    ids=["page", "other JSON", "array", "bytes", "404", "redirect", "hangs up", "a Dragoman"],
)
def test_a_server_that_is_no_model_server_is_ignored(reply: Reply) -> None:
    with in_background(ScriptedUpstream(pace=1)) as upstream:
        upstream.otherwise = reply
        assert ollama({"OLLAMA_HOST": upstream.url}) is None
        assert upstream.seen


def test_other_machines_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    from dragoman.cli.init import servers as module

    async def ask(_: object, provider: object, env: dict[str, str], time_limit: float) -> None:
        asked.append(module._address(provider, env))  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_ask", ask)
    for said in ("192.0.2.7:11434", "https://ollama.example.net", "http://[bad", "ollama"):
        assert ollama({"OLLAMA_HOST": said}) is None
    assert {url.split("/")[2].partition(":")[0] for url in asked} == {"127.0.0.1"}


@pytest.mark.parametrize("name", ['a"b', "C:\\models\\x.gguf", "/models/x.gguf", "模型", "a'b#c", "x\x7fy"])
def test_any_model_name_survives_in_the_config(name: str) -> None:
    found = UpstreamCandidate(
        name="llamacpp", why="answers", models=(name, *(f"model-{n}" for n in range(20)))
    )
    config = loads(config_text([found], port=4545))
    assert config.upstreams["llamacpp"].models[0].name == name
    assert config.routes[-1].to[0].model == name
