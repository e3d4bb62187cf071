"""Recordings of unusual exchanges, and incomplete recording files."""

import asyncio
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from gateway_harness import Gateway, Got, RawClient, ask, asking, before, post
from support import scripted_upstream as upstreams
from support.scripted_talk import answered, parts_of, question, written
from support.scripted_upstream import FOREVER, Cut, ScriptedUpstream, Wait
from support.wires import CHAT, GEMINI, RESPONSES

from dragoman.model.messages import Request
from dragoman.recording import MAGIC, Recording, RecordingError, load, loads, replay

Scene = Callable[[Gateway, ScriptedUpstream], Awaitable[Got]]


def only(folder: Path) -> Recording:
    (path,) = folder.iterdir()
    return load(path)


def record(folder: Path, scene: Scene, *, server: str = "", more: str = "", pace: float = 0) -> Got:
    async def run() -> Got:
        served = ScriptedUpstream(pace=pace)
        said = f'retries = 0\nrecord = "{folder}"\n{server}'
        async with before(served, server=said, more=more) as gateway:
            return await scene(gateway, served)

    return asyncio.run(run())


async def reasked(gateway: Gateway, served: ScriptedUpstream) -> Got:
    return await ask(gateway, "anthropic", "c/demo-invalid")


async def as_an_array(gateway: Gateway, served: ScriptedUpstream) -> Got:
    path, body = asking(GEMINI, "c/demo-misnamed")
    return await post(gateway, GEMINI, path.partition("?")[0], body, stream=True)


async def array_that_fails(gateway: Gateway, served: ScriptedUpstream) -> Got:
    path, body = asking(GEMINI, "c/demo-cut")
    return await post(gateway, GEMINI, path.partition("?")[0], body, stream=True)


async def unreachable_upstream(gateway: Gateway, served: ScriptedUpstream) -> Got:
    served.script(upstreams.no_answer())
    return await ask(gateway, "anthropic", "a/m")


async def redirected(gateway: Gateway, served: ScriptedUpstream) -> Got:
    served.script(upstreams.redirect("http://elsewhere.example/"))
    return await ask(gateway, "anthropic", "a/m")


async def no_route(gateway: Gateway, served: ScriptedUpstream) -> Got:
    return await ask(gateway, "anthropic", "nobody/knows-it")


async def nonsense(gateway: Gateway, served: ScriptedUpstream) -> Got:
    return await post(gateway, "anthropic", "/v1/messages", b'{"model": 7', stream=False)


async def told_to_wait_and_refused(gateway: Gateway, served: ScriptedUpstream) -> Got:
    served.script(upstreams.slow_headers(0.2, upstreams.status(503, b'{"error":{"message":"down"}}')))
    return await ask(gateway, "anthropic", "c/m")


