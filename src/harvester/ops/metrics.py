"""Prometheus metrics, read from the database at each scrape, so any process can report for all."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from harvester.ops import job_figures

_PER_QUEUE = (
    ("waiting", "Jobs that are due and not claimed yet."),
    ("scheduled", "Jobs that are not due yet."),
    ("running", "Jobs that workers have claimed."),
    ("oldest_waiting_seconds", "How long the oldest waiting job has been due."),
    ("finished_per_second", "Jobs that ended in the last five minutes, per second."),
    ("failed_last_hour", "Jobs that failed permanently in the last hour."),
)


class EngineCollector(Collector):
    """Metrics of the engine."""

    def collect(self) -> Iterator[Metric]:
        tally = job_figures.tally()
        for name, meaning in _PER_QUEUE:
            gauge = GaugeMetricFamily(f"harvester_queue_{name}", meaning, labels=["queue"])
            for queue in tally.queues:
                gauge.add_metric([queue.queue], getattr(queue, name))
            yield gauge
        states = GaugeMetricFamily("harvester_jobs", "Jobs in each state.", labels=["state"])
        for state, count in tally.states.items():
            states.add_metric([state], count)
        yield states
        yield GaugeMetricFamily(
            "harvester_oldest_snapshot_seconds",
            "Age of the oldest open transaction; above 300 it slows claims.",
            value=job_figures.oldest_snapshot_seconds(),
        )


_collectors: dict[type[Collector], Collector] = {EngineCollector: EngineCollector()}


def add_collector(collector: Collector) -> None:
    """Add metrics of a higher layer to the page."""
    _collectors[type(collector)] = collector


def exposition() -> bytes:
    """Return the metrics page."""
    registry = CollectorRegistry()
    for collector in _collectors.values():
        registry.register(collector)
    return generate_latest(registry)
