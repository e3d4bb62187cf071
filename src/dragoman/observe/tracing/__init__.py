"""Traces of exchanges. Off by default: then OpenTelemetry is not imported.

This module has the interface for the gateway; `otel` implements it with OpenTelemetry.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Protocol, Self

import msgspec

from ...config.types import ConfigError, TelemetryConfig
from ...model.events import FailureKind, Stop, Usage
from ...model.messages import Request
from ...routing.router import ChosenTarget

log = logging.getLogger("dragoman.gateway")

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_MISSING = "traces need a package that is not installed: pip install 'dragoman[otel]'"


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a finished exchange."""

    outcome: str
    """`ok`, `cancelled`, or the kind of failure."""
    choice: ChosenTarget | None = None
    usage: Usage = Usage()
    stop: Stop | None = None
    model: str = ""
    """The model that the upstream reported."""
    id: str = ""
    """The upstream's id of the answer, if it sent one."""
    first_event: float | None = None
    mended: int = 0


class AttemptTrace(Protocol):
    """One attempt at one target, used as a context manager."""

    headers: Mapping[str, str]
    """Headers for the upstream (`traceparent`), so that its spans find their parent."""

    def answered(self, status: int) -> None:
        """The upstream answered with this HTTP status."""

    def failed(self, kind: FailureKind) -> None:
        """The answer failed after the client had got a part of it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ExchangeTrace(Protocol):
    """The span of one exchange, and the factory of its attempts' spans."""

    def attempt(self, choice: ChosenTarget) -> AttemptTrace: ...

    def ended(self, summary: TraceSummary) -> None:
        """The exchange is over."""


class Tracing(Protocol):
    """The tracing of one gateway process."""

    def exchange(
        self, id: str, client: str, request: Request, headers: Mapping[str, str], started: float
    ) -> ExchangeTrace:
        """Start a trace. `started` is in seconds since the epoch; `headers` are the client's."""
        ...

    async def close(self) -> None:
        """Export the remaining spans."""


async def traced(work: Awaitable[None], trace: AttemptTrace) -> None:
    """Run an attempt inside its trace."""
    with trace:
        await work


def open_tracing(config: TelemetryConfig, env: Mapping[str, str]) -> Tracing | None:
    """Tracing, if the config or OpenTelemetry's own variables enable it."""
    named = any(env.get(name, "").strip() for name in _ENDPOINTS)
    by_env = named and not _switched_off(env)
    wanted = config.traces if config.traces is not None else bool(config.endpoint) or by_env
    if not wanted:
        return None
    try:
        from . import otel
    except ImportError:
        if config.traces or config.endpoint:
            raise ConfigError(f"[telemetry] enables traces, but {_MISSING}") from None
        log.warning("the environment names an OTLP endpoint, but %s", _MISSING)
        return None
    return otel.exporting(config.endpoint, env)


def _switched_off(env: Mapping[str, str]) -> bool:
    disabled = env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return disabled or "otlp" not in (env.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp")
