"""Metrics, trace and log line of an exchange, from its record."""

from __future__ import annotations

import logging

from ...config.types import UpstreamConfig
from ...model.events import NO_USAGE, Failed, Usage
from ...observe.metrics import UsageMetrics
from ...observe.tap import Track
from ...observe.tracing import ExchangeTrace, TraceSummary
from ...profiles import UNKNOWN
from ...protocols.common.collect import Answer
from ...routing.router import ChosenTarget
from ..state import State

log = logging.getLogger("dragoman.gateway")

# A client that leaves is no failure of an upstream or of the gateway.
_GOOD = frozenset({"ok", "cancelled"})
_OWN_QUESTIONS = "dragoman"
"""The client in the metrics of questions that Dragoman asks itself."""


def count_attempt(state: State, track: Track, choice: ChosenTarget, usage: Usage, *, answered: bool) -> None:
    """Count the tokens and the cost of an attempt. Failed attempts cost money too."""
    if usage is not NO_USAGE and usage.known:
        _count(state, track, track.client, choice.upstream, choice.model, usage)
    elif answered:
        track.count_unknown()


def count_side_question(
    state: State, track: Track, upstream: UpstreamConfig, model: str, usage: Usage
) -> None:
    """Count a question that Dragoman asked itself, to serve the exchange of `track`."""
    _count(state, track, _OWN_QUESTIONS, upstream, model, usage)


def _count(
    state: State, track: Track, client: str, upstream: UpstreamConfig, model: str, usage: Usage
) -> None:
    cost = state.prices.cost(upstream, model, usage, track.at)
    track.count(usage, cost)
    counters: tuple[UsageMetrics, ...] = (
        state.observed.metrics.target(client, upstream.name, model).usage,
        state.observed.metrics.key(track.key),
    )
    for counter in counters:
        counter.count(usage, cost)


def count_failure(state: State, choice: ChosenTarget, failure: Failed) -> None:
    """Count a failed attempt."""
    state.observed.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()


def account(state: State, track: Track, trace: ExchangeTrace | None, answer: Answer | None) -> None:
    """Count, trace and log an exchange that has ended: answered, refused, or left by the client.

    `answer` is what the client got of an answer.
    """
    choice, attempt = track.choice, track.attempts[-1] if track.attempts else None
    upstream = "" if choice is None else choice.upstream.name
    counters = state.observed.metrics.target(track.client, upstream, "" if choice is None else choice.model)
    counters.ended(track.outcome)
    counters.duration.observe(track.seconds)
    first_event = None if attempt is None else attempt.first_event
    if first_event is not None:
        counters.first_event.observe(first_event)
    mended = 0
    for receipt in track.receipts:
        state.observed.metrics.calls.labels(upstream, receipt.outcome).inc()
        mended += len(receipt.rules)
        for rule in receipt.rules:
            state.observed.metrics.rules.labels(rule).inc()
    if trace is not None:
        trace.ended(_trace_summary(track, answer, first_event, mended))
    level = logging.INFO if track.outcome in _GOOD else logging.WARNING
    if log.isEnabledFor(level):
        _log(state, track, mended, level)


def _log(state: State, track: Track, mended: int, level: int) -> None:
    usage, failure, choice = track.usage, track.failure, track.choice
    log.log(
        level,
        "%s %s -> %s",
        track.client,
        track.model,
        choice.key if choice else "nowhere",
        extra={
            "exchange": track.id,
            "key": track.key or None,
            "profile": track.profile or UNKNOWN.name,
            "outcome": track.outcome,
            "error": state.observed.redactor.scrub_text(failure.message, track.secrets) if failure else None,
            "seconds": round(track.seconds, 3),
            "input": usage.prompt if usage.known else None,
            "output": usage.output,
            "mended": mended or None,
        },
    )


def _trace_summary(
    track: Track, answer: Answer | None, first_event: float | None, mended: int
) -> TraceSummary:
    if answer is None:
        return TraceSummary(outcome=track.outcome, choice=track.choice)
    return TraceSummary(
        outcome=track.outcome,
        choice=track.choice,
        usage=track.usage,
        stop=answer.end.stop if answer.end else None,
        model=answer.start.model,
        id=answer.start.id,
        first_event=first_event,
        mended=mended,
    )
