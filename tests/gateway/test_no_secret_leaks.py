"""After a busy run, no recording, log line, receipt or view contains one of its secrets."""

import asyncio
import io
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from gateway_harness import SHORT, Gateway, post, running
from support import scripted_upstream as upstreams
from support.scripted_talk import question, written
from support.scripted_upstream import Cut, ScriptedUpstream, Wait
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.observe import logs
from dragoman.recording import MAGIC

OURS = "gateway-key-7f3a9c"
CALLERS = 'caller-own-key/+with"quotes'
IN_HEADER = "tenant-secret-in-a-header"
PRIVATE = "123-45-6789"
KEYS = {protocol: f"sk-upstream-{SHORT[protocol]}-0123456789" for protocol in PROTOCOLS}
IN_FILE, NEXT_IN_FILE = "sk-file-before-rotation", "sk-file-after-rotation"
IN_QUERY = "query-key/+0123456789="
ALL = (IN_QUERY, OURS, CALLERS, IN_HEADER, PRIVATE, *KEYS.values(), IN_FILE, NEXT_IN_FILE)

ASKED = 4 * 8 + 2 + 4


def forms(secret: str) -> Iterator[bytes]:
    """The secret plain, JSON-encoded once and twice, and URL-encoded."""
    once = json.dumps(secret)[1:-1]
    addresses = (quote(secret, safe=""), quote(secret, safe="/"))
    yield from (form.encode() for form in {secret, once, json.dumps(once)[1:-1], *addresses})


def assert_clean(where: str, data: bytes) -> None:
    found = [secret for secret in ALL for form in forms(secret) if form in data]
    assert not found, f"{found} in {where}"


def config(url: str, folder: Path) -> str:
    lines = [
        f"""
        [server]
        retries = 1
        keys = ["env:OURS"]
        store = "{folder}/store.db"
        record = "{folder}/recordings"
        redact = ['\\d{{3}}-\\d{{2}}-\\d{{4}}']
        [upstreams.theirs]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "client"
        headers = {{ x-tenant = "{IN_HEADER}" }}
        [upstreams.rotating]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "file:{folder}/key"
        [upstreams.inquery]
        protocol = "openai-chat"
        base_url = "{url}/v1?key={quote(IN_QUERY, safe="/")}"
        """
    ]
    for protocol, name in SHORT.items():
        lines.append(f'[upstreams.{name}]\nprotocol = "{protocol}"\nbase_url = "{url}"')
        lines.append(f'credential = "env:KEY_{name}"')
    return "\n".join(lines)


def echo(*texts: str) -> list[Any]:
    """A Chat answer that contains the secrets, each split over two chunks, in text and in a call."""
    steps: list[Any] = []
    for text in texts:
        data = b'data: {"choices":[{"delta":{"content":%s}}]}\n\n' % json.dumps(f"<{text}>").encode()
        half = data.index(json.dumps(text)[1:-1].encode()) + len(text) // 2
        steps += [data[:half], Wait(0.02), data[half:]]
    arguments = json.dumps(json.dumps({"city": texts[0], "days": "3"})).encode()
    call = b'{"index":0,"id":"c","function":{"name":"get_weather","arguments":%s}}' % arguments
    steps.append(b'data: {"choices":[{"delta":{"tool_calls":[%s]},"finish_reason":"tool_calls"}]}\n\n' % call)
    return [*steps, b"data: [DONE]\n\n"]


