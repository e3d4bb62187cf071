"""Metrics, trace and log line of an exchange, written when it ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..model.events import NO_USAGE
from ..observe.metrics import TargetMetrics
from ..observe.tracing import TraceSummary
from ..profiles import UNKNOWN
from .attempt import Attempt
from .state import State

if TYPE_CHECKING:
    from .exchange_handler import ExchangeHandler

log = logging.getLogger("dragoman.gateway")


def count_tokens(counters: TargetMetrics, attempt: Attempt) -> None:
    """Count the tokens of an attempt. Failed attempts cost money too."""
    usage = attempt.exchange.usage if attempt.exchange else NO_USAGE
    if usage is not NO_USAGE and usage.known:
        counters.input.inc(usage.prompt)
        counters.output.inc(usage.output or 0)


def account(state: State, handler: ExchangeHandler) -> None:
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
        state.metrics.calls.labels(handler.choice.upstream.name if handler.choice else "", receipt.fate).inc()
    for rule in fired:
        state.metrics.rules.labels(rule).inc()
    if handler.trace is not None:
        handler.trace.ended(_trace_summary(handler, len(fired)))
    if log.isEnabledFor(logging.INFO):
        _log(handler, len(fired))


def _log(handler: ExchangeHandler, mended: int) -> None:
    exchange = handler.attempt.exchange if handler.attempt else None
    usage = exchange.usage if exchange else None
    log.info(
        "%s %s -> %s",
        handler.client.name,
        handler.track.model,
        handler.choice.key if handler.choice else "nowhere",
        extra={
            "exchange": handler.id,
            "profile": handler.track.profile or UNKNOWN.name,
            "outcome": handler.outcome,
            "seconds": round(handler.track.seconds, 3),
            "input": usage.prompt if usage and usage.known else None,
            "output": usage.output if usage else None,
            "mended": mended or None,
        },
    )


def _trace_summary(handler: ExchangeHandler, mended: int) -> TraceSummary:
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
