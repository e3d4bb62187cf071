"""The replay server: recorded answers for official SDKs in every protocol, misses, and faults."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from support.gateways import Gateway, Loop, gateway
from support.processes import accept_ctrl_c
from support.sdk_talk import QUESTION, TALKS
from support.wires import ANTHROPIC, CHAT, PROTOCOLS

from dragoman.config import loads
from dragoman.conform.scripted import serve
from dragoman.model.errors import DragomanError
from dragoman.offline import volatile
from dragoman.offline.faults import NAMES, cut_after, parse_fault
from dragoman.offline.server import ReplayServer, ReplaySettings, config_for
from dragoman.recording import load

UPSTREAM = '[upstreams.{0}]\nprotocol = "{0}"\nbase_url = "{1}"\ncredential = "none"\n'


@pytest.fixture(scope="module")
def model(loop: Loop) -> Iterator[str]:
    """The address of the scripted model."""
    url, stop = loop.run(serve(pace=0))
    yield url
    loop.run(stop())


@contextmanager
def recorder(loop: Loop, model: str, folder: Path) -> Iterator[Gateway]:
    server = f'[server]\nretries = 0\nrecord = "{folder.as_posix()}"\n'
    with gateway(server + "".join(UPSTREAM.format(name, model) for name in PROTOCOLS), loop) as served:
        yield served


@contextmanager
def replaying(folder: Path, *faults: str, on_missed: Any = lambda message: None) -> Iterator[str]:
    settings = ReplaySettings(
        folder=folder, faults=[parse_fault(fault) for fault in faults], on_missed=on_missed
    )
    with ReplayServer(config_for(settings, "127.0.0.1", 0, None), settings) as server:
        yield server.url


def conversation(url: str, client: str, name: str, *, stream: bool = True) -> tuple[Any, ...]:
    """A call, its result and the answer, as the SDK shows them."""
    talk = TALKS[client](url, name, stream=stream)
    called = talk.ask(QUESTION)
    return called.calls, called.text, talk.answer(called, "Sunny").text


@pytest.fixture(scope="module", params=PROTOCOLS)
def recorded(
    request: pytest.FixtureRequest, loop: Loop, model: str, tmp_path_factory: Any
) -> tuple[Path, str]:
    """The recordings of one conversation with an upstream of each protocol."""
    folder = tmp_path_factory.mktemp("recordings")
    name = f"{request.param}/demo-misnamed"
    with recorder(loop, model, folder) as served:
        conversation(served.url, ANTHROPIC, name)
    return folder, name


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", PROTOCOLS)
def test_every_sdk_gets_the_recorded_conversation(
    recorded: tuple[Path, str], client: str, stream: bool
) -> None:
    folder, name = recorded
    with replaying(folder) as url:
        calls, text, answer = conversation(url, client, name, stream=stream)
    assert calls == [("get_weather", {"city": "Rome", "days": 3})]
    assert text == "I will use get_weather for that.\n"
    assert "get_weather answered: “Sunny”" in answer


def test_the_same_client_gets_the_same_bytes_of_content_twice(recorded: tuple[Path, str]) -> None:
    folder, name = recorded
    with replaying(folder) as url:
        assert conversation(url, ANTHROPIC, name) == conversation(url, ANTHROPIC, name)


def test_a_miss_is_an_error_that_names_the_first_difference(recorded: tuple[Path, str]) -> None:
    folder, name = recorded
    misses: list[str] = []
    with replaying(folder, on_missed=misses.append) as url:
        talk = TALKS[ANTHROPIC](url, name, stream=True)
        called = talk.ask(QUESTION)
        with pytest.raises(anthropic.BadRequestError) as raised:
            talk.answer(called, "Rainy")
        with pytest.raises(openai.BadRequestError, match="model: the recording has"):
            TALKS[CHAT](url, "another", stream=False).ask(QUESTION)
    second = max(folder.iterdir(), key=lambda path: load(path).begun.at).name
    assert "messages[2].parts[0].parts[0].text: the recording has 'Sunny', the request has 'Rainy'" in str(
        raised.value
    )
    assert second in str(raised.value)
    assert len(misses) == 2


HOMES = {"/home/ann/work": "/home/ann", "/Users/bob/x": "/Users/bob", "C:\\repo": "C:\\Users\\bob"}


def test_what_changes_from_run_to_run_is_ignored(loop: Loop, model: str, tmp_path: Path) -> None:
    def ask(url: str, where: str, when: str, **more: Any) -> str:
        sdk = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
        environment = (
            f"Working directory: {where}\nToday's date: {when}\n"
            "Session 0b8f6f5e-6c1d-4c47-9a53-0d5b7f2c9a11\n"
            f"Memory: {HOMES[where]}/.claude/projects/{re.sub('[^0-9A-Za-z]', '-', where)}/memory"
        )
        said = sdk.messages.create(
            model=f"{CHAT}/demo",
            max_tokens=more.pop("max_tokens", 100),
            system=[{"type": "text", "text": environment, **more.pop("mark", {})}],
            messages=[
                {"role": "user", "content": f"Look into {where}/src. Wall time: {len(where)}.5 seconds"}
            ],
            **more,
        )
        return said.content[0].text

    with recorder(loop, model, tmp_path) as served:
        first = ask(served.url, "/home/ann/work", "2026-01-31")
    with replaying(tmp_path) as url:
        mark = {"cache_control": {"type": "ephemeral"}}
        assert first == ask(
            url, "/Users/bob/x", "2027-12-01", mark=mark, extra_body={"temperature": 0.5}, max_tokens=9
        )
        assert first == ask(url, "C:\\repo", "Friday, December 3, 2027", metadata={"user_id": "u"})
        with pytest.raises(anthropic.BadRequestError, match="first difference"):
            ask(url, "/home/ann/work", "tomorrow")


def test_equal_requests_get_the_recordings_in_order(loop: Loop, model: str, tmp_path: Path) -> None:
    def ask(url: str) -> int:
        sdk = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        message: Any = {"role": "user", "content": "Hello"}
        try:
            sdk.chat.completions.create(model=f"{CHAT}/demo-flaky", messages=[message])
        except openai.APIStatusError as error:
            return error.status_code
        return 200

    with recorder(loop, model, tmp_path) as served:
        recorded = [ask(served.url), ask(served.url)]
    with replaying(tmp_path) as url:
        assert [*recorded, recorded[-1]] == [ask(url), ask(url), ask(url)] == [429, 200, 200]


def test_a_response_continues_the_one_before(loop: Loop, model: str, tmp_path: Path) -> None:
    def ask(url: str) -> list[str]:
        sdk = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        first = sdk.responses.create(model=f"{CHAT}/demo", input="Hello")
        second = sdk.responses.create(model=f"{CHAT}/demo", input="Again", previous_response_id=first.id)
        return [first.output_text, second.output_text]

    with recorder(loop, model, tmp_path) as served:
        recorded = ask(served.url)
    with replaying(tmp_path) as url:
        assert ask(url) == recorded


def test_failures_are_replayed_too(loop: Loop, model: str, tmp_path: Path) -> None:
    def ask(url: str, name: str) -> tuple[str, str]:
        talk = TALKS[ANTHROPIC](url, f"{CHAT}/{name}", stream=True)
        with pytest.raises(anthropic.APIError) as raised:
            talk.ask(QUESTION)
        return type(raised.value).__name__, raised.value.message.partition("request_id")[0]

    names = ("demo-cut", "demo-reset", "demo-error", "demo-500", "demo-ratelimit", "demo-html", "demo-blank")
    with recorder(loop, model, tmp_path) as served:
        recorded = [ask(served.url, name) for name in names]
    with replaying(tmp_path) as url:
        assert [ask(url, name) for name in names] == recorded


def test_a_fault_is_mended_like_a_models_own(loop: Loop, model: str, tmp_path: Path) -> None:
    with recorder(loop, model, tmp_path) as served:
        good = conversation(served.url, ANTHROPIC, f"{CHAT}/demo")
    for fault in ("misnamed", "stringly", "miscased", "wrapped", "fragments", "ghost"):
        with replaying(tmp_path, f"{fault}:1") as url:
            assert conversation(url, ANTHROPIC, f"{CHAT}/demo") == good, fault


def test_an_answer_is_cut_after_an_event(loop: Loop, model: str, tmp_path: Path) -> None:
    with recorder(loop, model, tmp_path) as served:
        TALKS[CHAT](served.url, f"{CHAT}/demo", stream=True).ask(QUESTION)
    (path,) = tmp_path.iterdir()
    data = b"".join(chunk.data for chunk in load(path).calls[0].received)
    assert cut_after(data, 3).count(b"data: ") == 3
    with replaying(tmp_path, "cut@3") as url:
        sdk = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        with pytest.raises(openai.APIError):
            TALKS[CHAT](url, f"{CHAT}/demo", stream=True).ask(QUESTION)
        assert sdk.models.list().data[0].id
    with replaying(tmp_path, "ratelimit:1") as url:
        with pytest.raises(openai.RateLimitError):
            TALKS[CHAT](url, f"{CHAT}/demo", stream=True).ask(QUESTION)
        assert TALKS[CHAT](url, f"{CHAT}/demo", stream=True).ask(QUESTION).calls


def test_a_missing_recording_is_recorded(loop: Loop, model: str, tmp_path: Path) -> None:
    settings = ReplaySettings(folder=tmp_path / "new", on_miss="record")
    config = loads(UPSTREAM.format(CHAT, model), env={})
    with ReplayServer(config_for(settings, "127.0.0.1", 0, config), settings) as server:
        first = conversation(server.url, ANTHROPIC, f"{CHAT}/demo")
    assert len(list((tmp_path / "new").iterdir())) == 2
    with ReplayServer(config_for(settings, "127.0.0.1", 0, config), settings) as server:
        assert conversation(server.url, ANTHROPIC, f"{CHAT}/demo") == first
    assert len(list((tmp_path / "new").iterdir())) == 2, "what is recorded is not asked again"
    with replaying(tmp_path / "new") as url:
        assert conversation(url, ANTHROPIC, f"{CHAT}/demo") == first


def test_a_passed_request_is_not_recorded(loop: Loop, model: str, tmp_path: Path) -> None:
    settings = ReplaySettings(folder=tmp_path, on_miss="pass")
    config = loads(UPSTREAM.format(CHAT, model), env={})
    with ReplayServer(config_for(settings, "127.0.0.1", 0, config), settings) as server:
        assert conversation(server.url, ANTHROPIC, f"{CHAT}/demo")[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("written", ["cut@", "unknown", "misnamed@3", "cut@3:x", ""])
def test_an_unknown_fault_is_reported(written: str) -> None:
    with pytest.raises(DragomanError, match="cut@3"):
        parse_fault(written)
    assert {"cut", "misnamed", "ratelimit", "leak"} <= NAMES.keys()


def test_a_folder_without_recordings_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DragomanError, match="no recording that can be replayed"), replaying(tmp_path):
        pass
    with pytest.raises(DragomanError, match="is not a folder"), replaying(tmp_path / "missing"):
        pass


def test_the_command_serves_until_it_is_interrupted(loop: Loop, model: str, tmp_path: Path) -> None:
    with recorder(loop, model, tmp_path) as served:
        good = conversation(served.url, ANTHROPIC, f"{CHAT}/demo")
    command = [sys.executable, "-m", "dragoman", "replay", "--serve", str(tmp_path), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, preexec_fn=accept_ctrl_c, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().split(" answer at ")[1].split()[0].rstrip(".")
        assert conversation(url, CHAT, f"{CHAT}/demo") == good
        with pytest.raises(openai.BadRequestError):
            TALKS[CHAT](url, f"{CHAT}/demo", stream=False).ask("Something else")
        lines = [process.stdout.readline() for _ in range(2)]
        assert all(line.endswith(".dragoman: openai-chat\n") for line in lines)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read().startswith("miss: no recording in")


def test_every_rule_is_documented_and_does_what_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "test-your-agent.md").read_text()
    for rule in volatile.TEXTS:
        assert f"| `<{rule.name}>` | {rule.example} |" in page
        assert rule.pattern.sub("X", rule.example).replace("X", "").strip(" ,;") == "", rule.name
    assert [name for name in NAMES if f"`{name}`" not in page] == []