async def busy(gateway: Gateway, served: ScriptedUpstream, folder: Path) -> None:
    async def say(client: str, model: str, text: str, *, stream: bool = True, query: str = "") -> None:
        path, body = written(client, question(model, text, stream=stream))
        path += ("&" if "?" in path else "?") + query if query else ""
        headers = {"x_api_key": OURS, "authorization": f"Bearer {CALLERS}", "x_unheard_of": IN_HEADER}
        got = await post(gateway, client, path, body, stream=stream, **headers)
        if got.status != 200:
            # Private text belongs to the client and may be shown to it; keys of upstreams may not.
            assert_clean("an error", got.body.replace(PRIVATE.encode(), b""))

    for client in (ANTHROPIC, CHAT, RESPONSES, GEMINI):
        for upstream in PROTOCOLS:
            model = f"{SHORT[upstream]}/demo-misnamed"
            await say(client, model, f"my keys are {KEYS[upstream]} and {OURS}, I am {PRIVATE}")
        everything = (KEYS[CHAT], CALLERS, OURS, PRIVATE)
        served.script(upstreams.stream(*echo(*everything)))
        await say(client, "c/m", "Repeat after me", query=f"key={quote(CALLERS, safe='')}")
        served.script(upstreams.stream(*echo(CALLERS, IN_HEADER)))
        await say(client, "theirs/m", f"{CALLERS} {IN_HEADER}")
        refusal = json.dumps({"error": {"message": f"key {KEYS[CHAT]} of {PRIVATE} is no good"}}).encode()
        served.script(upstreams.status(400, refusal))
        await say(client, "c/m", "Refuse", stream=False)
        served.script(upstreams.stream(*echo(KEYS[CHAT])[:2], Cut()))
        await say(client, "c/m", "Break off in the middle of it")
    served.script(upstreams.stream(*echo(IN_FILE)))
    await say(CHAT, "rotating/m", IN_FILE)
    (folder / "key").write_text(NEXT_IN_FILE)
    served.script(upstreams.status(401, b'{"error":{"message":"not %s"}}' % IN_FILE.encode()))
    served.script(upstreams.stream(*echo(NEXT_IN_FILE)))
    await say(CHAT, "rotating/m", f"{IN_FILE} then {NEXT_IN_FILE}")
    for written_as in (IN_QUERY, quote(IN_QUERY, safe=""), quote(IN_QUERY, safe="/")):
        refusal = json.dumps({"error": {"message": f"no model at ?key={written_as}"}}).encode()
        served.script(upstreams.status(404, refusal))
        await say(CHAT, "inquery/m", "Refuse", stream=False)
    served.script(upstreams.stream(*echo(IN_QUERY)))
    await say(CHAT, "inquery/m", IN_QUERY)


async def answers(gateway: Gateway) -> dict[str, bytes]:
    """The answers of every view of the exchanges."""
    found: dict[str, bytes] = {}

    async def get(path: str, method: str = "GET") -> bytes:
        headers = {"x-api-key": OURS}
        async with gateway.session.request(method, gateway.url + path, headers=headers) as response:
            found[path] = await response.read()
            assert response.status == 200, (path, found[path])
        return found[path]

    listed = json.loads(await get("/exchanges?limit=1000"))["exchanges"]
    assert len(listed) == ASKED
    for said in listed:
        for what in ("", "/bytes"):
            await get(f"/exchanges/{said['id']}{what}")
        found[f"{said['id']} as a recording"] = unpacked(await get(f"/exchanges/{said['id']}/recording"))
        await get(f"/exchanges/{said['id']}/replay", "POST")
    await get("/metrics")
    await get("/inspector")
    gateway.state.observed.tap.ring.resize(0)
    await gateway.state.observed.ledger.close()
    await get("/exchanges?limit=999")
    for said in listed:
        found[f"{said['id']} from the store"] = await get(f"/exchanges/{said['id']}")
    return found


def unpacked(recording: bytes) -> bytes:
    assert recording.startswith(MAGIC)
    at, content = len(MAGIC), b""
    while at < len(recording):
        (length,) = struct.unpack_from(">I", recording, at)
        content += zlib.decompress(recording[at + 4 : at + 4 + length])
        at += 4 + length
    return content


async def first_news(gateway: Gateway) -> bytes:
    async with gateway.session.get(gateway.url + "/exchanges/live", headers={"x-api-key": OURS}) as response:
        data = b""
        async for chunk in response.content.iter_any():
            data += chunk
            if data.count(b"event: exchange") > 40:
                break
        return data


@pytest.mark.usefixtures("log_put_back")
def test_no_secret_is_anywhere(tmp_path: Path) -> None:
    log = io.StringIO()
    logs.set_up("debug", log)
    (tmp_path / "key").write_text(IN_FILE)
    env = {"OURS": OURS, **{f"KEY_{SHORT[protocol]}": key for protocol, key in KEYS.items()}}

    async def scene() -> dict[str, bytes]:
        served = ScriptedUpstream(pace=1)
        async with served, running(config(served.url, tmp_path), env) as gateway:
            news = asyncio.create_task(first_news(gateway))
            await busy(gateway, served, tmp_path)
            found = await answers(gateway)
            found["live"] = await asyncio.wait_for(news, 10)
            used = {seen.key for seen in served.seen}
            assert used >= {*KEYS.values(), CALLERS, IN_FILE, NEXT_IN_FILE, IN_QUERY}, "the secrets were used"
            return found

    found = asyncio.run(scene())
    recordings = list((tmp_path / "recordings").iterdir())
    assert len(recordings) == ASKED
    found |= {path.name: unpacked(path.read_bytes()) for path in recordings}
    found |= {path.name: path.read_bytes() for path in tmp_path.glob("store.db*")}
    found["the log"] = log.getvalue().encode()
    assert "x-dragoman" not in log.getvalue()
    assert log.getvalue().count("\n") >= ASKED
    together = b"".join(found.values())
    assert together.count(b"[redacted]") > 20
    assert b"<#" in together, "a key is shown as its fingerprint"
    for where, data in found.items():
        assert_clean(where, data)
