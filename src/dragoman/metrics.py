"""What `/metrics` counts."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


# Clients may name models themselves: what is counted must not grow with their inventions.
_MOST_MODELS = 200
OTHER = "other"


class Metrics:
    """Counters of one gateway process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._models: set[str] = set()
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

    def model(self, name: str) -> str:
        """What a model is counted under: its name, as long as there are not too many of them."""
        if name not in self._models:
            if len(self._models) >= _MOST_MODELS:
                return OTHER
            self._models.add(name)
        return name

    def page(self) -> bytes:
        return generate_latest(self._registry)
