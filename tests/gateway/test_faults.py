"""Upstreams that fail before their first byte: a real HTTP status and an error body in every protocol."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Callable

import pytest
from gateway_harness import ask, ask_all, asking, before, config, post, running
from support import scripted_upstream as upstreams
from support.scripted_upstream import JSON, STREAM, Reply, ScriptedUpstream, Wait
from support.wires import PROTOCOLS

from dragoman.conform.scripted.broken_answers import PAGE
from dragoman.gateway.exchange import answer_attempt

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
SILENT = 'idle_timeout = "300ms"'


def _odd(status: int, body: bytes, content_type: str = JSON) -> Callable[[], Reply]:
    return lambda: upstreams.status(status, body, content_type)


FAULTS: dict[str, tuple[Callable[[], Reply], int, str]] = {
    "closed": (upstreams.no_answer, 502, "closed the connection before it answered"),
    "reset": (lambda: upstreams.no_answer(reset=True), 502, "closed the connection before it answered"),
    "no http": (upstreams.not_http, 502, "something that is not HTTP"),
    "half a head": (
        lambda: Reply(steps=(b"HTTP/1.1 200 OK\r\ncontent-ty",), bare=True),
        502,
        "closed the connection before it answered",
    ),
    "400 of nothing": (_odd(400, b""), 400, "400"),
    "400 in a list": (_odd(400, b'[{"error": {"message": "too wide"}}]'), 400, "too wide"),
    "401": (_odd(401, b'{"detail": "who are you?"}'), 401, "who are you?"),
    "403 html": (_odd(403, b"<h1>No entry</h1>", "text/html"), 403, "No entry"),
    "404 plain": (_odd(404, b"404 page not found\n", "text/plain"), 404, "page not found"),
    "418": (_odd(418, b'{"error": "a teapot"}'), 418, "a teapot"),
    "422 detail": (_odd(422, b'{"detail": [{"msg": "field required"}]}'), 422, "field required"),
    "500 null": (_odd(500, b"null"), 500, "error"),
    "500 number": (_odd(500, b"7"), 500, "7"),
    "500 bytes": (_odd(500, b"\xff\xfe\x00\x80"), 500, ""),
    "500 deep": (_odd(500, b"[" * 60_000), 500, ""),
    "500 long": (_odd(500, b'{"error": "' + b"x" * 500_000), 500, "x"),
    "502 html": (_odd(502, PAGE, "text/html"), 502, "Bad Gateway"),
    "503 html": (_odd(503, b"<html>" + b" " * 100_000, "text/html"), 503, "<html>"),
    "599": (_odd(599, b"{}"), 599, ""),
    "201": (_odd(201, b"{}"), 502, ""),
    "204": (lambda: Reply(status=204), 502, ""),
    "200 of nothing": (lambda: Reply(content_type=STREAM), 502, ""),
    "200 blank": (lambda: upstreams.stream(b"\r\n \n\n"), 502, ""),
    "200 error": (_odd(200, b'{"error": {"message": "on fire", "code": 500}}'), 500, "on fire"),
    "200 error event": (
        lambda: upstreams.stream(b'event: error\ndata: {"error": {"message": "on fire", "code": 503}}\n\n'),
        503,
        "on fire",
    ),
    "200 html": (_odd(200, PAGE, "text/html"), 502, ""),
    "garbage": (upstreams.garbage, 502, ""),
    "json garbage": (lambda: upstreams.stream(b"data: {]\n\n" * 3), 502, ""),
    "a list": (lambda: upstreams.stream(b"data: [1, 2]\n\n"), 502, ""),
    "comments": (lambda: upstreams.stream(b": hello\n\n" * 5), 502, ""),
    "only done": (lambda: upstreams.stream(b"data: [DONE]\n\n"), 502, ""),
    "torn": (upstreams.torn_character, 502, ""),
}


@CLIENTS
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_before_the_answer_is_a_status_and_a_body(fault: str, client: str) -> None:
    make, status, word = FAULTS[fault]

    async def scene() -> None:
        upstream = ScriptedUpstream(pace=1)
        upstream.otherwise = make()
        async with before(upstream) as gateway:
            for got in await ask_all(gateway, client, "m"):
                assert word in got.is_refusal(status)
            assert gateway.state.lifecycle.running == 0
            # Only a 401 is retried: the token may have been rotated.
            twice = status in (401, 403)
            assert len(upstream.seen) == 8 * (1 + twice)

    asyncio.run(scene())


def _port_url() -> str:
    return upstreams.refused_url()


UNREACHABLE: dict[str, tuple[Callable[[], str], str]] = {
    "refused": (_port_url, "is it running?"),
    "dns": (lambda: "http://nowhere.invalid", "was not found; check its base_url"),
}


@CLIENTS
@pytest.mark.parametrize("fault", UNREACHABLE)
def test_an_unreachable_upstream_is_an_error(fault: str, client: str) -> None:
    where, word = UNREACHABLE[fault]

    async def scene() -> None:
        async with running(config(where())) as gateway:
            for got in await ask_all(gateway, client, "m"):
                assert word in got.is_refusal(502)

    asyncio.run(scene())


@CLIENTS
def test_an_upstream_without_tls_is_an_error(client: str) -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream:
            url = upstream.url.replace("http:", "https:")
            # A retry cannot help, so even with retries there is none.
            async with running(config(url, server="retries = 5")) as gateway:
                for got in await ask_all(gateway, client, "m"):
                    assert "TLS" in got.is_refusal(502)

    asyncio.run(scene())


@CLIENTS
def test_silence_ends_at_the_idle_timeout(client: str) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream(), server="retries = 5", each=SILENT) as gateway:
            for got in await ask_all(gateway, client, "demo-hang"):
                assert "(idle_timeout)" in got.is_refusal(504)

    asyncio.run(scene())


@CLIENTS
def test_silence_after_the_head_and_in_a_body(client: str) -> None:
    async def scene() -> None:
        upstream = ScriptedUpstream()
        async with before(upstream, each=SILENT) as gateway:
            upstream.otherwise = upstreams.stream(Wait(upstreams.FOREVER))
            for got in await ask_all(gateway, client, "m"):
                assert "(idle_timeout)" in got.is_refusal(504)
            upstream.otherwise = upstreams.stream(b'{"id": "x", ', Wait(upstreams.FOREVER))
            for got in await ask_all(gateway, client, "m"):
                assert "(idle_timeout)" in got.is_refusal(504)

    asyncio.run(scene())


def test_an_upstream_that_does_not_read_the_request_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transport.client.curl._SLOWEST_UPLOAD", 2**30)

    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            toml = config(
                f"http://127.0.0.1:{deaf.getsockname()[1]}", each=SILENT + '\nconnect_timeout = "300ms"'
            )
            async with running(toml) as gateway:
                path, body = asking("openai-chat", "c/m", text="x" * 20_000_000)
                async with asyncio.timeout(30):
                    got = await post(gateway, "openai-chat", path, body, stream=True)
                got.is_refusal(504)

    asyncio.run(scene())


@CLIENTS
def test_a_cut_body_is_an_error_status(client: str) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream(pace=1)) as gateway:
            for model in ("demo-cut", "demo-reset", "demo-overloaded"):
                for got in await ask_all(gateway, client, model, streams=[False]):
                    got.is_refusal(None if model == "demo-overloaded" else 502)
        async with before(ScriptedUpstream(pace=1), each=SILENT) as gateway:
            for got in await ask_all(gateway, client, "demo-stall", streams=[False]):
                got.is_refusal(504)

    asyncio.run(scene())


@CLIENTS
def test_an_endless_frame_is_refused(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(answer_attempt.Options, frozen=True, kw_only=True):
        max_frame: int = 2**20

    monkeypatch.setattr(answer_attempt, "Options", Small)

    async def scene() -> None:
        upstream = ScriptedUpstream()
        async with before(upstream) as gateway:
            for name, stream in itertools.product("acrg", (True, False)):
                upstream.script(upstreams.huge_frame(2**26))
                got = await ask(gateway, client, f"{name}/m", stream=stream)
                assert "of more than" in got.is_refusal(502)
                assert await upstream.last.wait_closed()

    asyncio.run(scene())


@CLIENTS
def test_a_redirect_is_not_followed(client: str) -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as elsewhere:
            upstream = ScriptedUpstream()
            upstream.otherwise = upstreams.redirect(f"{elsewhere.url}/v1/stolen?x=1")
            async with before(upstream, server="retries = 5") as gateway:
                for got in await ask_all(gateway, client, "m"):
                    assert f"redirects to {elsewhere.url} (HTTP 307)" in got.is_refusal(502)
                assert elsewhere.seen == []
                assert len(upstream.seen) == 8

    asyncio.run(scene())


def test_a_slow_error_body_is_read_completely() -> None:
    async def scene() -> None:
        upstream = ScriptedUpstream(pace=1)
        steps = (b'{"error": {"mess', Wait(0.1), b'age": "quota", "type": "rate_limit_error"}}')
        upstream.otherwise = Reply(steps=steps, status=400)
        async with before(upstream) as gateway:
            for got in await ask_all(gateway, "anthropic", "m"):
                assert got.is_refusal(400) == "quota"

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("header", "told"),
    [("7", "7"), ("inf", None), ("nan", None), ("-3", None), ("soon", None), ("1e3", "1000")],
)
def test_odd_retry_after_values(header: str, told: str | None) -> None:
    async def scene() -> None:
        upstream = ScriptedUpstream()
        upstream.otherwise = upstreams.status(429, b"{}", retry_after=header)
        async with before(upstream) as gateway:
            got = await ask(gateway, "openai-chat", "c/m")
            got.is_refusal(429)
            assert got.headers.get("retry-after") == told

    asyncio.run(scene())


def test_a_key_repeated_by_the_upstream_is_not_shown() -> None:
    async def scene() -> None:
        upstream = ScriptedUpstream()
        async with upstream:
            toml = config(upstream.url).replace('"none"', '"env:KEY"')
            async with running(toml, {"KEY": "sk-very-secret-key"}) as gateway:
                body = b'{"error": {"message": "no such key: sk-very-secret-key", "code": 401}}'
                for reply in (upstreams.status(401, body), upstreams.status(200, body)):
                    upstream.otherwise = reply
                    for got in await ask_all(gateway, "openai-chat", "m"):
                        assert "no such key: #" in got.is_refusal(401)
                assert {seen.key for seen in upstream.seen} == {"sk-very-secret-key"}

    asyncio.run(scene())


def test_a_netrc_file_is_ignored(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password mine\n")
    monkeypatch.setenv("NETRC", str(netrc))

    async def scene() -> None:
        async with ScriptedUpstream() as upstream:
            toml = config(upstream.url).replace('"none"', '"env:KEY"')
            async with running(toml, {"KEY": "good-enough"}) as gateway:
                for got in await ask_all(gateway, "openai-chat", "demo"):
                    assert got.said["tool_calls"]
                assert {seen.key for seen in upstream.seen} == {"good-enough"}

    asyncio.run(scene())


def test_connections_are_reused() -> None:
    async def scene() -> None:
        connections = 0
        accepted = asyncio.Event()
        upstream = ScriptedUpstream()

        async def through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            accepted.set()
            port = int(upstream.url.rpartition(":")[2])
            behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copy(reader, behind_writer), _copy(behind_reader, writer))

        async with upstream:
            server = await asyncio.start_server(through, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            async with running(config(f"http://127.0.0.1:{port}")) as gateway:
                for name, stream in itertools.product("acrg", (True, False)):
                    got = await ask(gateway, "openai-chat", f"{name}/demo", stream=stream)
                    assert got.said["tool_calls"]
                    await asyncio.sleep(0.02)
            server.close()
        assert connections == 1

    asyncio.run(scene())


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
