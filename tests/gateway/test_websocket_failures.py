"""Responses over a WebSocket: failures, closing, and access control."""

import asyncio
import json
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import trustme
from gateway_harness import SHORT, Gateway, before, config, running
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support import scripted_upstream as upstreams
from support.scripted_upstream import FOREVER, ScriptedUpstream, Wait
from support.wires import RESPONSES
from test_faults_midstream import opening
from websocket_client import (
    QUESTION,
    TOOL,
    UPSTREAMS,
    Socket,
    connected,
    play,
    receipts,
)
from websockets.exceptions import ConnectionClosed, InvalidStatus

from dragoman.config import loads
from dragoman.observe.tracing.otel import OtelTracing

# Failures


@UPSTREAMS
def test_an_error_of_the_upstream_is_an_error_event(upstream: str) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        served.script(upstreams.status(429, b'{"error":{"message":"slow down"}}', retry_after="7"))
        error = await socket.ask("Hello", model=f"{SHORT[upstream]}/m", stream_id="a")
        assert (error["status"], error["stream_id"]) == (429, "a")
        assert "slow down" in error["error"]["message"]
        assert error["headers"]["retry-after"] == error["error"]["headers"]["retry-after"] == "7"
        (receipt,) = await receipts(gateway)
        assert receipt["id"] == error["headers"]["x-dragoman-exchange"]
        assert receipt["outcome"] == "rate_limit"
        await socket.works()

    play(scene)


@UPSTREAMS
def test_a_cut_answer_is_an_error_event_with_a_status(upstream: str) -> None:
    """Codex waits for minutes after an error that has no status."""

    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        await socket.send(input=QUESTION, model=f"{SHORT[upstream]}/demo-cut", tools=[TOOL])
        events = await socket.answer()
        assert events[0]["type"] == "response.created"
        assert (events[-1]["type"], events[-1]["status"]) == ("error", 502)
        await socket.works()

    play(scene)


def test_too_many_answers_are_refused() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        served.script(upstreams.stream(Wait(FOREVER)))
        await socket.send(input="Hello", model="c/m", stream_id="a")
        await served.wait_seen(1)
        error = await socket.ask("Hello", model="c/m", stream_id="b")
        assert (error["status"], error["error"]["code"]) == (529, "busy")

    play(scene, server="retries = 0\nmax_streams = 1")


def test_a_bug_of_ours_is_an_error_event(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(gateway.state.upstreams, "choices", lambda *_: 1 / 0)
            error = await socket.ask("Hello", model="c/demo")
        assert error["status"] == 500
        await socket.works()

    play(scene)


def test_a_bug_that_cannot_be_reported_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        with monkeypatch.context() as broken:
            broken.setattr("dragoman.gateway.exchange.sockets.SocketRequest", None)
            await socket.send(input="Hello", model="c/demo")
            with pytest.raises(ConnectionClosed) as closed:
                await socket.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011

    play(scene)


def test_a_client_that_does_not_read_is_disconnected() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        words = {"choices": [{"index": 0, "delta": {"content": "word " * 10_000}}]}
        served.script(upstreams.never_ending(f"data: {json.dumps(words)}\n\n".encode()))
        socket.sdk._connection.transport.pause_reading()
        await socket.send(input="Hello", model="c/m")
        await served.wait_seen(1)
        assert await served.last.wait_closed(10)
        assert await gateway.idle()

    play(scene, server="retries = 0\nclient_timeout = 1.0")


def test_a_message_carries_its_trace_context() -> None:
    """A single message has no headers, so Codex puts the trace context into its metadata."""

    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        spans = InMemorySpanExporter()
        gateway.state.observed.tracing = OtelTracing(SimpleSpanProcessor(spans), {})
        for digit in "12":
            parent = f"00-{digit * 32}-b7ad6b7169203331-01"
            metadata = {"ws_request_header_traceparent": parent}
            await socket.response("Hello", model="c/demo", client_metadata=metadata)
            assert served.last.headers["traceparent"].split("-")[1] == digit * 32

    play(scene)


def test_a_client_that_leaves_cancels_its_upstream_calls() -> None:
    async def run() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            served.otherwise = upstreams.stream(opening(RESPONSES), Wait(FOREVER))
            async with connected(gateway) as socket:
                for lane in "abc":
                    await socket.send(input="Hello", model="r/m", stream_id=lane)
                await socket.send(input="Hello", model="r/m", stream_id="a")
                await served.wait_seen(3)
                socket.sdk._connection.transport.abort()
                for seen in served.seen:
                    assert await seen.wait_closed(2)
                assert await gateway.idle()
                assert gateway.total("requests", outcome="cancelled") == 3
                assert len(served.seen) == 3, "waiting requests are not sent any more"

    asyncio.run(run())


def test_pings_are_answered_during_an_answer() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        served.script(upstreams.stream(Wait(FOREVER)))
        await socket.send(input="Hello", model="c/m")
        await served.wait_seen(1)
        async with asyncio.timeout(30):
            await (await socket.sdk._connection.ping())

    play(scene)


@pytest.mark.parametrize("agent", [True, False])
def test_keepalive_events_for_clients_that_count_messages(agent: bool) -> None:
    headers = {"originator": "codex_exec", "x-codex-window-id": "1"} if agent else {}

    async def run() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server="retries = 0\nkeepalive = 0.02") as gateway:
            served.script(upstreams.slow_headers(0.3, upstreams.status(503, b"{}")))
            async with connected(gateway, extra_headers=headers) as socket:
                await socket.send(input="Hello", model="c/m", client_metadata={})
                async with asyncio.timeout(30):
                    kinds = [json.loads(await socket.sdk.recv_bytes())["type"]]
                    while kinds[-1] != "error":
                        kinds.append(json.loads(await socket.sdk.recv_bytes())["type"])
                assert set(kinds[:-1]) == ({"keepalive"} if agent else set())

    asyncio.run(run())


