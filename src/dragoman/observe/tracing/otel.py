"""Traces with OpenTelemetry, by its semantic conventions for generative AI and HTTP.

An exchange is one span. Only this span has the token counts, so that no collector counts them twice. Each
attempt at a target is a child span. No span contains prompts or answers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from opentelemetry import context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ..._version import __version__
from ...config.providers import providers
from ...model.events import FailureKind, Stop
from ...model.messages import Request, Settings
from ...protocols.common.failures import UpstreamFailed
from ...protocols.registry import client_protocol
from ...routing.router import ChosenTarget
from ...transport.urls import parse
from . import AttemptTrace, ExchangeTrace, TraceSummary, Tracing

Attributes = dict[str, Any]

_PATH = "/v1/traces"
_TIMEOUT = 3.0  # seconds that a collector without an answer may delay the shutdown
_NANO = 1_000_000_000
_REASONS = {
    Stop.END: "stop",
    Stop.STOP_SEQUENCE: "stop",
    Stop.PAUSE: "stop",
    Stop.TOOL: "tool_call",
    Stop.MAX_TOKENS: "length",
    Stop.CONTEXT_FULL: "length",
    Stop.REFUSAL: "content_filter",
    Stop.FILTER: "content_filter",
}
_W3C = TraceContextTextMapPropagator()


def exporting(endpoint: str | None, env: Mapping[str, str]) -> OtelTracing:
    """Export traces by OTLP over HTTP. OpenTelemetry's variables fill in what the config leaves open."""
    if endpoint is not None and not endpoint.rstrip("/").endswith(_PATH):
        endpoint = endpoint.rstrip("/") + _PATH
    return OtelTracing(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)), env)


class OtelTracing(Tracing):
    """Tracing that sends its spans to `processor`."""

    def __init__(self, processor: SpanProcessor, env: Mapping[str, str]) -> None:
        name = env.get("OTEL_SERVICE_NAME", "").strip() or "dragoman"
        resource = Resource.create({"service.name": name, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("dragoman", __version__)

    def exchange(
        self, id: str, client: str, request: Request, headers: Mapping[str, str], started: float
    ) -> ExchangeTrace:
        return _Exchange(self._tracer, id, client, request, headers, started)

    async def close(self) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            loop.call_soon_threadsafe(over.set)

        # A daemon thread, because the exporter's own timeout is longer than ours.
        threading.Thread(target=shut_down, daemon=True).start()
        try:
            async with asyncio.timeout(_TIMEOUT):
                await over.wait()
        except TimeoutError:
            pass


class _Exchange(ExchangeTrace):
    def __init__(
        self,
        tracer: Tracer,
        id: str,
        client: str,
        request: Request,
        headers: Mapping[str, str],
        started: float,
    ) -> None:
        self._tracer = tracer
        self._tries = 0
        # Only the client's headers can give a parent: the gateway has no span around its exchanges.
        parent = _W3C.extract(headers, context=context.Context())
        operation = client_protocol(client).operation
        self._span = tracer.start_span(
            f"{operation} {request.model}",
            context=parent,
            kind=SpanKind.SERVER,
            start_time=int(started * _NANO),
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.request.model": request.model,
                "dragoman.exchange.id": id,
                "dragoman.client.protocol": client,
                **({"gen_ai.request.stream": True} if request.stream else {}),
                **_settings(request.settings),
            },
        )

    def attempt(self, choice: ChosenTarget) -> AttemptTrace:
        self._tries += 1
        return _Attempt(self._tracer, self._span, choice, self._tries - 1)

    def ended(self, summary: TraceSummary) -> None:
        span, usage = self._span, summary.usage
        if summary.choice is not None:
            span.set_attributes(_target(summary.choice))
        cached = {"cache_read.input": usage.cache_read, "cache_creation.input": usage.cache_write}
        counted = {"input": usage.prompt, "output": usage.output, "reasoning.output": usage.reasoning}
        known = {**counted, **cached} if usage.known else {}
        finish = _REASONS[summary.stop] if summary.stop is not None else "error"
        span.set_attributes(
            _known(
                {
                    **{f"gen_ai.usage.{name}_tokens": count for name, count in known.items()},
                    "gen_ai.response.model": summary.model or None,
                    "gen_ai.response.id": summary.id or None,
                    "gen_ai.response.finish_reasons": (finish,) if summary.choice is not None else None,
                    "gen_ai.response.time_to_first_chunk": summary.first_event,
                    "dragoman.calls.mended": summary.mended or None,
                }
            )
        )
        _end(span, None if summary.outcome == "ok" else summary.outcome)


class _Attempt(AttemptTrace):
    def __init__(self, tracer: Tracer, parent: Span, choice: ChosenTarget, resent: int) -> None:
        self._failure: str | None = None
        self._refused: str | None = None
        self._span = tracer.start_span(
            "POST",
            context=set_span_in_context(parent, context.Context()),
            kind=SpanKind.CLIENT,
            attributes={
                "http.request.method": "POST",
                "gen_ai.request.model": choice.model,
                **_target(choice),
                **({"http.request.resend_count": resent} if resent else {}),
            },
        )
        headers: dict[str, str] = {}
        _W3C.inject(headers, context=set_span_in_context(self._span, context.Context()))
        self.headers = headers

    def answered(self, status: int) -> None:
        self._span.set_attribute("http.response.status_code", status)
        if status >= 400:
            self._refused = str(status)

    def failed(self, kind: FailureKind) -> None:
        self._failure = kind.value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, UpstreamFailed):
            self._failure = error.failure.kind.value
        elif error is not None:
            self._failure = "cancelled"
        _end(self._span, self._refused or self._failure)


def _end(span: Span, failure: str | None) -> None:
    if failure is not None:
        span.set_attribute("error.type", failure)
        span.set_status(Status(StatusCode.ERROR))
    span.end(time.time_ns())


def _target(choice: ChosenTarget) -> Attributes:
    upstream = choice.upstream
    url = parse(upstream.base_url)
    provider = upstream.provider or upstream.name
    known = providers().get(provider)
    return _known(
        {
            "gen_ai.provider.name": known.otel_name or provider if known else provider,
            "server.address": url.host,
            "server.port": url.port,
            "dragoman.upstream": upstream.name,
        }
    )


def _settings(settings: Settings) -> Attributes:
    return _known(
        {
            "gen_ai.request.max_tokens": settings.max_tokens,
            "gen_ai.request.temperature": settings.temperature,
            "gen_ai.request.top_p": settings.top_p,
            "gen_ai.request.top_k": settings.top_k,
            "gen_ai.request.presence_penalty": settings.presence_penalty,
            "gen_ai.request.frequency_penalty": settings.frequency_penalty,
            "gen_ai.request.seed": settings.seed,
            "gen_ai.request.choice.count": settings.n if settings.n != 1 else None,
            "gen_ai.output.type": "json" if settings.format else None,
        }
    )


def _known(attributes: Attributes) -> Attributes:
    return {name: value for name, value in attributes.items() if value is not None}