async def kept_alive(gateway: Gateway, served: ScriptedUpstream) -> Got:
    served.script([b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n', Wait(0.2), Cut()])
    return await ask(gateway, "anthropic", "c/m")


async def cursor_chat(gateway: Gateway, served: ScriptedUpstream) -> Got:
    body = written(RESPONSES, question("c/demo-misnamed", stream=True))[1]
    return await post(gateway, CHAT, "/cursor/chat/completions", body, stream=True)


async def cursor_own(gateway: Gateway, served: ScriptedUpstream) -> Got:
    body = written(CHAT, question("a/demo-misnamed", stream=True))[1]
    return await post(gateway, CHAT, "/cursor/v2/chat/completions", body, stream=True)


REASK = '[tools]\ninvalid = "reask"'
BEATS = 'keepalive = "50ms"'
STRANGE: dict[str, tuple[Scene, dict[str, object]]] = {
    "asked again": (reasked, {"more": REASK}),
    "an array": (as_an_array, {}),
    "an array that fails": (array_that_fails, {}),
    "nobody there": (unreachable_upstream, {}),
    "redirected": (redirected, {}),
    "no route": (no_route, {}),
    "nonsense": (nonsense, {}),
    "told to wait": (told_to_wait_and_refused, {"server": BEATS, "pace": 1}),
    "Cursor's Chat": (cursor_chat, {}),
    "Cursor's own": (cursor_own, {}),
}


@pytest.mark.parametrize("name", STRANGE)
def test_unusual_exchanges_replay_unchanged(name: str, tmp_path: Path) -> None:
    scene, how = STRANGE[name]
    got = record(tmp_path, scene, **how)  # type: ignore[arg-type]
    recording = only(tmp_path)
    played = replay(recording)
    assert played.same
    if name != "told to wait":  # keepalive comments came before the error
        assert played.client == got.body


def test_keepalives_are_not_part_of_the_replayed_answer(tmp_path: Path) -> None:
    got = record(tmp_path, kept_alive, server=BEATS, pace=1)
    recording = only(tmp_path)
    assert b"ping" in got.body
    assert b"".join(went.data for went in recording.sent_chunks) == got.body
    played = replay(recording)
    assert played.same
    assert b"ping" not in played.client


def test_the_replay_uses_the_target_that_answered(tmp_path: Path) -> None:
    more = '[[routes]]\nmatch = "demo"\nto = ["c/demo-500", "a/demo"]'

    async def scene(gateway: Gateway, served: ScriptedUpstream) -> Got:
        return await ask(gateway, CHAT, "demo")

    got = record(tmp_path, scene, more=more)
    recording = only(tmp_path)
    assert [call.request.protocol for call in recording.calls] == ["openai-chat", "anthropic"]
    assert replay(recording).client == got.body


def test_a_response_that_continues_another_is_replayed(tmp_path: Path) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream) -> Got:
        async def asked(request: Request, **more: object) -> Got:
            path, body = written(RESPONSES, request)
            data = json.dumps({**json.loads(body), "store": True, **more}).encode()
            return await post(gateway, RESPONSES, path, data, stream=False)

        first = await asked(question("c/demo-misnamed"))
        result = answered(question("c/demo"), parts_of(first.said), "Sunny").messages[-1]
        then = question("c/demo").changed(messages=(result,))
        return await asked(then, previous_response_id=json.loads(first.body)["id"])

    got = record(tmp_path, scene)
    assert "Sunny" in got.said["text"]
    for path in tmp_path.iterdir():
        assert replay(load(path)).same


def test_the_recording_of_a_client_that_left(tmp_path: Path) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream) -> Got:
        served.script([b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n', Wait(FOREVER)])
        async with RawClient(gateway) as plain:
            await plain.post(*asking("anthropic", "c/m"))
            await plain.until(b"Hi")
        assert await gateway.idle()
        return Got("anthropic", True, 0, {}, plain.got)

    got = record(tmp_path, scene, pace=1)
    recording = only(tmp_path)
    assert recording.ended is not None
    assert recording.ended.outcome == "cancelled"
    played = replay(recording)
    assert played.same
    assert recording.sent in got.body


def test_replay_with_another_client_and_assembly(tmp_path: Path) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream) -> Got:
        return await ask(gateway, "anthropic", "c/demo")

    record(tmp_path, scene)
    recording = only(tmp_path)
    whole = replay(recording, mode="whole")
    assert not whole.same
    assert whole.receipts[0].sent == replay(recording).receipts[0].sent
    assert b"functionCall" in replay(recording, to=GEMINI).client


def test_a_file_cut_anywhere_is_read_up_to_the_cut(tmp_path: Path) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream) -> Got:
        served.script([b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n', Wait(0.6), Cut()])
        return await ask(gateway, "anthropic", "c/m")

    record(tmp_path, scene, pace=1)
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    whole = loads(data)
    assert whole.ended is not None
    lengths: set[int] = set()
    for end in range(len(MAGIC), len(data)):
        try:
            part = loads(data[:end])
        except RecordingError as error:
            assert "cut off inside its first frame" in error.message  # noqa: PT017
            continue
        assert whole.sent.startswith(part.sent)
        lengths.add(len(part.sent))
        if part.request is not None:
            assert replay(part).same, "up to the cut"
    assert len(lengths) > 1, "it was written during the exchange"


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"^x is not a recording"):
        loads(b"GIF89a", "x")
    with pytest.raises(RecordingError, match="damaged"):
        loads(MAGIC + struct.pack(">I", 4) + b"abcd")
    with pytest.raises(RecordingError, match="damaged"):
        loads(framed(b"\x91\x80"))
    with pytest.raises(RecordingError, match="is empty"):
        loads(MAGIC)
    with pytest.raises(RecordingError, match="cannot be read"):
        load(tmp_path / "nowhere")


def framed(content: bytes) -> bytes:
    data = zlib.compress(content)
    return MAGIC + struct.pack(">I", len(data)) + data


def test_unknown_members_of_a_frame_are_ignored(tmp_path: Path) -> None:
    begun = {"is": "begun", "t": 0.0, "id": "x", "at": 1.0, "client": "gemini", "version": "9", "new": [1]}
    assert loads(framed(msgspec.msgpack.encode([begun]))).begun.id == "x"


def test_a_recording_without_a_request_cannot_be_replayed() -> None:
    begun = {"is": "begun", "t": 0.0, "id": "x", "at": 1.0, "client": "gemini", "version": "9"}
    with pytest.raises(RecordingError, match="no client request"):
        replay(loads(framed(msgspec.msgpack.encode([begun]))))


def test_an_unusable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def scene(gateway: Gateway, served: ScriptedUpstream) -> Got:
        raise AssertionError

    with pytest.raises(RecordingError, match=r"cannot be recorded in .*give another folder"):
        record(tmp_path / "file" / "below", scene)


def test_only_the_owner_may_read_recordings(tmp_path: Path) -> None:
    record(tmp_path / "new", nonsense)
    (path,) = (tmp_path / "new").iterdir()
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o077 == 0
