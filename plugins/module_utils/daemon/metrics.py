# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The metrics of one daemon. Only what is declared in its table can be counted; nothing here is global."""

from __future__ import annotations

import logging
import typing as t

from .metric_table import Metric

if t.TYPE_CHECKING:
    import prometheus_client
    from prometheus_client.core import Metric as Family

log = logging.getLogger(__name__)


class Distribution(t.Protocol):
    """A histogram that a lower layer keeps: how many values lie at or below each bound, one more for those above."""

    bounds: t.Sequence[float]
    counts: t.Sequence[int]
    sum: float


class SampleLike(t.Protocol):
    """One value that a lower layer tells when it is asked. ``value`` of a histogram is a ``Distribution``."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def help(self) -> str: ...
    @property
    def labels(self) -> t.Mapping[str, str]: ...
    @property
    def value(self) -> t.Any: ...


#: Called at each scrape; must be quick and must not wait.
Reader = t.Callable[[], t.Iterable[SampleLike]]
#: Values of the labels, in the order of the table, to the value.
Values = t.Mapping[tuple[str, ...], float]


class Metrics:
    """A registry over a table of metrics."""

    def __init__(self, table: t.Iterable[Metric], *, process: bool = True) -> None:
        """``process``: with memory, processor time and open files of this process."""
        import prometheus_client

        self.table = {metric.name: metric for metric in table}
        self._registry = prometheus_client.CollectorRegistry(auto_describe=False)
        self._made: dict[str, t.Any] = {}
        self._readers: list[Reader] = []
        if process:
            prometheus_client.ProcessCollector(registry=self._registry)
        self._registry.register(_Collector(self._read))

    def counter(self, name: str) -> prometheus_client.Counter:
        """The counter of that name in the table."""
        return t.cast("prometheus_client.Counter", self._make(name, "counter"))

    def gauge(self, name: str) -> prometheus_client.Gauge:
        """The gauge of that name in the table."""
        return t.cast("prometheus_client.Gauge", self._make(name, "gauge"))

    def histogram(self, name: str) -> prometheus_client.Histogram:
        """The histogram of that name in the table."""
        return t.cast("prometheus_client.Histogram", self._make(name, "histogram"))

    def read_values(self, name: str, read: t.Callable[[], Values]) -> None:
        """Export what ``read`` tells at each scrape, under a counter or gauge of the table."""
        metric = self._declared(name)
        self.read_samples(
            lambda: [
                Value(name, metric.kind, metric.help, dict(zip(metric.labels, labels)), value)
                for labels, value in read().items()
            ]
        )

    def read_samples(self, read: Reader) -> None:
        """Export the samples that ``read`` tells at each scrape. Declare them in the table: see ``undeclared``."""
        self._readers.append(read)

    def text(self) -> tuple[bytes, str]:
        """All metrics in Prometheus' text format, and its content type."""
        import prometheus_client.exposition

        body = prometheus_client.exposition.generate_latest(t.cast(t.Any, _WithoutCreated(self._registry)))
        return body, prometheus_client.exposition.CONTENT_TYPE_PLAIN_0_0_4

    def undeclared(self) -> list[str]:
        """Names that are exported now but not in the table; each daemon has a test that there are none."""
        names = set()
        for family in self._registry.collect():
            name = f"{family.name}_total" if family.type == "counter" else family.name
            if name not in self.table:
                names.add(name)
        return sorted(names)

    def _declared(self, name: str) -> Metric:
        if name not in self.table:
            raise KeyError(f"{name} is not in the table of metrics")
        return self.table[name]

    def _make(self, name: str, kind: str) -> t.Any:
        import prometheus_client

        metric = self._declared(name)
        if metric.kind != kind:
            raise TypeError(f"{name} is a {metric.kind}, not a {kind}")
        if name not in self._made:
            arguments: dict[str, t.Any] = {"labelnames": tuple(metric.labels), "registry": self._registry}
            if kind == "histogram":
                arguments["buckets"] = metric.buckets
            made = {
                "counter": prometheus_client.Counter,
                "gauge": prometheus_client.Gauge,
                "histogram": prometheus_client.Histogram,
            }[kind]
            self._made[name] = made(name, metric.help, **arguments)
        return self._made[name]

    def _read(self) -> t.Iterator[Family]:
        for read in self._readers:
            try:
                yield from families(read())
            except Exception:
                # One part that cannot tell its numbers must not hide those of all others.
                log.exception("metrics of one part could not be read part=%s", getattr(read, "__qualname__", read))


class Value(t.NamedTuple):
    """One sample."""

    name: str
    kind: str
    help: str
    labels: t.Mapping[str, str]
    value: t.Any


def families(samples: t.Iterable[SampleLike]) -> list[Family]:
    """Samples as prometheus_client has them, those of one name together."""
    from prometheus_client import core

    made: dict[str, Family] = {}
    for sample in samples:
        labels = tuple(sample.labels)
        values = [str(sample.labels[label]) for label in labels]
        family: t.Any = made.get(sample.name)
        if family is None:
            kinds: t.Mapping[str, t.Any] = {
                "counter": core.CounterMetricFamily,
                "gauge": core.GaugeMetricFamily,
                "histogram": core.HistogramMetricFamily,
            }
            family = made[sample.name] = kinds[sample.kind](sample.name, sample.help, labels=labels)
        if sample.kind == "histogram":
            family.add_metric(values, buckets=_cumulated(sample.value), sum_value=sample.value.sum)
        else:
            family.add_metric(values, sample.value)
    return list(made.values())


def _cumulated(found: Distribution) -> list[tuple[str, float]]:
    buckets, total = [], 0
    for bound, count in zip((*found.bounds, float("inf")), found.counts):
        total += count
        buckets.append(("+Inf" if bound == float("inf") else repr(float(bound)), float(total)))
    return buckets


class _Collector:
    def __init__(self, collect: t.Callable[[], t.Iterable[Family]]) -> None:
        self.collect = collect


class _WithoutCreated:
    """A registry without the time at which each series was made: twice the lines for something nobody asks."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> t.Iterator[Family]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family
