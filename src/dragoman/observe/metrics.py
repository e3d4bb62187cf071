"""The metrics of `/metrics`, with `prometheus_client`.

Several workers count in memory-mapped files of one private folder. The worker that is scraped sums the files
of all workers, including those that died.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    multiprocess,
)  # fmt: skip

from ..model.events import Usage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


# A second line for each counter, with the time at which it began. Prometheus does not need it.
disable_created_metrics()
# Clients choose model names, so the number of label values must have a limit.
_MAX_MODELS = 200
OTHER = "other"


# prometheus_client reads this variable when it is imported, and then counts in files of that folder.
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def shared_metrics() -> Generator[None]:
    """Make all processes that start inside this block count in one temporary folder."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]


def worker_died(pid: int) -> None:
    """Remove a dead worker's gauges: its open streams are gone."""
    cast(Any, multiprocess).mark_process_dead(pid, os.environ[_FOLDER])


class UsageMetrics:
    """The counters of tokens and cost for one set of labels."""

    def __init__(self, tokens: Counter, cost: Counter, unpriced: Counter, *labels: str) -> None:
        self._input = tokens.labels(*labels, "input")
        self._cached = tokens.labels(*labels, "cached")
        self._output = tokens.labels(*labels, "output")
        self._cost = cost.labels(*labels)
        self._unpriced = unpriced.labels(*labels)

    def count(self, usage: Usage, cost: float | None) -> None:
        """Count one answer. `cost` is in US dollars; None: unknown."""
        self._input.inc(usage.prompt)
        self._output.inc(usage.output or 0)
        if usage.cache_read:
            self._cached.inc(usage.cache_read)
        if cost is None:
            self._unpriced.inc()
        else:
            self._cost.inc(cost)


class TargetMetrics:
    """The counters for one client protocol, one upstream and one model."""

    def __init__(self, metrics: Metrics, *labels: str) -> None:
        self._requests = metrics.requests
        self._labels = labels
        self.duration = metrics.duration.labels(*labels)
        self.first_event = metrics.first_event.labels(*labels)
        self.usage = UsageMetrics(metrics.tokens, metrics.cost, metrics.unpriced, *labels)

    def ended(self, outcome: str) -> None:
        """Count a request with this outcome."""
        self._requests.labels(*self._labels, outcome).inc()


class Metrics:
    """The metrics of one gateway process, or of all workers."""

    def __init__(self) -> None:
        self._folder = os.environ.get(_FOLDER)
        self._registry = CollectorRegistry()
        self._models: set[str] = set()
        self._targets: dict[tuple[str, str, str], TargetMetrics] = {}
        self._keys: dict[str, UsageMetrics] = {}
        registry, labels = self._registry, ("client", "upstream", "model")
        self.requests = Counter(
            "dragoman_requests", "Answers given.", (*labels, "outcome"), registry=registry
        )
        self.duration = Histogram(
            "dragoman_request_seconds", "From first byte in to last byte out.", labels, buckets=_SECONDS,
            registry=registry,
        )  # fmt: skip
        self.first_event = Histogram(
            "dragoman_first_event_seconds", "Until the first thing worth sending.", labels, buckets=_SECONDS,
            registry=registry,
        )  # fmt: skip
        self.open = Gauge(
            "dragoman_open_streams", "Answers under way.", registry=registry, multiprocess_mode="livesum"
        )
        self.tokens = Counter(
            "dragoman_tokens", "Tokens; `cached` is a part of `input`.", (*labels, "kind"), registry=registry
        )
        self.cost = Counter("dragoman_cost_usd", "Known cost in US dollars.", labels, registry=registry)
        self.unpriced = Counter(
            "dragoman_unpriced_answers", "Answers whose price is unknown.", labels, registry=registry
        )
        self.key_tokens = Counter(
            "dragoman_key_tokens", "Tokens per key; `cached` is a part of `input`.", ("key", "kind"),
            registry=registry,
        )  # fmt: skip
        self.key_cost = Counter(
            "dragoman_key_cost_usd", "Known cost per key in US dollars.", ("key",), registry=registry
        )
        self.key_unpriced = Counter(
            "dragoman_key_unpriced_answers",
            "Answers per key whose price is unknown.",
            ("key",),
            registry=registry,
        )
        self.rules = Counter("dragoman_rules_fired", "Uses of mending rules.", ("rule",), registry=registry)
        self.calls = Counter(
            "dragoman_tool_calls", "Tool calls: valid, mended, invalid, not offered, cut, or left out.",
            ("upstream", "outcome"), registry=registry,
        )  # fmt: skip
        self.receipts_lost = Counter(
            "dragoman_receipts_lost", "Receipts that could not be written to the store.", registry=registry
        )
        self.failures_lost = Counter(
            "dragoman_failures_lost", "Failed exchanges whose bytes could not be kept.", registry=registry
        )
        self.failures = Counter(
            "dragoman_failures", "Failed attempts.", ("upstream", "kind"), registry=registry
        )

    def target(self, client: str, upstream: str, model: str) -> TargetMetrics:
        """The counters of a target. Cached: looking counters up by their labels costs more than counting."""
        found = self._targets.get((client, upstream, model))
        if found is None:
            key = (client, upstream, self.model(model))
            found = self._targets.get(key)
            if found is None:
                found = self._targets[key] = TargetMetrics(self, *key)
        return found

    def key(self, name: str) -> UsageMetrics:
        """The counters of a key of the gateway, by its name; empty: all keys without a name."""
        found = self._keys.get(name)
        if found is None:
            counters = (self.key_tokens, self.key_cost, self.key_unpriced)
            found = self._keys[name] = UsageMetrics(*counters, name)
        return found

    def model(self, name: str) -> str:
        """The label value for a model: its name, or `other` if there are too many models."""
        if name not in self._models:
            if len(self._models) >= _MAX_MODELS:
                return OTHER
            self._models.add(name)
        return name

    def page(self) -> bytes:
        if self._folder is None:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        cast(Any, multiprocess).MultiProcessCollector(together, self._folder)
        return generate_latest(together)

    def open_streams(self) -> int:
        """The number of running answers, in all workers."""
        return self._sum(self.open, "gauge_livesum_*.db")

    def lost_receipts(self) -> int:
        """The number of receipts that could not be written, in all workers."""
        return self._sum(self.receipts_lost, "counter_*.db")

    def _sum(self, of: Counter | Gauge, files: str) -> int:
        """The value of a metric without labels. Several workers keep it in `files`."""
        metrics: Any = of.collect()
        (name,) = (metric.name for metric in metrics)
        if self._folder is not None:
            found = [str(file) for file in Path(self._folder).glob(files)]
            metrics = cast(Any, multiprocess).MultiProcessCollector.merge(found)
        wanted = {name, f"{name}_total"}
        return round(sum(s.value for metric in metrics for s in metric.samples if s.name in wanted))
