"""OpenTelemetry traces: one span per exchange, a child span per attempt, and none if switched off."""

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest
from aiohttp import web
from gateway_harness import SHORT, Gateway, RawClient, ask, asking, before, config, post, running, soon
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from support.scripted_upstream import FOREVER, ScriptedUpstream, Wait, status
from support.wires import CHAT, GEMINI, PROTOCOLS
from test_faults_midstream import spoken

from dragoman.config import ConfigError, loads
from dragoman.config.types import TelemetryConfig
from dragoman.observe.tracing import open_tracing
from dragoman.observe.tracing.otel import OtelTracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def listening(here: Gateway) -> InMemorySpanExporter:
    spans = InMemorySpanExporter()
    here.state.observed.tracing = OtelTracing(SimpleSpanProcessor(spans), {})
    return spans


def split_spans(spans: InMemorySpanExporter) -> tuple[ReadableSpan, list[ReadableSpan]]:
    """The span of the exchange, and those of its attempts."""
    found = spans.get_finished_spans()
    (exchange,) = [span for span in found if span.kind is SpanKind.SERVER]
    tries = [span for span in found if span.kind is SpanKind.CLIENT]
    assert len(found) == 1 + len(tries)
    for span in tries:
        assert span.parent is not None
        assert span.parent.span_id == exchange.context.span_id
    return exchange, tries


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_span_follows_the_conventions(upstream: str, client: str, stream: bool) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            spans = listening(here)
            model = f"{SHORT[upstream]}/demo"
            got = await ask(here, client, model, stream=stream)
            assert got.status == 200
            exchange, (only,) = split_spans(spans)
            operation = "generate_content" if client == GEMINI else "chat"
            said = attributes(exchange)
            port = int(served.url.rpartition(":")[2])
            assert exchange.name == f"{operation} {model}"
            assert exchange.status.status_code is StatusCode.UNSET
            assert said["gen_ai.operation.name"] == operation
            assert said["gen_ai.provider.name"] == SHORT[upstream]
            assert said["gen_ai.request.model"] == model
            assert said["gen_ai.response.model"]
            assert said["gen_ai.response.finish_reasons"] == ("tool_call",)
            assert said["gen_ai.usage.input_tokens"] > 0
            assert said["gen_ai.usage.output_tokens"] > 0
            assert said.get("gen_ai.request.stream", False) is stream
            assert (said["server.address"], said["server.port"]) == ("127.0.0.1", port)
            assert said["dragoman.exchange.id"] == got.headers["x-dragoman-exchange"]
            assert "error.type" not in said
            tried = attributes(only)
            assert (only.name, tried["http.response.status_code"]) == ("POST", 200)
            assert tried["gen_ai.request.model"] == "demo"
            assert not any(name.startswith("gen_ai.usage") for name in tried), "counted once"
            assert "Rome" not in repr((said, tried)), "traces hold no message text"

    asyncio.run(scene())


def test_the_clients_trace_is_continued_to_the_upstream() -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            spans = listening(here)
            path, body = asking(CHAT, "c/demo")
            headers = {"traceparent": PARENT, "tracestate": "vendor=1"}
            await post(here, CHAT, path, body, stream=True, **headers)
            exchange, (only,) = split_spans(spans)
            assert f"{exchange.context.trace_id:032x}" == PARENT.split("-")[1]
            assert exchange.parent is not None
            assert f"{exchange.parent.span_id:016x}" == PARENT.split("-")[2]
            sent = served.last.headers
            assert sent["traceparent"] == f"00-{PARENT.split('-')[1]}-{only.context.span_id:016x}-01"
            assert sent["tracestate"] == "vendor=1"

    asyncio.run(scene())


