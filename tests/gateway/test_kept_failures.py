"""Failed exchanges keep their bytes on disk: after the ring and the process are gone they can be replayed."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.gateways import Gateway, Loop, gateway
from support.plain_gateway import asked, before, got, settled, soon
from support.plain_http import Got, call, post
from support.scripted_upstream import ScriptedUpstream, in_background, status, stream

from dragoman.cli import main
from dragoman.recording import kept_failures, load, loads, replay

HALF = b'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"Half of it"}}]}\n\n'
INVALID = (
    b'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1",'
    b'"type":"function","function":{"name":"look","arguments":"{\\"n\\":\\"many\\"}"}}]}}]}\n\n'
    b'data: {"id":"1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
)
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}
ADMIN, ALICE, BOB = "admin-secret-1234", "alice-secret-1234", "bob-secret-12345"


def text(url: str, folder: Path, more: str = "") -> str:
    return f"""
        [server]
        keys = ["{ADMIN}"]
        retries = 0
        store = "{(folder / "here.db").as_posix()}"
        {more}
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "none"
        [keys.alice]
        secret = "{ALICE}"
        [keys.bob]
        secret = "{BOB}"
    """


def ask(served: Gateway, key: str = ADMIN, words: str = "Hello", **more: Any) -> Got:
    body = {"model": "up/m", "messages": [{"role": "user", "content": words}], "stream": True, **more}
    return post(f"{served.url}/v1/chat/completions", body, x_api_key=key)


def files(folder: Path) -> list[Path]:
    return sorted((folder / "here.failed").glob("*"))


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


def test_a_kept_failure_is_shown_and_becomes_a_test(loop: Loop, tmp_path: Path) -> None:
    with in_background() as upstream:
        upstream.script(stream(HALF), stream(HALF + b"data: [DONE]\n\n"))
        config = text(upstream.url, tmp_path)
        with gateway(config, loop) as served:
            id = ask(served, words=f"my key is {ALICE}").headers["x-dragoman-exchange"]
            assert ask(served).status == 200
        (kept,) = files(tmp_path)
        assert kept.name.endswith(f"-{id}.dragoman")
        assert ALICE.encode() not in load(kept).request.body  # type: ignore[union-attr]
        if os.name == "posix":
            assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        # Another process: its ring is empty.
        with gateway(config, loop) as served:
            (listed, other) = sorted(
                call(f"{served.url}/exchanges", x_api_key=ADMIN).json["exchanges"], key=lambda e: e["at"]
            )
            assert (listed["id"], listed["recorded"], other["recorded"]) == (id, True, False)
            downloaded = call(f"{served.url}/exchanges/{id}/recording", x_api_key=ADMIN)
            assert downloaded.headers["content-disposition"] == f'attachment; filename="{id}.dragoman"'
            assert loads(downloaded.body).sent == load(kept).sent
            shown = call(f"{served.url}/exchanges/{id}/bytes", x_api_key=ADMIN).json
            assert "Half of it" in "".join(chunk["text"] for chunk in shown["upstream"])
            played = post(f"{served.url}/exchanges/{id}/replay", {}, x_api_key=ADMIN).json
            assert played["same"]
            assert played["error"]
    file = tmp_path / "dragoman.toml"
    file.write_text(config)
    done = command("--last-failed", "--config", file)
    assert done.exit_code == 0, done.output
    assert f"exchange {id}, " in done.output
    done = command("--last-failed", "--config", file, "--as-test", "--into", tmp_path / "made")
    assert done.exit_code == 0, done.output
    made = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "made")]
    assert subprocess.run(made, cwd=tmp_path, check=False, capture_output=True).returncode == 0


def test_a_call_that_stays_invalid_is_a_failure_too(loop: Loop, tmp_path: Path) -> None:
    with in_background() as upstream:
        upstream.script(stream(INVALID))
        with gateway(text(upstream.url, tmp_path), loop) as served:
            assert ask(served, tools=[TOOL]).status == 200
    (kept,) = files(tmp_path)
    assert [call.outcome for call in replay(load(kept)).receipts] == ["invalid"]


def test_a_key_sees_only_its_own_failures(loop: Loop, tmp_path: Path) -> None:
    with in_background() as upstream:
        upstream.script(status(500), status(500))
        config = text(upstream.url, tmp_path)
        with gateway(config, loop) as served:
            id = ask(served, ALICE).headers["x-dragoman-exchange"]
        with gateway(config, loop) as served:
            for what in ("recording", "bytes"):
                url = f"{served.url}/exchanges/{id}/{what}"
                assert [call(url, x_api_key=key).status for key in (ADMIN, ALICE, BOB)] == [200, 200, 404]
            for name in ("../here", "*", "?" * 16, id[:-1] + "*"):
                assert call(f"{served.url}/exchanges/{name}/recording", x_api_key=ADMIN).status == 404
        # Without a receipt nobody knows whose exchange it is: only an admin gets it.
        for file in tmp_path.glob("here.db*"):
            file.unlink()
        with gateway(config, loop) as served:
            url = f"{served.url}/exchanges/{id}/recording"
            assert [call(url, x_api_key=key).status for key in (ADMIN, ALICE, BOB)] == [200, 404, 404]


@pytest.mark.parametrize("more", ["keep_failed = 0", "ring = 0"])
def test_nothing_is_kept_if_the_config_says_so(loop: Loop, tmp_path: Path, more: str) -> None:
    with in_background() as upstream:
        upstream.script(status(500))
        with gateway(text(upstream.url, tmp_path, more), loop) as served:
            assert ask(served).status == 500
            assert "dragoman_failures_lost_total " + ("1.0" if "ring" in more else "0.0") in str(
                call(f"{served.url}/metrics", x_api_key=ADMIN).body
            )
    assert files(tmp_path) == []


def test_a_request_that_the_gateway_refuses_is_not_kept(loop: Loop, tmp_path: Path) -> None:
    with in_background() as upstream:
        config = text(upstream.url, tmp_path).replace(f'"{BOB}"', f'"{BOB}"\nrate = "1/min"')
        with gateway(config, loop) as served:
            assert [ask(served, BOB).status for _ in range(2)] == [200, 429]
    assert files(tmp_path) == []


def test_the_space_and_the_age_are_bounded(loop: Loop, tmp_path: Path) -> None:
    folder = tmp_path / "here.failed"
    folder.mkdir()
    for days in (40, 20, 10):
        path = folder / f"20260101-0000{days}-{'0' * 16}.dragoman"
        path.write_bytes(bytes(10_000))
        os.utime(path, (time.time() - days * 86_400,) * 2)
    with in_background() as upstream:
        upstream.script(status(500), status(500))
        with gateway(text(upstream.url, tmp_path, 'keep_failed = "18KB"'), loop) as served:
            id = ask(served).headers["x-dragoman-exchange"]
        names = [path.name for path in files(tmp_path)]
        assert len(names) == 2, "one is too old, one is too much"
        assert names[0].startswith("20260101-000010-")
        assert id in names[1]


def test_a_folder_that_cannot_be_written_is_counted(tmp_path: Path) -> None:
    (tmp_path / "here.failed").write_bytes(b"a file is in the way")

    async def scene() -> None:
        upstream = ScriptedUpstream().script(status(500))
        server = f'retries = 0\nstore = "{(tmp_path / "here.db").as_posix()}"'
        async with before(upstream, server=server) as gateway:
            body = {"model": "c/demo", "messages": [{"role": "user", "content": "Hi"}]}
            async with gateway.session.post(gateway.url + "/v1/chat/completions", json=body) as response:
                assert response.status == 500
            assert await soon(lambda: gateway.total("failures_lost") == 1, 10)
            await asked(gateway)
            await settled(gateway)
            assert "dragoman_failures_lost_total 1.0" in await got(gateway, "/metrics")

    asyncio.run(scene())


def test_a_full_disk_leaves_no_half_recording(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, handle: int, mode: str) -> None:
            self.handle = handle

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.handle)

        def write(self, data: bytes) -> None:
            os.write(self.handle, data[:100])
            raise OSError(28, "No space left on device")

    with in_background() as upstream:
        upstream.script(status(500))
        monkeypatch.setattr(kept_failures.os, "fdopen", Full)
        with gateway(text(upstream.url, tmp_path), loop) as served:
            assert ask(served).status == 500
        monkeypatch.undo()
    assert files(tmp_path) == []


def test_without_a_failure_the_command_says_so(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(text("http://127.0.0.1:9", tmp_path))
    done = command("--last-failed", "--config", file)
    assert done.exit_code != 0
    assert "there is no failed exchange in" in done.output
    assert command().exit_code == 2
    assert "--last-failed" in command().output
