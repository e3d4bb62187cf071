"""What `/metrics` counts, by `prometheus_client`.

Several workers count into files of one private folder, mapped into memory. The worker that is scraped sums
the files of all workers, including those that died.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


# Clients may name models themselves: what is counted must not grow with their inventions.
_MOST_MODELS = 200
OTHER = "other"


# The variable by which prometheus_client knows, when it is imported, that others count too.
_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


@contextmanager
def counted_together() -> Generator[None]:
    """The processes that are started meanwhile count into one folder, which goes when they have gone."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]


def gone(pid: int) -> None:
    """A process that counted together with others is dead: what it had under way is not any more."""
    cast(Any, multiprocess).mark_process_dead(pid, os.environ[_FOLDER])


class Target:
    """The counters of what one client protocol asks of one upstream's model."""

    def __init__(self, metrics: Metrics, *labels: str) -> None:
        self._requests = metrics.requests
        self._labels = labels
        self.duration = metrics.duration.labels(*labels)
        self.first_event = metrics.first_event.labels(*labels)
        self.input = metrics.tokens.labels(*labels, "input")
        self.output = metrics.tokens.labels(*labels, "output")

    def ended(self, outcome: str) -> None:
        """Count a request that ended in this way."""
        self._requests.labels(*self._labels, outcome).inc()


class Metrics:
    """What one gateway process counts, alone or together with others."""

    def __init__(self) -> None:
        self._folder = os.environ.get(_FOLDER)
        self._registry = CollectorRegistry()
        self._models: set[str] = set()
        self._targets: dict[tuple[str, str, str], Target] = {}
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
        self.tokens = Counter("dragoman_tokens", "Tokens.", (*labels, "kind"), registry=registry)
        self.rules = Counter("dragoman_rules_fired", "Uses of mending rules.", ("rule",), registry=registry)
        self.calls = Counter(
            "dragoman_tool_calls", "Tool calls: valid, mended, invalid, not offered, cut, or left out.",
            ("upstream", "outcome"), registry=registry,
        )  # fmt: skip
        self.failures = Counter(
            "dragoman_failures", "Failed attempts.", ("upstream", "kind"), registry=registry
        )

    def target(self, client: str, upstream: str, model: str) -> Target:
        """Found once: to look counters up by their labels costs more than to count."""
        found = self._targets.get((client, upstream, model))
        if found is None:
            key = (client, upstream, self.model(model))
            found = self._targets.get(key)
            if found is None:
                found = self._targets[key] = Target(self, *key)
        return found

    def model(self, name: str) -> str:
        """What a model is counted under: its name, as long as there are not too many of them."""
        if name not in self._models:
            if len(self._models) >= _MOST_MODELS:
                return OTHER
            self._models.add(name)
        return name

    def page(self) -> bytes:
        if self._folder is None:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        cast(Any, multiprocess).MultiProcessCollector(together, self._folder)
        return generate_latest(together)

    def under_way(self) -> int:
        """How many answers are, in all processes that count together."""
        metrics: Any = self.open.collect()
        if self._folder is not None:
            files = [str(file) for file in Path(self._folder).glob("gauge_livesum_*.db")]
            metrics = cast(Any, multiprocess).MultiProcessCollector.merge(files)
        return round(sum(sample.value for metric in metrics for sample in metric.samples))