# The end of the gateway


def test_a_gateway_that_stops_lets_an_answer_finish() -> None:
    async def run() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway, connected(gateway) as socket, connected(gateway) as idle:
            served.answering.clear()
            await socket.send(input=QUESTION, model="c/demo")
            await socket.send(input="What waits", model="c/demo")
            await served.wait_seen(1)
            gateway.state.lifecycle.announce_stop()
            served.answering.set()
            with pytest.raises(ConnectionClosed) as closed:
                await idle.next()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
            kinds = [event["type"] for event in await socket.answer()]
            assert kinds[-1] == "response.completed"
            assert (await socket.next())["status"] == 503
            with pytest.raises(ConnectionClosed) as closed:
                await socket.next()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001

    asyncio.run(run())


def test_a_stopped_gateway_closes_after_its_grace_period() -> None:
    async def run() -> None:
        served = ScriptedUpstream()
        async with served:
            served.script(upstreams.stream(Wait(FOREVER)))
            async with AsyncExitStack() as left:
                async with running(config(served.url)) as gateway:
                    socket = await left.enter_async_context(connected(gateway))
                    await socket.send(input="Hello", model="c/m")
                    await served.wait_seen(1)
                with pytest.raises(ConnectionClosed):
                    await socket.next()
            assert await served.last.wait_closed(2)

    asyncio.run(run())


# Access control


LOCKED = 'retries = 0\nkeys = ["env:GATE"]'
GATE = {"GATE": "gate-key-1234567890", "OTHER": "other-key-1234567890"}


def test_a_key_is_required_for_the_handshake_and_each_request() -> None:
    async def run() -> None:
        served = ScriptedUpstream()
        async with before(served, GATE, server=LOCKED) as gateway:
            with pytest.raises(InvalidStatus) as refused:
                async with connected(gateway, "wrong"):
                    pass
            assert refused.value.response.status_code == 401
            async with connected(gateway, GATE["GATE"]) as socket:
                await socket.works()
                other = config(served.url, server=LOCKED.replace("GATE", "OTHER"))
                gateway.state.replace(loads(other, env=GATE))
                error = await socket.ask("Hello", model="c/demo")
                assert (error["status"], error["error"]["code"]) == (401, "invalid_api_key")

    asyncio.run(run())


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"host": "evil.example"}])
def test_a_page_of_another_site_cannot_connect(headers: dict[str, str]) -> None:
    async def run() -> None:
        async with before(ScriptedUpstream()) as gateway:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await gateway.session.ws_connect(f"{gateway.url}/v1/responses", headers=headers)
            assert refused.value.status == 403

    asyncio.run(run())


def test_a_websocket_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    with (tmp_path / "cert.pem").open("wb") as file:
        for piece in issued.cert_chain_pems:
            file.write(piece.bytes())
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    files = f'tls = {{ cert = "{tmp_path}/cert.pem", key = "{tmp_path}/key.pem" }}'

    async def run() -> None:
        served = ScriptedUpstream()
        options = {"ssl": trust}
        async with (
            before(served, server=files) as gateway,
            connected(gateway, websocket_connection_options=options) as socket,
        ):
            await socket.works()

    asyncio.run(run())
