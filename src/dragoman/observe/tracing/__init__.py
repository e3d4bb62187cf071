"""Traces of exchanges, for those who collect them. Off unless wanted, and then nothing of it is imported.

What stands here is what the gateway talks to; `otel` says it in OpenTelemetry's words. Where nobody listens
there is none of it.
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
from ...routing.router import Choice

log = logging.getLogger("dragoman.gateway")

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_MISSING = "traces need a package that is not installed: pip install 'dragoman[otel]'"


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an exchange when it is over."""

    outcome: str
    """`ok`, `cancelled`, or the kind of failure."""
    choice: Choice | None = None
    usage: Usage = Usage()
    stop: Stop | None = None
    model: str = ""
    """What the upstream says it used."""
    id: str = ""
    """The upstream's own, where it gave one."""
    first_event: float | None = None
    mended: int = 0


class AttemptTrace(Protocol):
    """One try at one target, from its first line to its last (`with`)."""

    headers: Mapping[str, str]
    """What the upstream is told, so that its own spans find their parent."""

    def answered(self, status: int) -> None:
        """The upstream's answer began, with this HTTP status."""

    def failed(self, kind: FailureKind) -> None:
        """It broke off after the client had part of it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ExchangeTrace(Protocol):
    """One exchange."""

    def attempt(self, choice: Choice) -> AttemptTrace: ...

    def ended(self, told: Ended) -> None:
        """It is over, however it ended."""


class Tracing(Protocol):
    """What a gateway process traces with."""

    def exchange(
        self, id: str, client: str, request: Request, headers: Mapping[str, str], started: float
    ) -> ExchangeTrace:
        """An exchange began `started` seconds after the epoch; `headers` are the client's."""
        ...

    async def close(self) -> None:
        """Hand over what is not yet handed over."""


async def traced(work: Awaitable[None], trace: AttemptTrace) -> None:
    """`work`, which is an attempt."""
    with trace:
        await work


def open_tracing(config: TelemetryConfig, env: Mapping[str, str]) -> Tracing | None:
    """What the config and OpenTelemetry's own variables ask for, if they do."""
    named = any(env.get(name, "").strip() for name in _ENDPOINTS)
    by_env = named and not _switched_off(env)
    wanted = config.traces if config.traces is not None else bool(config.endpoint) or by_env
    if not wanted:
        return None
    try:
        from . import otel
    except ImportError:
        if config.traces or config.endpoint:
            raise ConfigError(f"[telemetry] wants traces, but {_MISSING}") from None
        log.warning("an OTLP endpoint is in the environment, but %s", _MISSING)
        return None
    return otel.exporting(config.endpoint, env)


def _switched_off(env: Mapping[str, str]) -> bool:
    disabled = env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return disabled or "otlp" not in (env.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp")
