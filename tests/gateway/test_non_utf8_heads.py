"""Request heads that are not UTF-8: views, recordings and receipts still work and hold text."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import Gateway, ask, before, soon
from support.scripted_upstream import ScriptedUpstream

from dragoman.observe import logs
from dragoman.recording import load
from dragoman.recording.recorder import _File  # pyright: ignore[reportPrivateUsage]

BODY = {"model": "c/m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
BAD = b"caf\xe9/\xff\xfe"
REQUESTS: dict[str, tuple[bytes, bytes, Any]] = {
    "user-agent": (b"/v1/messages", b"user-agent: " + BAD, BODY),
    "unknown header": (b"/v1/messages", b"x-unknown: " + BAD, BODY),
    "session": (b"/v1/messages", b"x-session-id: " + BAD, BODY),
    "key": (b"/v1/messages", b"x-api-key: " + BAD, BODY),
    "model in the path": (b"/v1beta/models/c%2F%FF%FE:generateContent", b"x-a: b", GEMINI),
    "query": (b"/v1/messages?key=%FF%FE-the-key&%FF=%FE", b"x-a: b", BODY),
}


async def send(gateway: Gateway, path: bytes, header: bytes, body: Any) -> int:
    """Send one request as bytes. Returns the status of its answer."""
    port = int(gateway.url.rpartition(":")[2])
    data = json.dumps(body).encode()
    head = b"POST %b HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n%b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head % (path, port, header, len(data)) + data)
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1])


async def get(gateway: Gateway, path: str, method: str = "GET") -> bytes:
    async with gateway.session.request(method, gateway.url + path) as response:
        data = await response.read()
        assert response.status == 200, (path, data)
    return data


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.usefixtures("log_put_back")
def test_every_view_of_the_exchange_works_and_recording_continues(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = io.StringIO()
    logs.set_up("debug", log)

    async def scene() -> None:
        upstream = ScriptedUpstream()
        server = f'retries = 0\nrecord = "{tmp_path}/r"\nstore = "{tmp_path}/store.db"'
        more = '[[routes]]\nmatch = "*"\nto = "c/*"'
        async with before(upstream, server=server, more=more) as gateway:
            assert await send(gateway, *REQUESTS[name]) < 500
            (said,) = json.loads(await get(gateway, "/exchanges"))["exchanges"]
            for view in ("", "/bytes", "/recording"):
                await get(gateway, f"/exchanges/{said['id']}{view}")
            await get(gateway, f"/exchanges/{said['id']}/replay", "POST")
            await get(gateway, "/metrics")
            assert (await ask(gateway, "anthropic", "c/m")).status == 200
            await gateway.state.observed.ledger.close()
            gateway.state.observed.tap.ring.resize(0)
            assert len(json.loads(await get(gateway, "/exchanges"))["exchanges"]) == 2
            await get(gateway, f"/exchanges/{said['id']}")

    asyncio.run(scene())
    recordings = [load(path) for path in (tmp_path / "r").iterdir()]
    assert len(recordings) == 2
    assert all(recording.ended is not None for recording in recordings)
    assert "Logging error" not in capsys.readouterr().err
    assert '"level":"error"' not in log.getvalue()


def test_an_exchange_that_cannot_be_recorded_does_not_stop_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write, failed = _File.write, []

    def fails_once(file: _File, records: Any) -> None:
        if not failed:
            failed.append(file)
            raise ValueError("a record that nobody has thought of")
        write(file, records)

    monkeypatch.setattr(_File, "write", fails_once)

    async def scene() -> None:
        async with before(ScriptedUpstream(), server=f'retries = 0\nrecord = "{tmp_path}"') as gateway:
            await ask(gateway, "anthropic", "c/m")
            assert await soon(lambda: bool(failed), 5)
            await ask(gateway, "anthropic", "c/m")

    asyncio.run(scene())
    assert any(load(path).ended for path in tmp_path.iterdir())
    assert "not recorded" in caplog.text


def test_a_receipt_that_cannot_be_written_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway:
            for name in ("a", "b", "c"):
                track = gateway.state.observed.tap.begin(name, "anthropic")
                track.asked_for("\udcff" if name == "b" else "m")
                track.ended(200)
            await gateway.state.observed.ledger.close()
            store = gateway.state.store
            assert [bool(await store.receipt(name)) for name in ("a", "b", "c")] == [True, False, True]

    asyncio.run(scene())
    assert "cannot be written" in caplog.text
