"""What `/metrics` counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """Counters of one gateway process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("client", "upstream", "model")
        self.requests = Counter(
            "dragoman_requests", "Answers given.", (*labels, "outcome"), registry=self._registry
        )
        self.duration = Histogram(
            "dragoman_request_seconds", "From first byte in to last byte out.", labels, buckets=_SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self.first_event = Histogram(
            "dragoman_first_event_seconds", "Until the first thing worth sending.", labels, buckets=_SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self.open = Gauge("dragoman_open_streams", "Answers under way.", registry=self._registry)
        self.tokens = Counter("dragoman_tokens", "Tokens.", (*labels, "kind"), registry=self._registry)
        self.rules = Counter(
            "dragoman_rules_fired", "Uses of mending rules.", ("rule",), registry=self._registry
        )
        self.failures = Counter(
            "dragoman_failures", "Failed attempts.", ("upstream", "kind"), registry=self._registry
        )

    def page(self) -> bytes:
        return generate_latest(self._registry)
