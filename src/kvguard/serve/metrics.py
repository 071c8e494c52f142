"""Prometheus exposition: families built from the newest snapshot at each scrape, so that no stale series can stay."""

import re
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, StateSetMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kvguard.serve.metric_row import Kind, MetricRow
from kvguard.serve.metric_rows import METRIC_ROWS
from kvguard.serve.snapshot import Snapshot

_FAMILIES: dict[Kind, type[Metric]] = {
    Kind.GAUGE: GaugeMetricFamily,
    Kind.COUNTER: CounterMetricFamily,
    Kind.INFO: InfoMetricFamily,
    Kind.STATE_SET: StateSetMetricFamily,
}


_VERSION = re.compile(r";\s*version=([^;,]*)")
_VERSIONS = ("0.0.1", "0.0.4", "1.0.0")


class SnapshotCollector(Collector):
    """Collect the metrics of one sidecar."""

    def __init__(self, current: Callable[[], Snapshot]) -> None:
        self._current = current

    def collect(self) -> Iterator[Metric]:
        """One family a row that has something to say."""
        snapshot = self._current()
        for row in METRIC_ROWS:
            family = _family(row, snapshot)
            if family.samples:
                yield family


def _family(row: MetricRow, snapshot: Snapshot) -> Metric:
    family = _FAMILIES[row.kind](f"kvguard_{row.name}", row.help, labels=row.labels)  # type: ignore[call-arg]
    for labels, value in row.samples(snapshot):
        family.add_metric(labels, value)  # type: ignore[attr-defined]
    return family


def _without_unknown_versions(accept: str) -> str:
    """What a scraper accepts, less the versions that nobody knows: the client library repeats them in its answer."""
    ranges = [(part, _VERSION.search(part)) for part in accept.split(",")]
    return ",".join(part for part, version in ranges if version is None or version[1].rstrip() in _VERSIONS)


def exposition(current: Callable[[], Snapshot]) -> Callable[[str], tuple[bytes, str]]:
    """What answers a scrape: from the Accept header to the body and its content type.

    The registry is this sidecar's own: nothing of the process, of the interpreter or of another app is in it.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(current))

    def expose(accept: str) -> tuple[bytes, str]:
        encode, content_type = choose_encoder(_without_unknown_versions(accept))
        return encode(registry), content_type

    return expose