def test_each_attempt_has_a_span_below_the_exchange() -> None:
    routes = '[[routes]]\nmatch = "m"\nto = ["a/m", "c/m"]'

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, more=routes) as here:
            spans = listening(here)
            served.script(status(503), spoken(CHAT))
            assert (await ask(here, CHAT, "m")).status == 200
            exchange, tries = split_spans(spans)
            said = attributes(exchange)
            assert (said["dragoman.upstream"], said["gen_ai.response.finish_reasons"]) == ("c", ("stop",))
            assert "error.type" not in said
            assert [attributes(span).get("error.type") for span in tries] == ["503", None]
            assert [span.status.status_code for span in tries] == [StatusCode.ERROR, StatusCode.UNSET]
            assert attributes(tries[1])["http.request.resend_count"] == 1

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("script", "kind", "tried"),
    [
        (status(429, b'{"error": "slow down"}'), "rate_limit", "429"),
        ([spoken(CHAT)[: len(spoken(CHAT)) // 2]], "upstream", "upstream"),
    ],
)
def test_a_failure_has_a_type(script: Any, kind: str, tried: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            spans = listening(here)
            served.script(script)
            await ask(here, CHAT, "c/m")
            exchange, (only,) = split_spans(spans)
            assert attributes(exchange)["error.type"] == kind
            assert attributes(exchange)["gen_ai.response.finish_reasons"] == ("error",)
            assert exchange.status.status_code is StatusCode.ERROR
            assert attributes(only)["error.type"] == tried

    asyncio.run(scene())


def test_a_client_that_leaves_and_a_model_without_a_route() -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, more='[[routes]]\nmatch = "m"\nto = "c/m"') as here:
            spans = listening(here)
            served.script([spoken(CHAT)[:300], Wait(FOREVER)])
            async with RawClient(here) as plain:
                await plain.post(*asking(CHAT, "m"))
                await served.wait_seen()
            assert await soon(lambda: len(spans.get_finished_spans()) == 2)
            exchange, (only,) = split_spans(spans)
            assert attributes(exchange)["error.type"] == attributes(only)["error.type"] == "cancelled"
            spans.clear()
            assert (await ask(here, CHAT, "nonsense")).status == 404
            exchange, tries = split_spans(spans)
            assert (attributes(exchange)["error.type"], tries) == ("not_found", [])

    asyncio.run(scene())


def test_spans_are_sent_to_the_collector() -> None:
    got: list[ExportTraceServiceRequest] = []

    async def collect(request: web.Request) -> web.Response:
        got.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")

    async def scene() -> None:
        app = web.Application()
        app.router.add_post("/v1/traces", collect)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        collector = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with ScriptedUpstream(pace=1) as served:
            toml = config(served.url, more=f'[telemetry]\nendpoint = "{collector}"')
            async with running(toml, {"OTEL_SERVICE_NAME": "here"}) as here:
                assert (await ask(here, CHAT, "c/demo")).status == 200
        await runner.cleanup()

    asyncio.run(scene())
    (resource,) = [group for request in got for group in request.resource_spans]
    named = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
    assert named["service.name"] == "here"
    assert {span.name for group in resource.scope_spans for span in group.spans} == {"chat c/demo", "POST"}


# When tracing is on


ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("env", "said", "on"),
    [
        ({}, TelemetryConfig(), False),
        (ENDPOINT, TelemetryConfig(), True),
        (ENDPOINT, TelemetryConfig(traces=False), False),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "true"}, TelemetryConfig(), False),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, TelemetryConfig(), False),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9"}, TelemetryConfig(), True),
        ({}, TelemetryConfig(endpoint="http://127.0.0.1:9"), True),
        ({}, TelemetryConfig(endpoint="http://127.0.0.1:9", traces=False), False),
        ({}, TelemetryConfig(traces=True), True),
    ],
)
def test_which_settings_switch_tracing_on(env: dict[str, str], said: TelemetryConfig, on: bool) -> None:
    tracing = open_tracing(said, env)
    assert (tracing is not None) is on
    if tracing is not None:
        asyncio.run(tracing.close())


def test_without_the_package_the_setting_is_an_error_and_the_variable_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "dragoman.observe.tracing.otel", raising=False)
    monkeypatch.delattr("dragoman.observe.tracing.otel", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[otel\]'"):
        open_tracing(TelemetryConfig(traces=True), {})
    monkeypatch.setattr(logging.getLogger("dragoman"), "propagate", True)
    assert open_tracing(TelemetryConfig(), ENDPOINT) is None
    assert "dragoman[otel]" in caplog.text


def test_switched_off_nothing_is_imported_or_propagated() -> None:
    program = (
        "import sys, dragoman.gateway.process.run; from dragoman.gateway.state import State;"
        "from dragoman.config import loads;"
        "State(loads('[upstreams.ollama]', env={}), env={});"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as here:
            path, body = asking(CHAT, "c/demo")
            await post(here, CHAT, path, body, stream=True, traceparent=PARENT)
            assert "traceparent" not in served.last.headers

    asyncio.run(scene())


def test_an_unknown_telemetry_key_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r'unknown key "endpont" in \[telemetry\]; did you mean "endpoint"'):
        loads('[upstreams.ollama]\n[telemetry]\nendpont = "x"', env={})
