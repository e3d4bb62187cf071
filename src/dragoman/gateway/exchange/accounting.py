"""Metrics, trace and log line of an exchange, written when it ends."""

from __future__ import annotations

import logging
from typing import Protocol

from ...config.types import UpstreamConfig
from ...model.events import NO_USAGE, Usage
from ...observe.metrics import TargetMetrics
from ...observe.tap import Track
from ...observe.tracing import ExchangeTrace, TraceSummary
from ...profiles import UNKNOWN
from ...protocols.base import ClientProtocol
from ...routing.router import ChosenTarget
from ..state import State
from .attempt import Attempt

log = logging.getLogger("dragoman.gateway")

# A client that leaves is no failure of an upstream or of the gateway.
_GOOD = frozenset({"ok", "cancelled"})
_OWN_QUESTIONS = "dragoman"
"""The client in the metrics of questions that Dragoman asks itself."""


class Handler(Protocol):
    """Serves one request: for an answer, or one that passes to an upstream as it is."""

    id: str
    client: ClientProtocol
    choice: ChosenTarget | None
    attempt: Attempt | None
    counters: TargetMetrics | None
    outcome: str
    status: int
    track: Track
    trace: ExchangeTrace | None


def count_usage(state: State, handler: Handler, usage: Usage, *, answered: bool) -> None:
    """Count the tokens and the cost of an attempt. Failed attempts cost money too."""
    track, choice, counters = handler.track, handler.choice, handler.counters
    if usage is NO_USAGE or not usage.known:
        if answered:
            track.cost = None  # the upstream answered, and did not say how many tokens it took
        return
    assert choice is not None
    assert counters is not None
    cost = state.prices.cost(choice.upstream, choice.model, usage, track.at)
    track.count(usage, cost)
    counters.usage.count(usage, cost)
    state.metrics.key(track.key).count(usage, cost)


def count_side_question(
    state: State, track: Track, upstream: UpstreamConfig, model: str, usage: Usage
) -> None:
    """Count a question that Dragoman asked itself, to serve the exchange of `track`."""
    cost = state.prices.cost(upstream, model, usage, track.at)
    track.count(usage, cost)
    state.metrics.target(_OWN_QUESTIONS, upstream.name, model).usage.count(usage, cost)
    state.metrics.key(track.key).count(usage, cost)


def account(state: State, handler: Handler) -> None:
    """Record an exchange, however it ended: answered, refused, or left by the client."""
    handler.track.ended(handler.outcome, handler.status)
    attempt = handler.attempt
    exchange = attempt.exchange if attempt else None
    counters = handler.counters or state.metrics.target(handler.client.name, "", "")
    counters.ended(handler.outcome)
    counters.duration.observe(handler.track.seconds)
    if attempt is not None and attempt.first_event is not None:
        counters.first_event.observe(attempt.first_event)
    receipts = exchange.receipts if exchange else ()
    fired = [rule for receipt in receipts for rule in receipt.rules] if receipts else []
    for receipt in receipts:
        state.metrics.calls.labels(
            handler.choice.upstream.name if handler.choice else "", receipt.outcome
        ).inc()
    for rule in fired:
        state.metrics.rules.labels(rule).inc()
    if handler.trace is not None:
        handler.trace.ended(_trace_summary(handler, len(fired)))
    level = logging.INFO if handler.outcome in _GOOD else logging.WARNING
    if log.isEnabledFor(level):
        _log(state, handler, len(fired), level)


def _log(state: State, handler: Handler, mended: int, level: int) -> None:
    exchange = handler.attempt.exchange if handler.attempt else None
    usage = exchange.usage if exchange else None
    failure, secrets = handler.track.failure, handler.track.secrets
    log.log(
        level,
        "%s %s -> %s",
        handler.client.name,
        handler.track.model,
        handler.choice.key if handler.choice else "nowhere",
        extra={
            "exchange": handler.id,
            "key": handler.track.key or None,
            "profile": handler.track.profile or UNKNOWN.name,
            "outcome": handler.outcome,
            "error": state.redactor.scrub_text(failure.message, secrets) if failure else None,
            "seconds": round(handler.track.seconds, 3),
            "input": usage.prompt if usage and usage.known else None,
            "output": usage.output if usage else None,
            "mended": mended or None,
        },
    )


def _trace_summary(handler: Handler, mended: int) -> TraceSummary:
    attempt = handler.attempt
    if attempt is None:
        return TraceSummary(outcome=handler.outcome, choice=handler.choice)
    answer, exchange = attempt.answer, attempt.exchange
    return TraceSummary(
        outcome=handler.outcome,
        choice=handler.choice,
        usage=exchange.usage if exchange else NO_USAGE,
        stop=answer.end.stop if answer.end else None,
        model=answer.start.model,
        id=answer.start.id,
        first_event=attempt.first_event,
        mended=mended,
    )
