"""`dragoman demo`: the printed commands work."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.plain_http import call, post
from support.processes import dragoman

from dragoman.cli.demo import gateway as demo
from dragoman.conform import scripted


def test_every_behaviour_has_a_route_and_is_listed() -> None:
    config = demo.config("http://127.0.0.1:9", "127.0.0.1", 4545)
    assert {route.match for route in config.routes} >= set(scripted.BEHAVIOURS)
    assert set(demo.SHOWN) <= set(scripted.BEHAVIOURS)


def test_the_printed_curl_line_works(tmp_path: Path) -> None:
    with dragoman(tmp_path, "demo", "--port", "0") as process:
        url = process.wait_for(r"Dragoman is at (http://\S+?), with").group(1)
        process.wait_for("OPENAI_BASE_URL")
        told = shlex.split(next(line for line in process.said.splitlines() if " -d " in line))
        path, body = told[2].removeprefix(url), told[-1].encode()
        got = post(url + path, body)
        assert got.status == 200
        fragments = re.findall(rb'"partial_json":"((?:[^"\\]|\\.)*)"', got.body)
        assert b'{\\"command\\":\\"' in b"".join(fragments)
        listed = {model["id"] for model in call(f"{url}/v1/models").json["data"]}
        assert set(scripted.BEHAVIOURS) <= listed
        hello = {"model": "whatever", "messages": [{"role": "user", "content": "hi"}]}
        assert post(f"{url}/v1/chat/completions", hello).status == 200
        process.interrupt()
        assert process.wait() == 0
        assert "Traceback" not in process.said
        assert not (tmp_path / ".local").exists()


def test_show_prints_without_serving(tmp_path: Path) -> None:
    with dragoman(tmp_path, "demo", "--show") as process:
        assert process.wait() == 0
        process.wait_for("mended")


@pytest.mark.parametrize("program", ["curl"])
def test_the_curl_line_is_valid_shell(program: str) -> None:
    line = next(line for line in demo.welcome("http://127.0.0.1:1").splitlines() if " -d " in line)
    checked = subprocess.run(["sh", "-n"], input=line, text=True, capture_output=True, check=False)
    assert (checked.returncode, shlex.split(line)[0]) == (0, program)


def test_a_cut_answer_is_explained(tmp_path: Path) -> None:
    with dragoman(tmp_path, "demo", "--port", "0") as process:
        url = process.wait_for(r"Dragoman is at (http://\S+?), with").group(1)
        hello = {"model": "demo-cut", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        got = post(f"{url}/v1/chat/completions", hello)
        assert b"openai-chat broke off in the middle of its answer" in got.body
        process.interrupt()
        assert process.wait() == 0
