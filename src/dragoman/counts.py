"""Counting for one process alone: plain numbers, which become Prometheus's families when somebody asks.

`prometheus_client` takes a lock and looks at exemplars for every count, ten microseconds an exchange. What is
here has the same names and methods, is used from the event loop only, and gives the same page.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector


class Count:
    """A number that grows."""

    __slots__ = ("created", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.created = time.time()

    def inc(self, amount: float = 1) -> None:
        self.value += amount


class Counts(Collector):
    """One number for each set of labels."""

    def __init__(self, name: str, help: str, labels: Sequence[str], *, registry: CollectorRegistry) -> None:
        self._about = (name, help, None, labels)
        self._counts: dict[tuple[str, ...], Count] = {}
        registry.register(self)

    def labels(self, *labels: str) -> Count:
        count = self._counts.get(labels)
        if count is None:
            count = self._counts[labels] = Count()
        return count

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(*self._about)
        for labels, count in self._counts.items():
            family.add_metric(labels, count.value, count.created)
        yield family


class Level(Collector):
    """A number that goes up and down."""

    def __init__(self, name: str, help: str, *, registry: CollectorRegistry) -> None:
        self._about = (name, help)
        self._value = 0
        registry.register(self)

    def inc(self) -> None:
        self._value += 1

    def dec(self) -> None:
        self._value -= 1

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily(*self._about, value=self._value)


class Spread:
    """How many were how large."""

    __slots__ = ("_bounds", "counts", "created", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """The last is of those that are larger than every bound."""
        self.total = 0.0
        self.created = time.time()

    def observe(self, amount: float) -> None:
        self.counts[bisect_left(self._bounds, amount)] += 1
        self.total += amount


class Spreads(Collector):
    """One spread for each set of labels."""

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str],
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name, self._help, self._labels = name, help, labels
        self._bounds = buckets
        self._spreads: dict[tuple[str, ...], Spread] = {}
        registry.register(self)

    def labels(self, *labels: str) -> Spread:
        spread = self._spreads.get(labels)
        if spread is None:
            spread = self._spreads[labels] = Spread(self._bounds)
        return spread

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._help, labels=self._labels)
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for labels, spread in self._spreads.items():
            up_to = zip(bounds, accumulate(spread.counts), strict=True)
            family.add_metric(labels, list(up_to), spread.total)
            named = dict(zip(self._labels, labels, strict=True))
            family.add_sample(f"{self._name}_created", named, spread.created)
        yield family
