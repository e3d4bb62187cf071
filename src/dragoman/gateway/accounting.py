"""What is written down of an exchange when it is over: counters, and one line in the log."""

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
    from .exchange_handler import Serving

log = logging.getLogger("dragoman.gateway")


def count_tokens(counters: TargetMetrics, attempt: Attempt) -> None:
    """What an attempt cost, however it ended: a failed one is paid for as well."""
    usage = attempt.exchange.usage if attempt.exchange else NO_USAGE
    if usage is not NO_USAGE and usage.known:
        counters.input.inc(usage.prompt)
        counters.output.inc(usage.output or 0)


def account(state: State, serving: Serving) -> None:
    """However it ended: answered, refused, or left by its client."""
    serving.track.ended(serving.outcome, serving.status)
    attempt = serving.attempt
    exchange = attempt.exchange if attempt else None
    counters = serving.counters or state.metrics.target(serving.client.name, "", "")
    counters.ended(serving.outcome)
    counters.duration.observe(serving.track.seconds)
    if attempt is not None and attempt.first_event is not None:
        counters.first_event.observe(attempt.first_event)
    receipts = exchange.receipts if exchange else ()
    fired = [rule for receipt in receipts for rule in receipt.rules] if receipts else []
    for receipt in receipts:
        state.metrics.calls.labels(serving.choice.upstream.name if serving.choice else "", receipt.fate).inc()
    for rule in fired:
        state.metrics.rules.labels(rule).inc()
    if serving.trace is not None:
        serving.trace.ended(_told(serving, len(fired)))
    if log.isEnabledFor(logging.INFO):
        _log(serving, len(fired))


def _log(serving: Serving, mended: int) -> None:
    exchange = serving.attempt.exchange if serving.attempt else None
    usage = exchange.usage if exchange else None
    log.info(
        "%s %s -> %s",
        serving.client.name,
        serving.track.model,
        serving.choice.key if serving.choice else "nowhere",
        extra={
            "exchange": serving.id,
            "profile": serving.track.profile or UNKNOWN.name,
            "outcome": serving.outcome,
            "seconds": round(serving.track.seconds, 3),
            "input": usage.prompt if usage and usage.known else None,
            "output": usage.output if usage else None,
            "mended": mended or None,
        },
    )


def _told(serving: Serving, mended: int) -> TraceSummary:
    attempt = serving.attempt
    if attempt is None:
        return TraceSummary(outcome=serving.outcome, choice=serving.choice)
    answer, exchange = attempt.answer, attempt.exchange
    return TraceSummary(
        outcome=serving.outcome,
        choice=serving.choice,
        usage=exchange.usage if exchange else NO_USAGE,
        stop=answer.end.stop if answer.end else None,
        model=answer.start.model,
        id=answer.start.id,
        first_event=attempt.first_event,
        mended=mended,
    )
