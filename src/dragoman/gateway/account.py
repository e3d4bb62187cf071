"""What is written down of an exchange when it is over: counters, and one line in the log."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from .state import State

if TYPE_CHECKING:
    from .serving import Serving

log = logging.getLogger("dragoman.gateway")


def account(state: State, serving: Serving) -> None:
    """However it ended: answered, refused, or left by its client."""
    attempt, choice = serving.attempt, serving.choice
    exchange = attempt.exchange if attempt else None
    outcome = serving.outcome
    if outcome == "ok" and exchange is not None and exchange.failure is not None:
        outcome = exchange.failure.kind.value
    target = choice.key if choice else "nowhere"
    # Only names the config knows: a client could fill the counters with names of its own.
    labels = (serving.client.name, choice.upstream.name if choice else "", choice.model if choice else "")
    elapsed = time.monotonic() - serving.started
    metrics = state.metrics
    metrics.requests.labels(*labels, outcome).inc()
    metrics.duration.labels(*labels).observe(elapsed)
    if attempt is not None and attempt.first_event is not None:
        metrics.first_event.labels(*labels).observe(attempt.first_event)
    usage = exchange.usage if exchange else None
    if usage is not None and usage.known:
        metrics.tokens.labels(*labels, "input").inc(usage.prompt)
        metrics.tokens.labels(*labels, "output").inc(usage.output or 0)
    fired = [fix.rule for receipt in (exchange.receipts if exchange else ()) for fix in receipt.fixes]
    for rule in fired:
        metrics.rules.labels(rule).inc()
    log.info(
        "%s %s -> %s",
        serving.client.name,
        serving.model,
        target,
        extra={
            "exchange": serving.id,
            "outcome": outcome,
            "seconds": round(elapsed, 3),
            "input": usage.prompt if usage and usage.known else None,
            "output": usage.output if usage else None,
            "mended": len(fired) or None,
        },
    )
