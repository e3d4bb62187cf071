"""A dummy protocol works everywhere once its record is in the registry.

Nothing in `src` knows it. `support.dummy` holds its code and registers it.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from gateway_harness import Gateway, Got, post, running, send
from support.dummy import NAME, VERSION, registered, samples
from support.scenarios import SCENARIOS
from support.scripted_talk import CALL, GENEROUS, answered, calls_of, parts_of, question, written
from support.scripted_upstream import ScriptedUpstream
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.cli import main
from dragoman.config import ConfigError, loads
from dragoman.conform.run import SuiteOptions, run
from dragoman.library import ToolCallBuffer
from dragoman.model.messages import Settings as Wishes
from dragoman.protocols.registry import CLIENTS

TESTS = Path(__file__).parent.parent
PAIRS = [*((client, NAME) for client in (*PROTOCOLS, NAME)), *((NAME, upstream) for upstream in PROTOCOLS)]
EVERY_PAIR = pytest.mark.parametrize(("client", "upstream"), PAIRS, ids="-to-".join)
STREAM_AND_WHOLE = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])

Scene = Callable[[Gateway, ScriptedUpstream], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def _dummy() -> Iterator[None]:
    with registered():
        yield


@asynccontextmanager
async def stage(**keys: str) -> AsyncGenerator[tuple[Gateway, ScriptedUpstream]]:
    """A gateway with one upstream per protocol, named after its protocol."""
    async with ScriptedUpstream() as upstream:
        lines = ["[server]\nretries = 0", keys.get("server", "")]
        for name in (*PROTOCOLS, NAME):
            lines.append(f'[upstreams.{name}]\nprotocol = "{name}"\nbase_url = "{upstream.url}"')
            lines.append(keys.get(name, 'credential = "none"'))
        async with running("\n".join(lines), {"DUMMY_KEY": "k-dummy-secret"}) as gateway:
            yield gateway, upstream


def play(scene: Scene, **keys: str) -> None:
    async def played() -> None:
        async with stage(**keys) as (gateway, upstream):
            await scene(gateway, upstream)

    asyncio.run(played())


@EVERY_PAIR
@STREAM_AND_WHOLE
def test_a_call_its_result_and_the_final_text(client: str, upstream: str, stream: bool) -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        asked = question(f"{upstream}/demo", stream=stream)
        first = await send(gateway, client, asked)
        assert first.status == 200, first.body
        assert first.said["stop"] == "tool_use"
        assert calls_of(first.said) == [CALL]
        second = await send(gateway, client, answered(asked, parts_of(first.said), "Sunny"))
        assert "get_weather answered: “Sunny”" in second.said["text"]
        assert second.said["stop"] == "end_turn"
        path = written(upstream, question(stream=stream))[0].partition("?")[0]
        assert {seen.path for seen in scripted.seen} == {path}

    play(scene)


@EVERY_PAIR
def test_calls_are_mended(client: str, upstream: str) -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        for model in ("demo-misnamed", "demo-interleaved", "demo-leak", "demo-fragments", "demo-thinking"):
            got = await send(gateway, client, question(f"{upstream}/{model}", stream=True))
            assert calls_of(got.said)[0] in (CALL, GENEROUS), model

    play(scene)


@EVERY_PAIR
def test_errors_have_the_form_of_the_protocol(client: str, upstream: str) -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        async def ask(model: str, stream: bool = True) -> Got:
            return await send(gateway, client, question(f"{upstream}/{model}", stream=stream))

        assert "key is not valid" in (await ask("demo-unauthorized")).is_refusal(401)
        assert "Rate limit" in (await ask("demo-ratelimit", stream=False)).is_refusal(429)
        assert "broke down" in (await ask("demo-error")).is_broken_off()
        assert (await ask("demo-cut")).is_broken_off()

    play(scene)


def test_bad_requests_get_an_error_in_the_form_of_the_protocol() -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        got = await post(gateway, NAME, "/v1/ask", b'{"model": 7}', stream=False)
        assert "model" in got.is_refusal(400)
        got = await post(gateway, NAME, "/v1/ask/nothing", b"{}", stream=False)
        assert "POST /v1/ask/nothing does not exist" in got.is_refusal(404)

    play(scene)


def test_models_are_listed_and_read_in_its_form() -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        async def models(path: str = "/v1/models") -> Any:
            headers = {VERSION: "1"}
            async with gateway.session.get(gateway.url + path, headers=headers) as response:
                assert response.status == 200
                return await response.json()

        names = [entry["called"] for entry in (await models())["models"]]
        assert {"dummy/demo-leak", "gemini/demo-leak"} <= set(names)
        assert await models("/v1/models/dummy/demo-leak") == {"called": "dummy/demo-leak"}

    play(scene)


COUNTS = {ANTHROPIC: "input_tokens", GEMINI: "totalTokens", NAME: "length"}


@pytest.mark.parametrize(
    ("client", "upstream"), [pair for pair in PAIRS if pair[0] in COUNTS], ids="-to-".join
)
def test_tokens_are_counted(client: str, upstream: str) -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        path, body = written(client, question(f"{upstream}/demo"))
        counting = CLIENTS[client].counting
        assert counting is not None
        got = await post(gateway, client, counting.path(path), body, stream=False)
        assert json.loads(got.body)[COUNTS[client]] > 10
        assert ("x-dragoman-warnings" in got.headers) == (upstream == CHAT), "only Chat cannot count"

    play(scene)


def test_keys_are_sent_in_its_header() -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        asked = question(f"{NAME}/demo")
        assert (await send(gateway, ANTHROPIC, asked, x_api_key="k-of-the-gateway")).said["tool_calls"]
        assert scripted.last.headers["x-dummy-key"] == "k-dummy-secret"
        assert scripted.last.headers[VERSION] == "1"
        assert (await send(gateway, NAME, asked, x_dummy_key="k-of-the-gateway")).said["tool_calls"]
        assert "api-key" in (await send(gateway, NAME, asked, x_dummy_key="k-wrong")).is_refusal(401)

    play(scene, server='keys = ["k-of-the-gateway"]', dummy='credential = "env:DUMMY_KEY"')


def test_requests_are_clamped_to_limits_and_otherwise_unchanged() -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        path, body = written(NAME, question(f"{NAME}/demo", settings=Wishes(max_tokens=900)))
        mine = {**json.loads(body), "mine": [1, 2]}
        await post(gateway, NAME, path, json.dumps(mine).encode(), stream=False)
        assert scripted.last.json == {**mine, "model": "demo", "limit": 50}

    play(scene, dummy='credential = "none"\nmodels = [{ name = "demo", max_output = 50 }]')


def test_a_config_may_name_it() -> None:
    toml = '[upstreams.up]\nprotocol = "{}"\nbase_url = "https://llm.example.net/v1/{}"\n'
    config = loads(toml.format(NAME, "ask"), env={})
    assert config.upstreams["up"].url("/v1/ask") == "https://llm.example.net/v1/ask"
    with pytest.raises(ConfigError, match='which belongs to the protocol "dummy"'):
        loads(toml.format(ANTHROPIC, "ask"), env={})
    with pytest.raises(ConfigError, match=r'"dummy" or "bedrock-converse", not "dumy".*"dummy"'):
        loads(toml.format("dumy", ""), env={})


def test_commands_know_it() -> None:
    answer = samples.stream(SCENARIOS["text_tool"])
    done = CliRunner().invoke(main, ["translate", "--from", NAME, "--to", ANTHROPIC], input=answer)
    assert (done.exit_code, b"event: message_stop" in done.stdout_bytes) == (0, True)
    back = CliRunner().invoke(main, ["translate", "--from", ANTHROPIC, "--to", NAME], input=done.stdout_bytes)
    assert b'{"end":"call"}' in back.stdout_bytes


def test_the_library_recognises_it() -> None:
    for body in (samples.stream(SCENARIOS["tool"]), samples.whole(SCENARIOS["tool"])):
        buffer = ToolCallBuffer([{"tool": "get_weather", "takes": {"type": "object"}}])
        assert body is not None
        calls = [*buffer.feed(body), *buffer.close()]
        assert buffer.protocol == NAME
        assert calls[-1].arguments == {"city": "Paris", "unit": "celsius"}


def test_conform_judges_an_endpoint_of_the_protocol() -> None:
    async def scene(gateway: Gateway, scripted: ScriptedUpstream) -> None:
        settings = SuiteOptions(url=gateway.url, protocol=NAME, model=f"{RESPONSES}/demo")
        report = await run(settings, lambda *_: None, lambda _: None)
        assert report.exit_code == 0, report.summary
        assert {trial.name for trial in report.trials} >= {"tool-result", "count-tokens", "models"}

    play(scene)


def test_the_matrix_tests_include_it() -> None:
    """Runs the tests of all protocol pairs with the dummy protocol registered."""
    chosen = "dummy and (text_tool or values or max_tokens_tool or -to-)"
    options = ["-q", "-p", "support.dummy.plugin", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        "-k",
        chosen,
        "tests/test_matrix.py",
        "tests/test_structure.py",
    ]
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, cwd=TESTS.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 50
